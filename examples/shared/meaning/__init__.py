"""Texts as vectors whose directions say what the texts mean.

Without a key the model comes inside a package and runs on this machine; with one it is OpenAI's, or a compatible
server's. `api` is the second; `embeddings` has the first, and chooses. The examples share this package, as they share
`tool_layer`.
"""
