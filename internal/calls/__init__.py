"""The tool calls of one turn: each is judged before any runs, valid ones run side by side, and results are read."""
