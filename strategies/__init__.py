"""The strategies as Dify loads them; wiring only, nothing is decided here."""
