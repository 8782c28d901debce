"""Reading YAML and JSON, and hiding secret values in what was read.

In: YAML files, values that YAML produced, texts and objects that may contain secrets. Out: dictionaries, sentences that
name the key of a mistake, copies in which each secret is replaced.
"""
