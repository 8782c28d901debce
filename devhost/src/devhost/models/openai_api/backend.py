"""A model behind one of OpenAI's APIs, and its selection by the options of a command."""

import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

import httpx
import openai

from devhost.errors import ParameterError, about, naming
from devhost.models.backend import FORWARDED_FEATURES, Features, ModelDescription, ModelRequest, chunk
from devhost.models.catalog import DEFAULT_MODEL, facts_of, is_openais, reasons
from devhost.models.openai_api import provider
from devhost.models.usage import CountsSpending, price_notice
from devhost.protocol.wire import JsonObject

OPENAI = "https://api.openai.com/v1"
_NO_KEY = "none"
"""A placeholder key: the client requires one, and servers without keys ignore it."""
_SILENCE_SECONDS = 600.0
"""The read timeout, which is longer than the host's limit for a call, so that the host ends the call first."""
_CONNECT_SECONDS = 10.0
_TITLES: dict[provider.Api, str] = {"responses": "Responses API", "chat": "Chat Completions"}
_OPENAIS_FEATURES: Features = ("multi-tool-call", "agent-thought", "stream-tool-call", "vision")
_OTHERS_FEATURES: Features = ("tool-call", "multi-tool-call", "stream-tool-call")
_SAMPLING = frozenset({"temperature", "top_p", "presence_penalty", "frequency_penalty"})
"""Parameters that are dropped for a reasoning model, as in Dify's openai plugin.

A flow's file may still contain them because they were set for another model.
"""


@dataclass(frozen=True)
class Connection:
    """The address of an API and its key, which is empty for a server without keys.

    Raises `ParameterError` if the key or the address is invalid.
    """

    key: str = field(default="", repr=False)
    base_url: str = OPENAI

    def __post_init__(self) -> None:
        # The messages quote neither the key nor the address, because both may contain secrets. The client's own error
        # for a key that cannot be an HTTP header would quote it.
        if not (self.key.isascii() and self.key.isprintable()):
            raise ParameterError("OPENAI_API_KEY has a line break or another character that no key has: copy it again")
        try:
            url = httpx.URL(self.base_url)
            is_one = url.scheme in {"http", "https"} and bool(url.host)
        except (httpx.InvalidURL, ValueError):
            is_one = False
        if not is_one:
            example = "such as http://localhost:11434/v1"
            raise ParameterError(f"OPENAI_BASE_URL must be an http:// or https:// address, {example}")

    @property
    def url(self) -> str:
        """The address to show to people, without credentials and without the query."""
        url = httpx.URL(self.base_url)
        return f"{url.scheme}://{url.netloc.decode()}{url.path.rstrip('/')}"

    def client(self) -> openai.OpenAI:
        return openai.OpenAI(
            api_key=self.key or _NO_KEY,
            base_url=self.base_url,
            max_retries=0,
            timeout=openai.Timeout(_SILENCE_SECONDS, connect=_CONNECT_SECONDS),
        )


class OpenAIModel(CountsSpending):
    """A `ModelBackend` over the Responses API ("responses") or Chat Completions ("chat").

    `completion_params` are the node's parameters for the model. `features` are Dify's names for what the model can do.
    The key never appears in output. The backend counts the tokens and the price of its calls.
    """

    def __init__(
        self,
        connection: Connection,
        api: provider.Api,
        name: str,
        *,
        completion_params: JsonObject | None = None,
        features: Features | None = None,
    ) -> None:
        super().__init__()
        facts = facts_of(name)
        self.description = ModelDescription(
            provider=f"devhost/openai/{api}",
            name=name,
            notice=f"{_TITLES[api]} at {connection.url}; {price_notice(name)}",
            scripted=False,
            features=features or (_OPENAIS_FEATURES if is_openais(name) else _OTHERS_FEATURES),
            context_size=None if facts is None else facts.context_size,
            completion_params=tuple((completion_params or {}).items()),
            has_price=facts is not None,
        )
        self._api = api
        self._key = connection.key
        self._url = connection.url
        self._client = connection.client()

    def invoke(self, request: ModelRequest, /) -> Iterator[JsonObject]:
        began = time.monotonic()
        with provider.provider_failures(self._key, self._url):
            for event in provider.with_blocks(self._turn(request)):
                match event:
                    case str(text):
                        yield chunk(request.model, text=text)
                    case provider.FinishedChoice(tokens=tokens):
                        if tokens is None:
                            usage = None
                        else:
                            usage = tokens.usage(request.model, time.monotonic() - began)
                        self.count(usage, tokens)
                        yield chunk(
                            request.model,
                            tool_calls=event.calls,
                            opaque_body=event.opaque_body,
                            usage=usage,
                            finish_reason=event.reason,
                        )

    def _turn(self, request: ModelRequest) -> Iterator[provider.TurnEvent]:
        """Yields the events of one turn. Closing the generator closes the connection."""
        if reasons(request.model):
            left_out = _SAMPLING
        else:
            left_out = frozenset()
        given = {name: value for name, value in request.completion_params.items() if name not in left_out}
        if self._api == "responses":
            with self._client.responses.create(**provider.responses_request(request, given)) as events:
                if (whole := provider.whole_answer(events.response)) is not None:
                    yield from provider.whole_response(whole)
                else:
                    yield from provider.responses_turn(events)
        else:
            with self._client.chat.completions.create(**provider.chat_request(request, given)) as chunks:
                if (whole := provider.whole_answer(chunks.response)) is not None:
                    yield from provider.whole_chat(whole)
                else:
                    yield from provider.chat_turn(chunks)


def open_model(  # noqa: PLR0913 - one parameter for each option of the command line
    *,
    key: str,
    base_url: str,
    api: provider.Api,
    name: str | None,
    completion_params: Mapping[str, object],
    features: tuple[str, ...] | None,
) -> OpenAIModel:
    """Returns the model that the options of a command describe.

    Raises `ParameterError` for a mistake in the options, before anything is started.
    """
    connection = Connection(key, base_url or OPENAI)
    if not name and base_url:
        with about("model"):
            raise ParameterError(f"which model? --model NAME says what the server at {connection.url} calls it")
    for feature in features or ():
        if feature not in FORWARDED_FEATURES:
            with about("features"):
                there_are = naming(sorted(FORWARDED_FEATURES))
                raise ParameterError(f"--features: unknown feature {feature!r}; {there_are}")
    return OpenAIModel(
        connection, api, name or DEFAULT_MODEL, completion_params=dict(completion_params), features=features
    )
