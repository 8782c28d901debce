"""A model behind one of OpenAI's APIs, as a `ModelBackend`.

In: `ModelRequest`s. Out: chunks, priced. The client's own retries are off: the plugin retries, as it does in Dify,
and a retry below it would hide that.
"""

import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass, field

import httpx
import openai

from devhost.models.backend import Features, ModelCallError, ModelDescription, chunk
from devhost.models.openai_api.chat_request import chat_request
from devhost.models.openai_api.chat_stream import chat_turn
from devhost.models.openai_api.responses_request import responses_request
from devhost.models.openai_api.responses_stream import responses_turn
from devhost.models.provider.catalog import facts_of, is_openais
from devhost.models.provider.failures import provider_failures, reading_the_stream, refuse_a_page
from devhost.models.provider.parameters import Api, guesses, parameter_rules, settle
from devhost.models.provider.tokens import PricedCall, Spending, TokenCounts, price_notice
from devhost.models.provider.turn_events import Called, Finished, Said, TurnEvent
from devhost.models.request import ModelRequest
from devhost.protocol.wire import JsonObject

OPENAI = "https://api.openai.com/v1"
_NO_KEY = "none"
"""The client requires a key; servers without keys ignore it."""
_SILENCE_SECONDS = 600.0
"""Longer than the host allows a call, so that the host ends it first."""
_CONNECT_SECONDS = 10.0
_TITLES: dict[Api, str] = {"responses": "Responses API", "chat": "Chat Completions"}
_OPENAIS_FEATURES: Features = ("multi-tool-call", "agent-thought", "stream-tool-call", "vision")
_OTHERS_FEATURES: Features = ("tool-call", "multi-tool-call", "stream-tool-call")


@dataclass(frozen=True)
class Connection:
    """Where the API is, and the key for it; a server without keys needs none."""

    key: str = field(default="", repr=False)
    base_url: str = OPENAI

    @property
    def place(self) -> str:
        """For people: without credentials that a URL may hold."""
        return httpx.URL(self.base_url).netloc.decode()

    @property
    def url(self) -> str:
        """For people, too: without credentials and query."""
        url = httpx.URL(self.base_url)
        return f"{url.scheme}://{self.place}{url.path.rstrip('/')}"

    def client(self) -> openai.OpenAI:
        return openai.OpenAI(
            api_key=self.key or _NO_KEY,
            base_url=self.base_url,
            max_retries=0,
            timeout=openai.Timeout(_SILENCE_SECONDS, connect=_CONNECT_SECONDS),
        )


class OpenAIModel:
    """A `ModelBackend` over the Responses API ("responses") or Chat Completions ("chat").

    `completion_params` are the node's parameters of the model, `features` Dify's names of what it can do. The key
    appears in no output. Counts tokens and price of its calls in `spending`.
    """

    def __init__(
        self,
        connection: Connection,
        api: Api,
        name: str,
        *,
        completion_params: JsonObject | None = None,
        features: Features | None = None,
    ) -> None:
        rules = parameter_rules(api, name)
        facts = (f"{_TITLES[api]} at {connection.place}", price_notice(name), *guesses(completion_params or {}, rules))
        self.description = ModelDescription(
            provider=f"devhost/openai/{api}",
            name=name,
            notice="; ".join(facts),
            scripted=False,
            features=features or (_OPENAIS_FEATURES if is_openais(name) else _OTHERS_FEATURES),
            context_size=facts_of(name).context_size,
            completion_params=tuple((completion_params or {}).items()),
            parameter_rules=rules,
        )
        self.spending = Spending()
        self._api = api
        self._key, self._url = connection.key, connection.url
        self._client = connection.client()
        self._counting = threading.Lock()

    @property
    def afterwards(self) -> str:
        """A sentence for the person at the terminal after the run; empty if there is nothing to say."""
        return str(self.spending)

    def spent(self) -> JsonObject:
        return self.spending.as_json()

    def invoke(self, request: ModelRequest, /) -> Iterator[JsonObject]:
        try:
            params = settle(request.completion_params, parameter_rules(self._api, request.model))
        except ValueError as error:
            raise ModelCallError("ValueError", str(error)) from error
        began = time.monotonic()
        with provider_failures(self._key, self._url):
            for event in self._turn(request, params):
                match event:
                    case Said(text) if text:
                        yield chunk(request.model, text=text)
                    case Called(calls):
                        yield chunk(request.model, tool_calls=calls)
                    case Finished():
                        yield chunk(
                            request.model,
                            tool_calls=event.calls,
                            opaque_body=event.opaque_body,
                            usage=self._count(request.model, event.tokens, time.monotonic() - began),
                            finish_reason=event.reason,
                        )

    def _turn(self, request: ModelRequest, params: JsonObject) -> Iterator[TurnEvent]:
        """Closing the generator closes the connection."""
        if self._api == "responses":
            with self._client.responses.create(**responses_request(request, params)) as events, reading_the_stream():
                refuse_a_page(str(events.response.headers.get("Content-Type")))
                yield from responses_turn(events)
        else:
            with self._client.chat.completions.create(**chat_request(request, params)) as chunks, reading_the_stream():
                refuse_a_page(str(chunks.response.headers.get("Content-Type")))
                yield from chat_turn(chunks)

    def _count(self, model: str, tokens: TokenCounts | None, seconds: float) -> JsonObject | None:
        if tokens is None:
            with self._counting:
                self.spending = self.spending.plus_uncounted()
            return None
        priced = PricedCall.of(model, tokens, seconds)
        with self._counting:
            self.spending = self.spending.plus(tokens, priced.total_price)
        return priced.usage()
