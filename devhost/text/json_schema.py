"""JSON Schemas that others wrote. No reference in one is ever followed out of it: nothing is requested."""

from typing import Any

import jsonschema_rs
from jsonschema_rs import Validator

DIFYS_OWN = "https://dify.ai/schemas/"
"""Schemas that Dify brings itself, such as the chunks of a knowledge base; here, every value fits them."""


def validator_of(schema: Any) -> Validator:  # noqa: ANN401 - what is not a schema is refused
    """A ValueError with one line for what is not a JSON Schema, or leads to another document than Dify's own."""
    try:
        return jsonschema_rs.validator_for(schema, retriever=_other_document)
    except (jsonschema_rs.ValidationError, ValueError, TypeError) as error:
        raise ValueError(str(error).splitlines()[0]) from error


def _other_document(address: str) -> bool:
    if address.startswith(DIFYS_OWN):
        return True
    raise ValueError(f"{address} is another document; devhost fetches none")
