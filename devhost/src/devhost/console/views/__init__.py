"""What each address of the console answers: pages, parts of pages and streams of events."""
