"""What the agent costs against the SDK's floor, as ratios: `python -m benchmarks`. README.md says how to read it."""
