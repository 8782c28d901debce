"""What a run waits for, and what a person says to it."""

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

# The lines that a chat reads.


def rejected(reason: str) -> str:
    """The reason alone could be an approval, such as "ok", unless it begins with a no."""
    says_no = reason.casefold().partition(",")[0] in {"", NO}
    return json.dumps((reason or NO) if says_no else f"{NO}: {reason}")


def said(words: str) -> str:
    """A space makes a text of what would be a command."""
    return json.dumps(f" {words}" if words.startswith("/") else words)


def values_in(form: FormAsked, given: Mapping[str, str]) -> dict[str, str]:
    return {each.name: given.get(f"f.{each.name}", each.text) for each in form.fields}


def answered(form: FormAsked | None, given: Mapping[str, str]) -> str:
    """A field that is as it is shown is not sent: its secrets are not shown."""
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
    """Does what a page asks; ConsoleError if that cannot be. `told`: the child's lines by then; `form`: what waits."""
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
            raise ConsoleError("a question needs words")
        case "say":
            _tell(child, told, said(words))
        case other:
            raise ConsoleError(f"a run cannot be told to {other!r}")


def _tell(child: Child, told: str, line: str, form: str = "") -> None:
    if not child.tell(line, int(told) if told.isdecimal() else -1, form):
        raise ConsoleError("this was not sent: the conversation has gone on or ended since the page was loaded")


# What a conversation waits for: a pure function over the turns of its trace and what is known of its child.

type Word = Literal["running", "question", "approval", "form", "elsewhere", "over"]
"""`elsewhere`: a process that is not this console's writes its trace. `over`: none does."""


@dataclass(frozen=True)
class ConversationState:
    word: Word
    calls: tuple[object, ...] = ()
    """Those that wait for approval, as the run put them out."""
    form: FormAsked | None = None


def state_of(
    ended: Sequence[Sequence[Run]],
    asked: int | None,
    form: FormAsked | None = None,
    *,
    is_written: bool = False,
    converses: bool = True,
) -> ConversationState:
    """`ended`: of each turn that has an end, in order, the runs of strategies; `is_written`: by any process.

    `asked`: how many questions the child got, each of which is a turn; None without a child that goes on. `form`: that
    of a flow, which waits. `converses`: whether the child is a chat; any other command reads no questions.
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


# What the page of a run says about going on with it.

ENDED = 128 + signal.SIGTERM
"""The exit code of a command that the console ended."""


@dataclass(frozen=True)
class WaitingConversation:
    state: ConversationState
    told: int
    awaited: tuple[str, float] | None
    """What is under way, with a name if it has one, and since when in seconds since 1970."""
    suggestion: str
    printed: str
    """By a command that could not start or has failed, without colours; of one that starts the last line."""
    command: str
    """For a terminal; empty for a run that no form started."""


def form_of(child: Child | None, seen: ReadTrace) -> FormAsked | None:
    """The flow's that waits; it takes a moment until the flow goes on after an answer."""
    is_answered = child is not None and seen.form is not None and seen.form.form == child.answered
    if is_answered:
        return None
    return seen.form


def waiting_of(folder: RunFolder, name: str, child: Child | None, seen: ReadTrace) -> WaitingConversation:
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
    """What the script's user says next, if the conversation so far is the script's; empty if there is nothing."""
    if setup is None or state.word not in {"question", "approval"}:
        return ""
    options = setup.options
    try:
        script = options.read_script(options.strategy)
    except (HostError, OSError):  # it was changed since
        return ""
    if not 0 < len(questions) <= len(script.then) or gist(questions[0]) != gist(script.query):
        return ""
    answers = [(each.query, each.approval) for each in script.then]
    query, approval = answers[len(questions) - 1]
    if state.word == "approval":
        return approval or query
    heard = all(words in said for words, said in zip(questions[1:], answers, strict=False))
    return query if heard else ""  # after another answer, the next words may answer what was never asked
