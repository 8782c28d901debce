"""A tool call's arguments checked against what the model was told of the tool.

In: a JSON object. Out: the values to call the tool with, fitted to their types where nothing is lost by it, or
ArgumentsInvalid, whose text is what the model reads. An answer that is handed over by a call may hold no known secret.
"""

from collections.abc import Iterator, Mapping
from dataclasses import replace
from itertools import islice
from typing import Any

from internal.host.wire import MAX_EXACT_INTEGER
from internal.schema.check import Check, Problem, Unchecked
from internal.schema.fitting import Fitter
from internal.schema.sentences import sentences
from internal.text.redaction import KnownSecrets
from internal.tools.parameters import ToolParameter
from internal.tools.toolbox import Tool, Toolbox, VirtualSchema

_VALIDATION_ERROR = "tool arguments validation error: "
_MAX_NAME_LENGTH = 200
_MAX_NAMED = 10
"""Unknown arguments that are named."""


class ArgumentsInvalid(Exception):  # noqa: N818 - its text is what the model reads
    """The arguments do not fit the tool."""


def validate_arguments(tool: Tool, arguments: Mapping[str, Any]) -> dict[str, Any]:
    """Check arguments against the tool's schema, fitting them by type.

    Returns:
        The arguments to send, without the developer's fixed values.

    Raises:
        ArgumentsInvalid: naming every argument that does not fit and what would.
    """
    if tool.virtual_schema is not None:
        return _validate_virtual(tool.virtual_schema, arguments)
    unknown = (name for name in arguments if name not in tool.parameters)
    problems = [
        f"unknown argument {name[:_MAX_NAME_LENGTH]!r}; valid arguments are: {', '.join(tool.parameters) or 'none'}"
        for name in islice(unknown, _MAX_NAMED)
    ]
    valid: dict[str, Any] = {}
    for name, parameter in tool.parameters.items():
        given = arguments.get(name)
        if given == "" and parameter.takes_files and not parameter.required:
            given = None
        if given is not None:
            valid[name], wrong = _checked(parameter, given)
            problems += wrong
        elif parameter.required and name in arguments and _takes_null(parameter):
            valid[name] = None
        elif parameter.required:
            problems.append(f"missing required argument {name!r}")
        elif parameter.default is not None:
            valid[name] = parameter.default
    if problems:
        raise ArgumentsInvalid(_VALIDATION_ERROR + "; ".join(problems))
    return valid


def _validate_virtual(schema: VirtualSchema, arguments: Mapping[str, Any]) -> dict[str, Any]:
    try:
        value, problems = _fitted(schema.check, dict(arguments), "", takes_texts=False)
    except Unchecked:
        value, problems = None, ["they could not be checked against the schema"]
    if problems or not isinstance(value, dict):
        raise ArgumentsInvalid(_VALIDATION_ERROR + "; ".join(problems))
    return value


def _checked(parameter: ToolParameter, given: object) -> tuple[object, list[str]]:
    """The value as it is sent, and what is wrong with it."""
    try:
        value, problems = _fitted(parameter.check, given, parameter.name, takes_texts=True)
    except Unchecked:
        # The tool itself still checks what it is given.
        return given, []
    if problems and parameter.is_secret:
        # Half a secret, as in a quote that was cut, would not be recognised any more.
        problems = [f"parameter {parameter.name!r} does not fit"]
    return value, problems


def _fitted(check: Check, given: object, name: str, *, takes_texts: bool) -> tuple[object, list[str]]:
    value = Fitter(check, takes_texts).fit(given)
    return value, sentences(check, value, name)


def _takes_null(parameter: ToolParameter) -> bool:
    """Whether null is a value of its own; elsewhere models write it for what they leave out."""
    try:
        return parameter.own_check is not None and parameter.check.is_satisfied_by(None)
    except Unchecked:
        return False


def call_parameters(tool: Tool, arguments: Mapping[str, Any], toolbox: Toolbox) -> dict[str, Any]:
    """What a call sends: valid arguments with file names exchanged for the files, and the developer's values on top."""
    parameters = {name: _as_sent(tool.parameters[name], value, toolbox) for name, value in arguments.items()}
    return {**parameters, **tool.fixed}


def _as_sent(parameter: ToolParameter, value: object, toolbox: Toolbox) -> object:
    if parameter.takes_files:
        return _files_for(value, toolbox)
    # As a number it would be rounded on its way; Dify casts the text of a number parameter back.
    return str(value) if parameter.is_number and _is_rounded(value) else value


def rounded_arguments(tool: Tool, arguments: Mapping[str, Any]) -> list[str]:
    """Names of the arguments within which the host rounds an integer."""
    return [name for name, value in arguments.items() if not tool.parameters[name].is_number and _is_rounded(value)]


def _is_rounded(value: object) -> bool:
    if isinstance(value, dict):
        return any(map(_is_rounded, value.values()))
    if isinstance(value, list):
        return any(map(_is_rounded, value))
    return isinstance(value, int) and abs(value) > MAX_EXACT_INTEGER


def _files_for(value: object, toolbox: Toolbox) -> object:
    if isinstance(value, list):
        return [_files_for(item, toolbox) for item in value]
    return toolbox.files[str(value)].model_dump(mode="json")


_HOLDS_SECRET = "it holds a secret value, which an answer must not repeat; leave it out"  # noqa: S105 - a sentence


def refusing_secrets(tool: Tool, secrets: KnownSecrets) -> Tool:
    """The tool that takes the answer; one that holds a known secret is refused like one that does not fit."""

    def more(value: Any) -> Iterator[Problem]:  # noqa: ANN401 - JSON
        if secrets.holds(value):
            yield Problem(_place_of_secret(value, secrets), f": {_HOLDS_SECRET}")

    if tool.virtual_schema is None:
        return tool
    check = tool.virtual_schema.check.stricter(more)
    return replace(tool, virtual_schema=replace(tool.virtual_schema, check=check))


def _place_of_secret(value: object, secrets: KnownSecrets) -> tuple[str | int, ...]:
    """The way to the innermost value that holds one; not into the names of an object."""
    items = value.items() if isinstance(value, Mapping) else enumerate(value) if isinstance(value, list) else ()
    for part, item in items:
        if secrets.holds(item) and not secrets.holds(part):
            return (part, *_place_of_secret(item, secrets))
    return ()
