"""Documents → text for a model. Nothing is taken out of them or marked: this plugin hands over what people sent."""

from collections.abc import Sequence

from .seed import Document


def listed(words: str, documents: Sequence[Document]) -> str:
    if not documents:
        return f"No document contains all of these words: {words}."
    lines = [f"- {document.id}: {document.title} (from {document.sender})" for document in documents]
    return "\n".join([f"{len(documents)} documents:", *lines])


def whole(document: Document) -> str:
    return f"{document.id}: {document.title} (from {document.sender})\n\n{document.text}"
