"""Converts the parts of a traced run into parts of a script: settings, files, tool outputs and model turns."""

import json
import re
import shutil
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from glob import escape
from itertools import chain
from pathlib import Path, PurePosixPath
from typing import Any, TypeGuard

from devhost.files import BESIDE_A_TRACE, SENT
from devhost.models.backend import ModelCallError
from devhost.models.scripted.script import ScriptedUsage
from devhost.node.messages import mime_type_of, safe_name, save_once
from devhost.node.outputs.run import Run, plugin_error
from devhost.node.parameters import files_among
from devhost.plugin.casting import is_file
from devhost.protocol.wire import FILE_LINKS, JsonObject
from devhost.scenario import FILES
from devhost.text import MASK, Secrets
from devhost.trace.runs import Call, WrittenCall, written_calls

# Secrets that a trace contains in pieces. They are hidden again where the pieces are joined.
#
# If a model streams a secret in several pieces, no piece contains the whole secret, so the trace contains the pieces.
# The run's outcome at the end of the trace has the whole text, with the secret replaced.


def hidden[T](value: T, outcomes: Iterable[Run]) -> T:
    """Return a copy of the same shape, in which the secrets that the outcomes hide are hidden, too."""
    masked = {text for outcome in outcomes for text in _texts(asdict(outcome)) if MASK in text}
    whole = [text for text in _texts(value) if text]
    return Secrets({found for text in masked for found in _found(text, whole)}).masked(value)


def _found(masked: str, texts: Iterable[str]) -> Iterator[str]:
    """Yield the texts that masks replace, found by a comparison with whole texts.

    A mask alone could stand for anything.
    """
    around = masked.split(MASK)
    if not any(part.strip() for part in around):
        return
    pattern = re.compile("(.{1,10000}?)".join(map(re.escape, around)), re.DOTALL)
    for text in texts:
        found = None
        if MASK not in text:
            found = pattern.fullmatch(text.strip())
        yield from found.groups() if found else ()


def _texts(value: object) -> Iterator[str]:
    match value:
        case str():
            yield value
        case dict():
            for item in value.values():
                yield from _texts(item)
        case list() | tuple():
            for item in value:
                yield from _texts(item)


# The files of a traced run, which are beside the trace, and their copies beside the script.


class KeptFiles:
    """The files of a traced run, which are copied for its script."""

    def __init__(self, trace: Path, script: Path | None) -> None:
        """Copy the files to a folder beside `script`. Without a script, no file is copied."""
        self._beside = trace.absolute().with_suffix(BESIDE_A_TRACE)
        if script is None:
            self._copies = None
        else:
            self._copies = script.absolute().with_suffix(BESIDE_A_TRACE)
        if script is None:
            self.home = Path()
        else:
            self.home = script.absolute().parent
        """The folder to which the script's paths are relative."""
        self.lacking: list[str] = []

    def sent(self, file: JsonObject) -> str | None:
        """Return the path of a question's file, or None if there is no copy of it."""
        return self._kept(file, self._candidates(self._beside / SENT, file))

    def made(self, file: JsonObject) -> str | None:
        """Return the path of a tool's file, which the node's output or the message's meta describes."""
        named = []
        if file.get("path"):
            named = [self._beside / Path(str(file["path"])).name]
        return self._kept(file, iter([*named, *self._candidates(self._beside, file)]))

    def _candidates(self, folder: Path, file: JsonObject) -> Iterator[Path]:
        """Yield the file itself, and files that were numbered because another file had the name."""
        name = Path(safe_name(str(file.get("filename") or "")))
        if folder.is_dir() and file.get("filename"):
            yield folder / name
            yield from sorted(folder.glob(f"{escape(name.stem)}-*{escape(name.suffix)}"))

    def _kept(self, file: JsonObject, candidates: Iterator[Path]) -> str | None:
        size = file.get("size")
        found = next((path for path in candidates if path.is_file() and size in (None, path.stat().st_size)), None)
        if found is None:
            name = str(file.get("filename") or "without a name")
            self.lacking.append(f"the file {name}: it is not in {self._beside.name}, the folder beside the trace")
            return None
        if self._copies is None:
            return str(found)
        copy = save_once(self._copies, found.name, found.read_bytes())
        shutil.copystat(found, copy)
        return str(PurePosixPath(self._copies.name, copy.name))


NODE = "recorded"
"""The node whose variables hold values that a script cannot write as constants."""


def settings(parameters: Mapping[str, object]) -> JsonObject:
    """Return the `params` and `variables` of a script, without the question.

    Empty values are left out, because Dify sends the default for them.
    """
    params: JsonObject = {}
    variables: JsonObject = {}
    for name, value in parameters.items():
        if name == "query" or value in (None, "", [], {}) or _is_model(value) or _are_tools(value):
            continue
        if is_file(value) or (isinstance(value, list) and all(map(is_file, value))):
            params[name] = {"variable": FILES}
        elif _is_plain(value):
            params[name] = value
        else:
            variable = f"{NODE}.{name[:30]}"
            params[name] = {"variable": variable}
            variables[variable] = value
    return {"params": params, "variables": variables}


def _is_plain(value: object) -> bool:
    """Return whether a script can send the value as a constant: it refers to no variable and cannot be a selector."""
    if isinstance(value, str):
        text = value
    else:
        text = json.dumps(value, ensure_ascii=False)
    return not isinstance(value, dict) and "{{#" not in text and not text.startswith("sys.")


def _is_model(value: object) -> TypeGuard[JsonObject]:
    return isinstance(value, dict) and value.get("type") == "model-selector"


def _are_tools(value: object) -> TypeGuard[list[JsonObject]]:
    return (
        isinstance(value, list)
        and bool(value)
        and all(
            isinstance(each, dict) and isinstance(each.get("identity"), dict) and "runtime_parameters" in each
            for each in value
        )
    )


def tools_in(parameters: Mapping[str, object]) -> list[JsonObject]:
    """Return the tools as Dify described them to the strategy."""
    return list(chain.from_iterable(filter(_are_tools, parameters.values())))


def model_in(parameters: Mapping[str, object]) -> JsonObject:
    """Return the strategy's parameter for its model; empty without a model."""
    return next(filter(_is_model, parameters.values()), {})


def model_card(parameters: Mapping[str, object]) -> JsonObject:
    """Return the value for the key `model` of a script."""
    selector: dict[str, Any] = model_in(parameters)
    entity = selector.get("entity") or {}
    properties = entity.get("model_properties") or {}
    facts = {
        "name": selector.get("model"),
        "features": entity.get("features"),
        "context_size": properties.get("context_size"),
    }
    return {name: fact for name, fact in facts.items() if fact is not None}


def files_in(parameters: Mapping[str, object]) -> Iterator[JsonObject]:
    """Yield each file of the question once."""
    yield from {str(file.get("url")): file for file in files_among(parameters)}.values()


# The tool calls of a run with their answers, as the calls in a script's section `recorded`.


def tool_calls(calls: Iterable[Call]) -> list[Call]:
    """Return the tool calls of the strategy itself, in the order in which they began."""
    return sorted((call for call in calls if call.kind == "tool" and not call.parent), key=lambda call: call.began)


def recorded_call(call: Call, made: Mapping[str, JsonObject], files: KeptFiles) -> JsonObject:
    """Convert a tool call. `made` contains the files of the run by id, as its output `files` describes them."""
    recorded: JsonObject = {"tool": call.name, "provider": call.provider, "arguments": call.arguments}
    if call.pieces:
        recorded["answer"] = [_part(piece.data, made, files) for piece in call.pieces]
    if call.error:
        recorded["error"] = call.error
    return recorded


def _part(message: JsonObject, made: Mapping[str, JsonObject], files: KeptFiles) -> JsonObject:
    match message:
        case {"type": "text", "message": {"text": str(text), **rest}, **others} if not (rest or others.get("meta")):
            return {"text": text}
        case {"type": "json", "message": {"json_object": dict() | list() as value, **rest}, **others} if not (
            rest or others.get("meta")
        ):
            return {"json": value}
        case {"type": str(kind), "meta": {"tool_file_id": file_id} as meta} if kind in FILE_LINKS:
            return _file(meta, made.get(str(file_id), {}), files)
        case _:
            return {"message": message}


def _file(meta: JsonObject, described: JsonObject, files: KeptFiles) -> JsonObject:
    """Convert a message with a file.

    A picture that Dify downloaded has no MIME type in its meta, but needs one to be sent as a picture.
    """
    facts = {**meta, **described}
    kept = files.made(facts)
    if kept is None:
        return {"text": f"[The file {facts.get('filename') or 'without a name'} is not in the recording.]"}
    mime_type = facts.get("mime_type") or mime_type_of(kept)
    own = {name: value for name, value in meta.items() if name != "tool_file_id"}  # the id is valid in one run only
    return {"file": kept, "meta": {**own, "mime_type": mime_type}}


# Lanes: the model calls of a run that belong together, if a strategy works on several things in parallel.
#
# Two calls are in one lane if the user messages of one begin with those of the other. The order of lanes may differ
# from run to run, so each lane's turns require a line that only its prompts have.

LONGEST_LINE = 300
"""The maximum length of the required line, in characters. A longer line would make the turn hard to see."""


@dataclass
class _Lane:
    asked: list[str]
    """The user messages of the longest prompt in the lane."""

    def takes(self, asked: list[str]) -> bool:
        shorter, longer = sorted((self.asked, asked), key=len)
        return longer[: len(shorter)] == shorter and bool(shorter) == bool(longer)


def _lanes(calls: Sequence[Call]) -> list[_Lane]:
    """Return the lane of each call."""
    found: list[_Lane] = []
    for asked in map(_user_messages, calls):
        lane = next((lane for lane in found if lane.takes(asked)), None) or _Lane(asked)
        lane.asked = max(lane.asked, asked, key=len)
        found.append(lane)
    return found


def _condition(call: Call, own: _Lane, lanes: Sequence[_Lane]) -> JsonObject:
    """Return the condition of a turn; empty in a run with one lane, and for a lane without a line of its own."""
    others = [lane for lane in lanes if lane is not own]
    for line in (line.strip() for message in _user_messages(call) for line in message.splitlines() if others):
        if line and len(line) <= LONGEST_LINE and not any(line in said for lane in others for said in lane.asked):
            return {"when_asked": line}
    return {}


def _user_messages(call: Call) -> list[str]:
    return [_words(message.get("content")) for message in call.prompt if message.get("role") == "user"]


def _words(content: object) -> str:
    if isinstance(content, list):
        return "".join(str(part.get("data")) for part in content if isinstance(part, dict) and "data" in part)
    return str(content or "")


# The model's answers in a run, as a script's turns.
#
# Texts and calls are joined from their streamed pieces. A failed call keeps the pieces that came before the error.

MODEL_CALLS = frozenset({"llm", "llm_structured_output"})
"""The types of backwards calls that a model answers."""


def model_calls(calls: Iterable[Call]) -> list[Call]:
    """Return the model calls of the strategy itself, in the order in which they began."""
    return sorted((call for call in calls if call.kind in MODEL_CALLS and not call.parent), key=lambda call: call.began)


def recorded_turns(calls: Sequence[Call]) -> list[JsonObject]:
    """Convert the calls of one run, as `model_calls` returns them, into turns."""
    lanes = _lanes(calls)
    return [{**_turn(call), **_condition(call, own, lanes)} for call, own in zip(calls, lanes, strict=True)]


def _turn(call: Call) -> JsonObject:
    """Convert a model call. The turn has the fields of the last chunk that differ from a script's defaults."""
    texts = list(call.texts)
    written = written_calls(call)
    turn: JsonObject = {"text": texts if call.error else "".join(texts), "tool_calls": list(map(_scripted, written))}
    if call.finish_reason not in {"", "tool_calls" if written else "stop"}:
        turn["finish_reason"] = call.finish_reason
    if call.usage or not call.error:
        if call.usage:
            turn["usage"] = _usage(call.usage)
        else:
            turn["usage"] = None
    if call.error:
        turn["error"] = {**_failure(call.error), "after_chunks": len(texts) + bool(written)}
    return {key: value for key, value in turn.items() if value not in ("", [])}


def _scripted(call: WrittenCall) -> JsonObject:
    """Convert a tool call. Arguments are a mapping if a script produces the same JSON from it, except for spaces."""
    values = call.values
    return {"name": call.name, "id": call.id, "arguments": values if isinstance(values, dict) else call.arguments}


def _usage(usage: JsonObject) -> JsonObject:
    """Return the usage without the values that a script's turn has by default."""
    known = {name: usage[name] for name in ScriptedUsage.model_fields if usage.get(name) not in {None, "USD"}}
    return {name: value for name, value in known.items() if name.endswith("tokens") or value not in {"0", 0}}


def _failure(words: str) -> JsonObject:
    """Return the type of a provider's error if a scripted model then fails with the same words, or else the words."""
    before, raised = plugin_error(words) or ("", None)
    if raised is not None and before:
        again = ModelCallError(raised.kind, raised.message).as_dify_words_it()
        if words == f"{before}{again}":
            return {"type": raised.kind, "message": raised.message}
    return {"words": words}
