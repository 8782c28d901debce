"""The types of messages that a tool or a strategy may send: Dify's daemon and its node know the same ones.

A new type is added here. What becomes of it is in `devhost/node/messages` and `devhost/node/outputs`.
"""

FILE_LINKS = frozenset({"image_link", "binary_link"})
"""Addresses of tool files; such a message becomes a file of the node."""
MESSAGE_TYPES = FILE_LINKS | {
    *("text", "link", "image", "blob", "blob_chunk", "file"),
    *("json", "variable", "log", "retriever_resources"),
}
