"""The credentials of a provider of tools or models: values for the fields in its YAML, checked as Dify checks them.

A `ParameterError` lists the existing fields and never contains a value.
"""

import re
from collections.abc import Mapping

from devhost.errors import ParameterError, about, naming
from devhost.plugin.declaration import CredentialField
from devhost.protocol.wire import JsonObject
from devhost.text import SWITCHES, json_or

TEXTS = frozenset({"secret-input", "text-input", "select"})
type CredentialFields = Mapping[str, CredentialField]


def environment_name(provider: str, key: str) -> str:
    """Returns the environment variable of a credential, such as MY_TOOLS_API_KEY for `my-tools` and `api_key`.

    The provider's name is not repeated if the key starts with it.
    """
    if key.startswith(f"{provider}_"):
        name = key
    else:
        name = f"{provider}_{key}"
    return re.sub(r"[^A-Z0-9]", "_", name.upper())


def credentials_in(environment: Mapping[str, str], provider: str, fields: CredentialFields) -> dict[str, str]:
    names = {key: environment_name(provider, key) for key in fields}
    return {key: environment[name] for key, name in names.items() if name in environment}


def filled_credentials(
    provider: str, fields: CredentialFields, given: Mapping[str, str], option: str = ""
) -> JsonObject:
    """Returns the credentials to send to a plugin.

    A missing or empty value becomes the default. A value without a default is omitted. Raises `ParameterError` for a
    required value without a default. Dify's server checks saved values but not defaults, so even an invalid default is
    sent.

    `option` is the part of the command-line option before the key, for the error message.
    """
    refuse_unknown(provider, fields, given)
    credentials: JsonObject = {}
    for key, field in fields.items():
        with about(f"credential.{provider}.{key}"):
            if value := given.get(key):
                credentials[key] = _cast(provider, key, field, value)
            elif field.default is not None and field.default != "":
                if field.type in TEXTS:
                    credentials[key] = str(field.default)
                else:
                    credentials[key] = field.default
            elif field.required:
                how = f"{option or f'--credential {provider}.'}{key}=VALUE, or {environment_name(provider, key)}"
                raise ParameterError(
                    f"provider {provider} needs its credential {key}: {how} in the environment; {_there_are(fields)}"
                )
    return credentials


def refuse_unknown(provider: str, fields: CredentialFields, given: Mapping[str, str]) -> None:
    """Raises `ParameterError` for a key that the provider does not declare."""
    for key in given:
        if key not in fields:
            with about(f"credential.{provider}.{key}"):
                raise ParameterError(f"provider {provider} has no credential {key!r}; {_there_are(fields)}")


def _there_are(fields: CredentialFields) -> str:
    return naming(f"{key} (required)" if field.required else key for key, field in fields.items())


def _cast(provider: str, key: str, field: CredentialField, text: str) -> object:
    """Converts a text to the type that the widgets of Dify's form would produce."""
    where = f"credential {provider}.{key}"
    match field.type:
        case "secret-input" | "text-input":
            return text
        case "select":
            options = [option.value for option in field.options or ()]
            if text not in options:
                raise ParameterError(f"{where} must be one of: {', '.join(options)}")
            return text
        case "boolean":  # Dify's form has no other values
            if text.lower() not in SWITCHES:
                raise ParameterError(f"{where} must be true or false")
            return SWITCHES[text.lower()]
    value = json_or(text, ...)
    if value is ...:
        raise ParameterError(f"{where} is of type {field.type}: write its value as JSON")
    return value
