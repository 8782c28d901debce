"""What the YAML files of a plugin may declare, key by key.

In: YAML as dictionaries. Out: frozen values.
"""
