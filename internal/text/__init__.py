"""Functions for texts: well-formedness, secrets, size, language, and the separation of thoughts from visible text."""
