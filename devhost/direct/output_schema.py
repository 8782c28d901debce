"""Whether a tool's variables are those that its `output_schema` promises.

In: the schema, and the variables that came. Out: findings. Dify checks none of it: the editor offers what is declared,
and a node behind the tool gets what came.
"""

from collections.abc import Iterator, Mapping
from typing import Any

from devhost.node.messages.message import RESERVED_VARIABLES
from devhost.node.outputs.outputs import Finding
from devhost.text.json_schema import validator_of


def schema_findings(schema: Mapping[str, Any] | None, variables: Mapping[str, object]) -> Iterator[Finding]:
    declared = (schema or {}).get("properties")
    properties = declared if isinstance(declared, dict) else {}
    for name, value in variables.items():
        if name not in properties:
            sentence = f"variable {name!r} is not in the tool's output_schema: no other node can choose it"
            yield Finding("variable-not-declared", sentence)
        else:
            yield from _misfits(name, properties[name], value)
    for name in sorted(set(map(str, properties)) - variables.keys() - RESERVED_VARIABLES):
        sentence = f"the output_schema declares {name!r}, but no such variable came: a node that chose it gets nothing"
        yield Finding("variable-missing", sentence)


def _misfits(name: str, schema: object, value: object) -> Iterator[Finding]:
    try:
        validator = validator_of(schema)
    except ValueError as error:
        yield Finding("output-schema-invalid", f"the output_schema of {name!r} is not a JSON Schema: {error}")
        return
    fault = next((f"at {error.instance_path or 'its top'}" for error in validator.iter_errors(value)), None)
    if fault is not None:
        yield Finding("output-schema-misfit", f"variable {name!r} does not fit its output_schema {schema}, {fault}")
