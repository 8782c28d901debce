"""Search by meaning: texts as vectors, and the fusion of two rankings. Each plugin that uses it brings it along."""
