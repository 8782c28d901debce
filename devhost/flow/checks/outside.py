"""HTTP requests and code are allowed by the command."""

from collections.abc import Iterator

from devhost.flow.document import FlowFile
from devhost.flow.outside.allowed import Allowed


def not_allowed(file: FlowFile, allowed: Allowed) -> Iterator[str]:
    for node in file.nodes.values():
        if (why := allowed.why_not(node.type, node.data)) is not None:
            yield f"{node} {why}"
