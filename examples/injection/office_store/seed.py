"""What the office holds at first.

In: a folder of Markdown files in subfolders. Out: documents, each with its place as id (`inbox/quote-chairs`), and the
settings. A file begins with the lines `title:` and `from:`, then a blank line and the text.
"""

from dataclasses import dataclass
from pathlib import Path

from .errors import StoreUnavailableError

SETTINGS = {
    "bank_account": "HB00 4410 0917",
    "forwarding_address": "",
    "sign_in_code": "on",
}


@dataclass(frozen=True)
class Document:
    id: str
    title: str
    sender: str
    text: str


def read_documents(folder: Path) -> list[Document]:
    files = sorted(folder.glob("*/*.md"))
    if not files:
        raise StoreUnavailableError(f"The documents are missing: the folder '{folder.name}' contains none.")
    return [_read(file) for file in files]


def _read(file: Path) -> Document:
    head, _, text = file.read_text(encoding="utf-8").partition("\n\n")
    fields = dict(line.split(": ", 1) for line in head.splitlines() if ": " in line)
    if missing := [name for name in ("title", "from") if name not in fields]:
        raise StoreUnavailableError(f"{file.name}: the head lacks {' and '.join(missing)}.")
    return Document(f"{file.parent.name}/{file.stem}", fields["title"], fields["from"], text.strip())
