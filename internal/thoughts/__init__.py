"""Thoughts and visible text: told apart where a model's text comes in, kept apart where the user's text goes out."""
