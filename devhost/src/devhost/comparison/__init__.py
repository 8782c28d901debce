"""Two traced runs side by side, with the differences marked: in a terminal, as JSON and as an HTML page."""
