"""What a tool returns: `{"status": "success" | "error", "result": {"message": …, …}}`.

Each agent has a `Result` of its own with a few named fields; what has no value is left out. `message` is written for
the model's next turn, and never shown as it is.
"""

from typing import Any, Literal

from pydantic import BaseModel, ConfigDict

type JsonObject = dict[str, Any]


class Result(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")

    message: str


class Envelope[R: Result](BaseModel):
    model_config = ConfigDict(frozen=True)

    status: Literal["success", "error"]
    result: R

    def as_json(self) -> JsonObject:
        return self.model_dump(mode="json", exclude_none=True)


def success[R: Result](result: R) -> Envelope[R]:
    return Envelope[R](status="success", result=result)


def failure(message: str) -> Envelope[Result]:
    return Envelope[Result](status="error", result=Result(message=message))
