"""Runs cases with expectations, several at a time in one host, and compares the results with an earlier evaluation."""
