"""A model from the options of a command; mistakes are reported before anything is started."""

import json
from collections.abc import Mapping

import httpx

from devhost.errors import ParameterError
from devhost.models.backend import FORWARDED_FEATURES
from devhost.models.openai_api.backend import OPENAI, Connection, OpenAIModel
from devhost.models.provider.catalog import DEFAULT_MODEL
from devhost.models.provider.parameters import Api, parameter_rules, settle

_SUCH_AS = "such as http://localhost:11434/v1"
_LAST_PORT = 65_535


def open_model(  # noqa: PLR0913 - one value of the command line each
    *,
    key: str,
    base_url: str,
    api: Api,
    name: str | None,
    completion_params: Mapping[str, object],
    features: tuple[str, ...] | None,
) -> OpenAIModel:
    _check_key(key)
    _check_url(base_url or OPENAI)
    connection = Connection(key, base_url or OPENAI)
    if not name and base_url:
        raise ParameterError(f"which model? --model NAME says what the server at {connection.place} calls it")
    name = name or DEFAULT_MODEL
    rules = parameter_rules(api, name)
    known = [rule["name"] for rule in rules]
    for given in completion_params:
        if given not in known:
            raise ParameterError(f"--completion {given}: {name} takes no such parameter; there are: {', '.join(known)}")
    # What the command line reads as JSON is text to Dify where the parameter is a text.
    texts = {rule["name"] for rule in rules if rule["type"] == "text"}
    params = {
        key: json.dumps(value) if key in texts and not isinstance(value, str) else value
        for key, value in completion_params.items()
    }
    try:
        settle(params, rules)
    except ValueError as error:
        raise ParameterError(f"--completion: {error}") from error
    for feature in features or ():
        if feature not in FORWARDED_FEATURES:
            there_are = ", ".join(sorted(FORWARDED_FEATURES))
            raise ParameterError(f"--features: unknown feature {feature!r}; there are: {there_are}")
    return OpenAIModel(connection, api, name, completion_params=params, features=features)


def _check_key(key: str) -> None:
    if not (key.isascii() and key.isprintable()):
        raise ParameterError(
            "OPENAI_API_KEY contains a character that is not allowed in HTTP headers: a key is ASCII letters, digits "
            "and signs, without line breaks; copy it again"
        )


def _check_url(base_url: str) -> None:
    """With the parser that the client uses; nothing of the URL is quoted, since it may hold a password."""
    try:
        url = httpx.URL(base_url)
    except (httpx.InvalidURL, ValueError) as error:
        raise ParameterError(f"OPENAI_BASE_URL is not a URL: it must be host, port and path, {_SUCH_AS}") from error
    if url.scheme not in {"http", "https"}:
        raise ParameterError(f"OPENAI_BASE_URL must begin with http:// or https://, {_SUCH_AS}")
    if not url.host:
        raise ParameterError(f"OPENAI_BASE_URL has no host: it must be {_SUCH_AS.removeprefix('such as ')} or the like")
    if url.port is not None and not 0 < url.port <= _LAST_PORT:
        raise ParameterError(f"OPENAI_BASE_URL: its port must be from 1 to {_LAST_PORT}, {_SUCH_AS}")
