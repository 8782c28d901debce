"""Determines what a run is waiting for, and sends a person's input to the run."""

import json
import signal
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Literal

from devhost.alone import KeptState
from devhost.chat import NO, YES
from devhost.console.children import Child
from devhost.console.folder import OUTPUT, TRACE, RunFolder, last_printed
from devhost.console.readers import ReadTrace
from devhost.console.setup import Setup, typed
from devhost.errors import ConsoleError, HostError
from devhost.models.scripted.script import gist
from devhost.node.outputs.run import Run
from devhost.trace.flow import TIMEOUT, FormAsked
from devhost.trace.lines import is_written

# The lines that are sent to a chat.


def rejected(reason: str) -> str:
    """Returns the line that rejects calls for a reason.

    A reason such as "ok" alone would be an approval, so "no" is put before it unless it already begins with "no".
    """
    says_no = reason.casefold().partition(",")[0] in {"", NO}
    return json.dumps((reason or NO) if says_no else f"{NO}: {reason}")


def said(words: str) -> str:
    """Returns the line that sends words as a question. A leading space keeps "/…" from being read as a command."""
    return json.dumps(f" {words}" if words.startswith("/") else words)


def values_in(form: FormAsked, given: Mapping[str, str]) -> dict[str, str]:
    return {each.name: given.get(f"f.{each.name}", each.text) for each in form.fields}


def answered(form: FormAsked | None, given: Mapping[str, str]) -> str:
    """Returns the line that answers a form. Raises ConsoleError if the form was answered already or is not valid.

    Unchanged fields are left out, because the page does not show the secrets in them.
    """
    if form is None or form.form != given.get("form"):
        raise ConsoleError("this form is answered already: the flow has gone on since the page was loaded")
    if (button := given.get("press")) is None:
        return "null"
    values = values_in(form, given)
    if button != TIMEOUT and form.refused(values):
        raise ConsoleError("the form was not sent, because Dify would refuse it")
    changed = {name: text for name, text in values.items() if text != form.values[name]}
    return json.dumps({"form": form.form, "button": button, "values": changed})


def obey(child: Child | None, name: str, given: Mapping[str, str], form: FormAsked | None = None) -> None:
    """Carries out the request of a page. Raises ConsoleError if the request is not possible.

    The field `told` is the number of lines that were sent to the child when the page was loaded. `form` is the form
    that waits for an answer.
    """
    if child is None or child.exit_code is not None:
        raise ConsoleError(f"the conversation {name} is over: start it again")
    words = given.get("words", "").strip()
    told = given.get("told", "")
    match "press" if "press" in given else given.get("do"):
        case "stop":
            child.stop()
        case "end":
            child.end()
        case "press" | "leave":
            _tell(child, told, answered(form, given), given["form"])
        case "approve":
            _tell(child, told, said(YES))
        case "reject":
            _tell(child, told, rejected(words))
        case "say" if not words:
            raise ConsoleError("the question is empty")
        case "say":
            _tell(child, told, said(words))
        case other:
            raise ConsoleError(f"unknown action {other!r}")


def _tell(child: Child, told: str, line: str, form: str = "") -> None:
    if not child.tell(line, int(told) if told.isdecimal() else -1, form):
        raise ConsoleError("this was not sent: the conversation has gone on or ended since the page was loaded")


# The state of a conversation is computed from the turns of its trace and from what is known about its child process.

type Word = Literal["running", "question", "approval", "form", "elsewhere", "over"]
"""The kind of a state. `elsewhere` means that a process which this console did not start writes the trace.

`over` means that no process writes the trace.
"""


@dataclass(frozen=True)
class ConversationState:
    """What a conversation is waiting for."""

    word: Word
    calls: tuple[object, ...] = ()
    """The calls that wait for approval, as the run output them."""
    form: FormAsked | None = None
    """The form that waits for an answer."""


def state_of(
    ended: Sequence[Sequence[Run]],
    asked: int | None,
    form: FormAsked | None = None,
    *,
    is_written: bool = False,
    converses: bool = True,
) -> ConversationState:
    """Returns what the conversation is waiting for.

    `ended` has the strategy runs of each turn that has ended, in order. `asked` is the number of questions sent to the
    child, one for each turn, or `None` if no child is running. `form` is a flow's form that waits for an answer.
    `is_written` says whether any process writes the trace. `converses` says whether the child is a chat; any other
    command reads no questions.
    """
    if asked is None:
        if is_written:
            return ConversationState("elsewhere", form=form)
        return ConversationState("over")
    if form is not None:
        return ConversationState("form", form=form)
    if not converses or asked > len(ended):
        return ConversationState("running")
    kept = KeptState()
    for run in chain(*ended):
        kept = kept.after(run)
    if kept.waiting:
        return ConversationState("approval", kept.waiting)
    return ConversationState("question")


# What the page of a run shows about the conversation and how to continue it.

ENDED = 128 + signal.SIGTERM
"""The exit code of a command that the console ended."""


@dataclass(frozen=True)
class WaitingConversation:
    """The state of a conversation and the texts that its page shows with it."""

    state: ConversationState
    told: int
    """How many lines were sent to the child."""
    awaited: tuple[str, float] | None
    """The name of the unfinished step, which may be empty, and when it began, in seconds since 1970."""
    suggestion: str
    """The text that the page suggests as the next question."""
    printed: str
    """The output of a command that failed or could not start, or the last line while a command is starting."""
    command: str
    """The command to type in a terminal; empty for a run that no form started."""


def form_of(child: Child | None, seen: ReadTrace) -> FormAsked | None:
    """Returns the form that waits for an answer, or `None` if an answer was just sent.

    After an answer, the trace still shows the form as waiting until the flow continues.
    """
    is_answered = child is not None and seen.form is not None and seen.form.form == child.answered
    if is_answered:
        return None
    return seen.form


def waiting_of(folder: RunFolder, name: str, child: Child | None, seen: ReadTrace) -> WaitingConversation:
    """Returns what the page of a run shows about its conversation."""
    setup = folder.setup(name)
    turns = seen.turns
    state = state_of(
        [[run.run for run in turn.runs] for turn in turns if turn.traced.ended is not None],
        None if child is None or child.exit_code is not None else child.asked,
        form_of(child, seen),
        is_written=is_written(folder.beside(name, TRACE)),
        converses=setup is None or setup.converses,
    )
    starts = child is not None and not turns and state.word == "running"
    waits = bool(turns) and turns[-1].ending.level == "limited"
    failed = child is not None and child.exit_code not in {None, 0, ENDED} and not waits
    is_shown = failed or starts or (state.word == "over" and not turns)
    printed = ""
    if is_shown:
        printed = last_printed(folder.beside(name, OUTPUT))
    return WaitingConversation(
        state,
        told=0 if child is None else child.told,
        awaited=("", child.began) if child is not None and starts else seen.awaited,
        suggestion=suggestion(setup, [turn.question for turn in turns], state),
        printed=printed.rpartition("\n")[2] if starts else printed,
        command="" if setup is None else typed(setup.arguments(lambda of: folder.beside(of, TRACE))),
    )


def suggestion(setup: Setup | None, questions: Sequence[str], state: ConversationState) -> str:
    """Returns the script's next user message if the conversation has followed the script so far, or an empty text."""
    if setup is None or state.word not in {"question", "approval"}:
        return ""
    options = setup.options
    try:
        script = options.read_script(options.strategy)
    except (HostError, OSError):  # the script has been changed since
        return ""
    if not 0 < len(questions) <= len(script.then) or gist(questions[0]) != gist(script.query):
        return ""
    answers = [(each.query, each.approval) for each in script.then]
    query, approval = answers[len(questions) - 1]
    if state.word == "approval":
        return approval or query
    heard = all(words in said for words, said in zip(questions[1:], answers, strict=False))
    return query if heard else ""  # after a different reply, the script's next message may not fit
