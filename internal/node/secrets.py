"""The secrets that a developer set in the node.

In: Dify's tool dicts, whose ``runtime_parameters`` hold decrypted values (docs/host-facts.md, "The tools parameter").
Out: the secrets among them: values of ``secret-input`` parameters and values under a secret's name, also those of tools
that are left out. And a tool without them in what the model reads of it.
"""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from internal.text.redaction import Redactor
from internal.text.secret_detection import looks_secret, texts_in

SECRET_TYPE = "secret-input"  # noqa: S105 - Dify's name of a type
_PUBLIC_TYPES = frozenset({"select", "boolean", "checkbox", "number"})
"""Their values stand in the tool's own declaration, or are limits such as ``max_token``: no secret has these types."""


def node_secrets(raw_tools: Iterable[Mapping[str, Any]]) -> Redactor:
    """Replaces every secret that the developer set."""
    return Redactor.of(secret for raw in raw_tools for secret in _secrets_of(raw))


def redacted_tool(tool: Mapping[str, Any], secrets: Redactor) -> Mapping[str, Any]:
    """What a declaration shows to the model; a parameter's default is sent to the tool, and not shown."""
    description, parameters = secrets.values([tool.get("description"), tool.get("parameters")])
    for shown, own in zip(parameters or (), tool.get("parameters") or (), strict=True):
        if isinstance(own, dict) and "default" in own:
            shown["default"] = own["default"]
    return {**tool, "description": description, "parameters": parameters}


def public_values(raw: Mapping[str, Any]) -> dict[str, Any]:
    """The values that the developer set, without each one that is or holds a secret."""
    return {name: value for name, value, secrets in _values_of(raw) if not secrets}


def _secrets_of(raw: Mapping[str, Any]) -> Iterator[str]:
    return (secret for _, _, secrets in _values_of(raw) for secret in secrets)


def _values_of(raw: Mapping[str, Any]) -> Iterator[tuple[str, Any, list[str]]]:
    """Each value that the developer set, with the secrets in it."""
    runtime, listed = raw.get("runtime_parameters"), raw.get("parameters")
    declared = [item for item in listed if isinstance(item, Mapping)] if isinstance(listed, list) else []
    kinds = {str(item.get("name")): str(item.get("type")) for item in declared}
    for name, value in runtime.items() if isinstance(runtime, Mapping) else ():
        kind = kinds.get(name)
        if kind == SECRET_TYPE:
            yield name, value, ["", *texts_in(value)]
        else:
            yield name, value, [] if kind in _PUBLIC_TYPES else list(_named({name: value}))


def _named(value: object) -> Iterator[str]:
    """All values below a secret's name."""
    if isinstance(value, dict):
        for name, item in value.items():
            yield from texts_in(item) if looks_secret(name) else _named(item)
    elif isinstance(value, list):
        for item in value:
            yield from _named(item)
