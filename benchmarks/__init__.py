"""What the agent costs beside the smallest strategy that the SDK allows: `python -m benchmarks`. See README.md."""
