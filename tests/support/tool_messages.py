"""Messages of a tool as they come in, and what the plugin keeps of them."""

from collections.abc import Mapping
from io import StringIO
from typing import Any

from internal.calls.output import ToolOutput
from internal.events import UserFile
from internal.host.session import WireMessage, wellformed_message
from internal.text.secrets import KnownSecrets, Redactor

HOSTED = "/files/tools/0a1b-2c3d.png"


NO_SECRETS = KnownSecrets(Redactor())


def message(kind: str, meta: dict[str, Any] | None = None, **body: Any) -> WireMessage:  # noqa: ANN401 - whatever a tool sends
    return wellformed_message(WireMessage(type=kind, message=body or None, meta=meta))


def text(said: str | None) -> WireMessage:
    return message("text", text=said)


def json_value(value: object) -> WireMessage:
    return message("json", json_object=value)


def variable(name: str, value: object, *, stream: bool = False) -> WireMessage:
    return message("variable", variable_name=name, variable_value=value, stream=stream)


def sources(*resources: dict[str, Any]) -> WireMessage:
    return message("retriever_resources", retriever_resources=list(resources))


def output_of(
    *messages: WireMessage, secrets: KnownSecrets = NO_SECRETS, between_texts: str = ""
) -> tuple[ToolOutput, list[UserFile]]:
    output = ToolOutput(secrets, between_texts)
    return output, [file for wire in messages if (file := output.take(wire))]


def collected(*messages: WireMessage) -> tuple[str, list[UserFile]]:
    output, files = output_of(*messages)
    return output.rendered(), files


def read(*messages: WireMessage) -> str:
    return collected(*messages)[0]


def kept(thing: object) -> int:
    """Characters and bytes of everything that hangs from an object."""
    if isinstance(thing, str | bytes):
        return len(thing)
    if isinstance(thing, StringIO):
        return len(thing.getvalue())
    if isinstance(thing, Mapping):
        return sum(kept(key) + kept(value) for key, value in thing.items())
    if isinstance(thing, list | set):
        return len(thing) + sum(map(kept, thing))
    return kept(vars(thing)) if hasattr(thing, "__dict__") else 1
