"""A plugin's directory as data, and the declaration that a plugin sends when it registers itself.

In: manifest.yaml, the provider, strategy and tool YAMLs, credentials, messages of the TCP handshake. Out: declarations,
checked credentials, values cast as Dify casts them by a declaration, or the rule that a declaration breaks.
"""
