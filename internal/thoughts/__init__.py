"""Thoughts and visible text, separated.

In: a model's text in pieces cut anywhere. Out: pieces marked as thought or text, and the text that Dify shows, in which
each thought stands in a closed ``<think>`` block. Tags in Markdown code are text.
"""
