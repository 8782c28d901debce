"""Measures the plugin under Dify's own plugin daemon. docs/scale.md has the results and the commands."""
