"""Input and output in a terminal."""
