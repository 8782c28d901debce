"""What the calls of a run say: prompts, answers, arguments, results, and what changed from prompt to prompt.

In: the calls of a trace, and the spans in which they stand. Out: values that a template shows.
"""
