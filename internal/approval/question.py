"""The question whether calls may run, as the user reads it.

In: the calls that wait, and the query, whose script decides the language. Out: Markdown that says what the agent wants
to do and how to answer. Every argument is shown whole, because people approve what they see.
"""

import json
from collections.abc import Iterator, Sequence

from internal.approval.pending import PendingCall
from internal.approval.quoting import code, inline_code
from internal.report.sentences import language_of
from internal.text.fairness import in_turns
from prompt import template


def approval_question(calls: Sequence[PendingCall], query: str) -> str:
    """Ask for approval of these calls, at least one; how to answer in a chat is said by ``how_to_answer``."""
    language = language_of(query)
    request = template.APPROVAL_REQUEST_FOR_SEVERAL[language].format(count=len(calls))
    request = template.APPROVAL_REQUEST[language] if len(calls) == 1 else request
    shown = ["\n".join(_lines(call, language, is_alone=len(calls) == 1)).rstrip("\n") for call in in_turns(calls)]
    return "\n\n".join([request, *shown])


def how_to_answer(calls: Sequence[PendingCall], query: str) -> str:
    """The last line of the question in a chat; a form has buttons instead."""
    language = language_of(query)
    if len(calls) == 1:
        return template.HOW_TO_APPROVE[language]
    return template.HOW_TO_APPROVE_SEVERAL[language] + inline_code(_example(calls))


def _lines(call: PendingCall, language: str, *, is_alone: bool) -> Iterator[str]:
    name = f"**{inline_code(call.tool)}**"
    yield f"{name}\n" if is_alone else f"{name} ({inline_code(call.id)})\n"
    if call.subtask is not None:
        yield f"{template.SUBTASK_OF_CALL[language]}{inline_code(call.subtask)}\n"
    if not call.arguments:
        yield template.WITHOUT_ARGUMENTS[language]
    for argument, value in in_turns(call.arguments.items()):
        text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
        shown = code(text)
        yield f"- {inline_code(argument)}:{'' if shown.startswith('\n') else ' '}{shown}"


def _example(calls: Sequence[PendingCall]) -> str:
    """An answer call by call to the first two, approving one."""
    first, second = (call.id for call in calls[:2])
    return json.dumps({first: True, second: {"approved": False, "reason": "…"}}, ensure_ascii=False)
