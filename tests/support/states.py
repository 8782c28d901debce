"""Hypothesis strategies for the state of a conversation."""

import json
from collections.abc import Sequence

from hypothesis import strategies as st

from internal.memory.records import (
    AnswerRecord,
    CallRecord,
    EntryRecord,
    FileRecord,
    FindingRecord,
    PlanRecord,
    RoundRecord,
    SourceRecord,
    State,
    SubtaskRecord,
    SummaryRecord,
    ToolRecord,
    UserRecord,
)
from tests.support.generators import json_objects, readable_text

_texts = readable_text.map(lambda text: text.replace("\0", ""))
_arguments = json_objects.map(lambda value: json.dumps(value, ensure_ascii=False))
_numbers = st.integers(0, 2**53)


_attached = st.lists(st.builds(FileRecord, name=_texts, url=_texts, size=_numbers), max_size=2).map(tuple)


def calls(results: st.SearchStrategy[str | None]) -> st.SearchStrategy[CallRecord]:
    named = {"id": _texts, "provider": _texts, "tool": _texts, "setting": _texts}
    return st.builds(CallRecord, **named, arguments=_arguments, attached=_attached, result=results)


def _rounds(results: st.SearchStrategy[str | None]) -> st.SearchStrategy[EntryRecord]:
    return st.builds(RoundRecord, said=_texts, calls=st.lists(calls(results), min_size=1, max_size=3).map(tuple))


_findings = st.lists(st.builds(FindingRecord, subtask=_texts, answer=_texts, completed=st.booleans()), max_size=2)
_lines = st.lists(_texts, max_size=2).map(tuple)
_users = st.builds(UserRecord, text=_texts, files=_lines, context=_texts, findings=_findings.map(tuple))
_finished: st.SearchStrategy[EntryRecord] = _users | _rounds(_texts) | st.builds(AnswerRecord, text=_texts)
_conversations = st.lists(_finished, max_size=6)


def _subtasks(entries: Sequence[EntryRecord]) -> st.SearchStrategy[SubtaskRecord]:
    said = {"name": _texts, "answer": _texts, "nearest": _texts, "advised": _lines, "completed": st.booleans()}
    return st.builds(SubtaskRecord, **said, attempts=_numbers, rounds=_numbers, entries=st.just(tuple(entries)))


@st.composite
def states(draw: st.DrawFn) -> State:
    """Any state that a run could leave: finished, or with calls that wait, in a plan or not."""
    entries = [*draw(st.lists(st.builds(SummaryRecord, text=_texts), max_size=1)), *draw(_conversations)]
    source = st.builds(SourceRecord, number=st.integers(1, 999), title=_texts, document_id=st.none() | _texts)
    sources, numbers = tuple(draw(st.lists(source))), (draw(_numbers), draw(_numbers))
    skills = tuple(draw(st.lists(_texts, max_size=3)))
    found = tuple(draw(st.lists(st.builds(ToolRecord, provider=_texts, tool=_texts, setting=_texts), max_size=3)))
    state = State(strategy=draw(_texts), entries=tuple(entries), sources=sources, found=found, skills=skills)
    state = state.model_copy(update=dict(zip(("last_source", "last_call"), numbers, strict=True)))
    match draw(st.sampled_from(["nothing waits", "calls wait", "a plan waits"])):
        case "calls wait":
            return state.model_copy(update={"entries": (*entries, draw(_waiting_rounds("call")))})
        case "a plan waits":
            lasts = [draw(_waiting_rounds(f"subtask {index}")) for index in range(draw(st.integers(1, 3)))]
            conversations = [[*draw(_conversations), last] for last in lasts] + draw(st.sampled_from([[], [[]]]))
            subtasks = tuple(draw(_subtasks(each)) for each in conversations)
            update = {"entries": (*entries, draw(_users)), "plan": PlanRecord(subtasks=subtasks)}
            return state.model_copy(update=update)
    return state


@st.composite
def _waiting_rounds(draw: st.DrawFn, prefix: str) -> RoundRecord:
    """A round in which at least one call waits, under an id of its own."""
    drawn = [*draw(st.lists(calls(st.none() | _texts), max_size=3)), draw(calls(st.none()))]
    named = (
        call if call.result is not None else call.model_copy(update={"id": f"{prefix} {index}"})
        for index, call in enumerate(drawn)
    )
    return RoundRecord(said=draw(_texts), calls=tuple(named))
