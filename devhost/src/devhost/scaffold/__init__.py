"""Creates the folder of a new plugin or chatflow: one that runs at once, with a scenario and a test."""
