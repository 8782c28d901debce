"""Alembic's folder: `versions` has a module for each revision, and `env` runs them."""
