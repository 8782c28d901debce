"""Texts as such: well-formed, without secrets, cut to size; thoughts told apart from visible text."""
