"""Compares the agent's cost with the smallest strategy that the SDK allows: `python -m benchmarks`. See README.md."""
