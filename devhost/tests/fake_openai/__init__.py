"""A fake of the OpenAI API over real HTTP: scripted turns, streamed; what the real one refuses is refused.

with FakeOpenAI() as fake:
    fake.will(Turn(calls=(Call("search", {"q": "x"}),)), Turn(text="Found it."))
    … fake.base_url, KEY …
fake.requests       (path, body) of every request, refused ones too
"""

from fake_openai.rules import Refusal
from fake_openai.server import KEY, FakeOpenAI, context_too_long, rate_limited, server_error
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
