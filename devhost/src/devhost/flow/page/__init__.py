"""The trace of a flow as an HTML page: each turn's nodes as rows, an Agent node's whole run under its row."""
