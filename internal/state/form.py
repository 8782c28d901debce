"""A state as text, and back."""
