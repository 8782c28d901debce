"""For searches: one spelling of a text, texts as vectors, and the fusion of two rankings."""
