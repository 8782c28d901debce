"""Each step of a plan alone, and a comparison of the two searches; for `python -m examples.helpdesk`, not packaged."""
