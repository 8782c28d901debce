"""Prints the run steps of a conversation, for an operator."""

import json
from collections.abc import Iterable, Iterator

from .run_steps import RunStep


def audit_lines(steps: Iterable[RunStep]) -> Iterator[str]:
    for step in steps:
        seconds = "did not end" if step.ended_at is None else f"{(step.ended_at - step.began_at).total_seconds():.2f} s"
        place = f"{step.conversation or '-'}  turn {step.turn or '-'}"
        yield f"{step.id}  {step.began_at:%Y-%m-%d %H:%M:%S} UTC  {step.tool}  {seconds}  {place}"
        for name, value in (("in ", step.input), ("out", step.output)):
            yield f"    {name}  {json.dumps(value, ensure_ascii=False, default=str)}"
