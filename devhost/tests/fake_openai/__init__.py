"""A strict fake of the OpenAI API over real HTTP: scripted turns, streamed; what the real one refuses is refused.

    with FakeOpenAI() as fake:
        fake.will(Turn(calls=(Call("search", {"q": "x"}),)), Turn(text="Found it."))
        … fake.base_url, KEY …
    fake.requests       (path, body) of every request, refused ones too

Its strictness is pydantic models with no room for unknown keys, and rules over whole requests.
"""

from fake_openai.refusals import (
    Refusal,
    context_too_long,
    rate_limited,
    server_error,
)
from fake_openai.server import KEY, FakeOpenAI
from fake_openai.turns import Call, Tokens, Turn

__all__ = [
    "KEY",
    "Call",
    "FakeOpenAI",
    "Refusal",
    "Tokens",
    "Turn",
    "context_too_long",
    "rate_limited",
    "server_error",
]
