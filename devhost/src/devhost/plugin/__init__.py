"""A plugin's directory as data, and the declaration that a plugin sends when it registers itself."""
