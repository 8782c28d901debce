"""Functions for texts: well-formedness, secrets, size, language, and thoughts apart from visible text."""
