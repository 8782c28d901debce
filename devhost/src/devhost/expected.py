"""Expectations for a node, a turn or a conversation, as pydantic models that check an observed result."""

import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Annotated, Any

import jsonschema_rs
from pydantic import AfterValidator, BeforeValidator, Field, GetPydanticSchema, NonNegativeFloat
from pydantic_core import PydanticCustomError, core_schema

from devhost.errors import naming
from devhost.models.scripted.script import ScriptModel, SomeTurns, Texts, listed, one_sentence
from devhost.node.outputs.run import SentToolCall
from devhost.observed import WELL, Observed
from devhost.text import json_value, validator_of
from devhost.trace.flow import FlowNode, FlowStatus, NodeStatus

# One expectation and its result.


@dataclass(frozen=True)
class Check:
    name: str
    """The expectation's key in words, such as `text contains`."""
    expected: str
    found: str = ""
    """What was found instead; empty if the expectation is met."""
    remark: str = ""
    """A remark, such as a judge's reason."""
    score: float | None = None
    """The score, if the check gives one."""

    @property
    def passed(self) -> bool:
        return not self.found

    @property
    def sentence(self) -> str:
        """A sentence about a failed check."""
        return f"{self.name}: expected {self.expected}; found {self.found}"


# The parts of an expectation. Each part checks an observed value.


def _schema(schema: dict[str, Any]) -> dict[str, Any]:
    try:
        validator_of(schema)
    except ValueError as error:
        raise PydanticCustomError("json_schema", "not a JSON Schema: {error}", {"error": str(error)}) from error
    return schema


def _equal(value: object) -> object:
    """Convert a bare value into `equals`."""
    if isinstance(value, dict):
        return value
    return {"equals": value}


def _bounds(value: object) -> object:
    """Convert a bare number into an upper bound."""
    if isinstance(value, int | float) and not isinstance(value, bool):
        return {"at_most": value}
    return value


def _named(value: object) -> object:
    """Convert `search` or `{search: {language: ja}}` into a name and arguments."""
    match value:
        case str():
            return {"name": value}
        case dict() if len(value) == 1 and isinstance(next(iter(value.values())), dict):
            ((name, arguments),) = value.items()
            return {"name": name, "arguments": arguments}
        case _:
            raise PydanticCustomError("call", "should be a tool's name, or {NAME: {ARGUMENT: VALUE}}")


type _Schema = Annotated[dict[str, Any], AfterValidator(_schema), BeforeValidator(json_value)]
LONGEST = 600
"""The maximum number of characters of a value in a sentence."""


class ValueExpected(ScriptModel):
    """The expectation for a text or a JSON value."""

    contains: Texts = ()
    lacks: Texts = ()
    matches: Annotated[tuple[re.Pattern[str], ...], BeforeValidator(listed)] = ()
    """Python regular expressions, searched anywhere in the text. `^` and `$` match at each line."""
    equals: Annotated[Any, BeforeValidator(json_value)] = None
    """The expected value. Null is a value, too."""
    json_schema: _Schema | None = None
    """A JSON Schema that the text, parsed as JSON, must match."""

    def checks(self, name: str, value: object) -> Iterator[Check]:
        if isinstance(value, str):
            text = value
        else:
            text = _as_json(value)
        said = _short(text)
        for part in self.contains:
            yield Check(f"{name} contains", part, "" if part in text else said)
        for part in self.lacks:
            yield Check(f"{name} lacks", part, said if part in text else "")
        for pattern in self.matches:
            fits = re.search(pattern.pattern, text, re.MULTILINE)
            yield Check(f"{name} matches", pattern.pattern, "" if fits else said)
        if "equals" in self.model_fields_set:
            are_texts = isinstance(self.equals, str) and isinstance(value, str)
            expected, found = (str(each).strip() if are_texts else _as_json(each) for each in (self.equals, value))
            yield Check(f"{name} equals", expected, "" if found == expected else _short(found))
        if self.json_schema is not None:
            why = _misfit(self.json_schema, text)
            yield Check(f"{name} fits the JSON Schema", _as_json(self.json_schema), why and f"{why}, in {said}")


type ValueOrEqual = Annotated[ValueExpected, BeforeValidator(_equal)]


def _short(text: str) -> str:
    if not text:
        return "no text"
    if len(text) <= LONGEST:
        return text
    return f"{text[:LONGEST]}…"


def _as_json(value: object) -> str:
    return json.dumps(value, ensure_ascii=False, sort_keys=True)


def _misfit(schema: dict[str, Any], text: str) -> str:
    try:
        validator_of(schema).validate(json.loads(text))
    except jsonschema_rs.ValidationError as error:
        return error.message
    except ValueError:
        return "not JSON"
    return ""


def found_at(values: object, path: str) -> object:
    """Return the value at a path such as `plan.0`. Raises LookupError with the names that exist where the path ends."""
    for name in path.split("."):
        inside = values
        if isinstance(values, list):
            inside = {str(number): value for number, value in enumerate(values)}
        if not isinstance(inside, Mapping) or name not in inside:
            raise LookupError(f"nothing; {naming(inside if isinstance(inside, Mapping) else ())}")
        values = inside[name]
    return values


class ExpectedCall(ScriptModel):
    name: str
    arguments: Annotated[dict[str, Any], BeforeValidator(json_value)] = Field(default_factory=dict)
    """The arguments that matter, with their values. The call may have other arguments, too."""

    def fits(self, call: SentToolCall) -> bool:
        given = call.arguments
        return self.name == call.name and all(
            name in given and given[name] == value for name, value in self.arguments.items()
        )

    def __str__(self) -> str:
        given = ", ".join(f"{name}={value!r}" for name, value in self.arguments.items())
        if given:
            return f"{self.name}({given})"
        return self.name


type _Calls = Annotated[tuple[Annotated[ExpectedCall, BeforeValidator(_named)], ...], BeforeValidator(listed)]


def _count_or_calls(value: object, calls: Callable[[object], object]) -> object:
    """Validate a count or calls. For a union, pydantic would report the mistakes of both members."""
    if isinstance(value, int) and not isinstance(value, bool) and value >= 0:
        return value
    return calls(value)


type _CallsOrCount = Annotated[
    int | tuple[ExpectedCall, ...],
    GetPydanticSchema(lambda _, handler: core_schema.no_info_wrap_validator_function(_count_or_calls, handler(_Calls))),
]
"""The number of calls, or the calls themselves."""


class Bounds(ScriptModel):
    at_least: NonNegativeFloat | None = None
    at_most: NonNegativeFloat | None = None

    def checks(self, name: str, value: float, found: str = "") -> Iterator[Check]:
        """Check the value against both bounds. `found` is a further description of the value."""
        said = f"{value:,g}{f': {found}' if found else ''}"
        if self.at_least is not None:
            yield Check(name, f"at least {self.at_least:,g}", "" if value >= self.at_least else said)
        if self.at_most is not None:
            yield Check(name, f"at most {self.at_most:,g}", "" if value <= self.at_most else said)


type BoundsOrMost = Annotated[Bounds, BeforeValidator(_bounds)]


class CallsExpected(ScriptModel):
    """How many tool calls are expected, or which ones."""

    exactly: _CallsOrCount | None = None
    """Exactly these calls, in this order."""
    at_least: _CallsOrCount = ()
    """At least these calls, in any order. There may be others."""
    at_most: _CallsOrCount | None = None
    """At most these calls, each no more often than it is listed here."""
    in_order: _Calls = ()
    """These calls in this order. Other calls may come between them."""
    never: _Calls = ()

    @property
    def every(self) -> Iterator[ExpectedCall]:
        for calls in (self.exactly, self.at_least, self.at_most, self.in_order, self.never):
            if isinstance(calls, tuple):
                yield from calls

    def checks(self, name: str, calls: Sequence[SentToolCall]) -> Iterator[Check]:
        made = _in_a_row(calls)
        yield from self._counts(name, calls)
        if isinstance(self.exactly, tuple):
            same = len(calls) == len(self.exactly) and all(map(ExpectedCall.fits, self.exactly, calls))
            yield Check(f"{name} exactly", _in_a_row(self.exactly), "" if same else made)
        if self.in_order:
            following = iter(calls)
            found = all(any(each.fits(call) for call in following) for each in self.in_order)
            yield Check(f"{name} in order", _in_a_row(self.in_order), "" if found else made)
        if isinstance(self.at_least, tuple) and self.at_least:
            fits = _matched(self.at_least, calls) == len(self.at_least)
            yield Check(f"{name} at least", _in_a_row(self.at_least), "" if fits else made)
        if isinstance(self.at_most, tuple):
            fits = _matched(self.at_most, calls) == len(calls)
            yield Check(f"{name} at most", _in_a_row(self.at_most), "" if fits else made)
        for never in self.never:
            made_anyway = [call for call in calls if never.fits(call)]
            yield Check(f"{name} never", str(never), _in_a_row(made_anyway) if made_anyway else "")

    def _counts(self, name: str, calls: Sequence[SentToolCall]) -> Iterator[Check]:
        made = "; ".join(dict.fromkeys(f"{call.name}: {call.error}" if call.error else str(call) for call in calls))
        if isinstance(self.exactly, int):
            if len(calls) == self.exactly:
                found = ""
            else:
                found = f"{len(calls)}{f': {made}' if made else ''}"
            yield Check(name, f"exactly {self.exactly}", found)
        least = None
        if isinstance(self.at_least, int):
            least = self.at_least
        most = None
        if isinstance(self.at_most, int):
            most = self.at_most
        yield from Bounds(at_least=least, at_most=most).checks(name, len(calls), made)


type CallsOrMost = Annotated[CallsExpected, BeforeValidator(_bounds)]
"""The expected calls. A bare number is the maximum number of calls."""


def _in_a_row(calls: Sequence[SentToolCall | ExpectedCall]) -> str:
    return ", ".join(map(str, calls)) or "no call"


def _matched(expected: Sequence[ExpectedCall], calls: Sequence[SentToolCall]) -> int:
    """Return how many expected calls can be matched, each to a different call.

    Calls with more expected arguments are matched first.
    """
    left = list(calls)
    for each in sorted(expected, key=lambda each: len(each.arguments), reverse=True):
        found = next((call for call in left if each.fits(call)), None)
        if found is not None:
            left.remove(found)
    return len(calls) - len(left)


class PriceExpected(Bounds):
    """The price of all model calls, in the currency of the model."""

    def checks(self, name: str, value: float, found: str = "", *, is_known: bool = True) -> Iterator[Check]:
        for check in super().checks(name, value, found):
            if is_known:
                yield check
            else:
                yield replace(check, found="the price of the model is unknown")


type PriceOrMost = Annotated[PriceExpected, BeforeValidator(_bounds)]


# Scores are numbers from a comparison with a reference or from a Python function. Reports contain their means.


def _reference(value: object) -> object:
    """Convert a bare text into a reference."""
    if isinstance(value, str):
        return {"to": value}
    return value


class SimilarExpected(ScriptModel):
    """The expected similarity of the answer to a reference text, from 0 to 1.

    The similarity is RapidFuzz's ratio: the share of characters that both texts have in the same order. Capitals,
    punctuation and white space around words are ignored.
    """

    to: Annotated[str, Field(min_length=1)]
    at_least: Annotated[float, Field(ge=0, le=1)] = 0.8

    def checks(self, name: str, text: str) -> Iterator[Check]:
        from rapidfuzz import fuzz, utils  # noqa: PLC0415 - a library that few cases need

        score = round(fuzz.ratio(text, self.to, processor=utils.default_process) / 100, 4)
        found = ""
        if score < self.at_least:
            found = f"{score:g}: {_short(text)}"
        yield Check(name, f"at least {self.at_least:g} to {_short(self.to)}", found, score=score)


def _function(value: object) -> object:
    """Convert a bare `my_module:function`, which has to return at least 1, or true."""
    if isinstance(value, str):
        return {"function": value}
    return value


class ScoreExpected(ScriptModel):
    """The expected score from a Python function, which `devhost.evaluation.scoring` calls."""

    function: Annotated[
        str,
        Field(pattern=r"^[A-Za-z_]\w*(\.[A-Za-z_]\w*)*:[A-Za-z_]\w*$"),
        one_sentence("should be module:function, such as my_scores:is_polite"),
    ]
    at_least: float | None = None
    """The lower bound. It is 1 if `at_most` is not given either."""
    at_most: float | None = None

    @property
    def lowest(self) -> float | None:
        if self.at_least is None and self.at_most is None:
            return 1.0
        return self.at_least

    def check(self, value: float, reason: str) -> Check:
        bounds = []
        if self.lowest is not None:
            bounds.append(f"at least {self.lowest:g}")
        if self.at_most is not None:
            bounds.append(f"at most {self.at_most:g}")
        is_low = self.lowest is not None and value < self.lowest
        is_high = self.at_most is not None and value > self.at_most
        found = ""
        if is_low or is_high:
            found = f"{value:g}"
        return Check(self.name, " and ".join(bounds), found, reason, score=value)

    @property
    def name(self) -> str:
        """The name of the check."""
        return f"score {self.function}"


type _Scores = Annotated[
    tuple[Annotated[ScoreExpected, BeforeValidator(_function)], ...],
    BeforeValidator(listed),
]


class SourcesExpected(ScriptModel):
    cited: Texts = ()
    """Texts that must each be part of the title or document of a source that the answer cites."""
    at_least: NonNegativeFloat | None = None
    at_most: NonNegativeFloat | None = None

    def checks(self, name: str, cited: Sequence[str]) -> Iterator[Check]:
        found = ", ".join(cited) or "none"
        for part in self.cited:
            yield Check(f"{name} cited", part, "" if any(part in source for source in cited) else found)
        yield from Bounds(at_least=self.at_least, at_most=self.at_most).checks(f"{name} cited", len(cited))


class JudgeExpected(ScriptModel):
    rubric: Annotated[str, Field(min_length=1)]
    """A description of a good answer, for the model that judges."""
    turns: SomeTurns | None = None
    """The turns of a scripted judge. `when` is searched in the question and answer that the judge reads."""


# Expectations for a node, a turn or a conversation.

type _Values = Mapping[str, ValueOrEqual]


class NodeExpected(ScriptModel):
    """The expectation for a node: for its last run in the turn, and for the calls of all its runs."""

    status: Annotated[tuple[NodeStatus | FlowStatus, ...], BeforeValidator(listed)] = ()
    """The allowed statuses."""
    error: ValueOrEqual | None = None
    outputs: _Values = Field(default_factory=dict)
    """The outputs by name. `plan.0` and `structured_output.topic` name a value inside an output."""
    text: ValueOrEqual | None = None
    calls: CallsOrMost | None = None
    failed_calls: CallsOrMost | None = None
    stop_reason: Texts = ()
    """The allowed stop reasons."""
    sources: SourcesExpected | None = None
    rounds: BoundsOrMost | None = None
    tokens: BoundsOrMost | None = None
    seconds: BoundsOrMost | None = None

    def checks(self, observed: Observed) -> Iterator[Check]:
        if self.status:
            because = f" ({observed.error})" if observed.error else ""
            if observed.status in self.status:
                wrong = ""
            else:
                wrong = f"{observed.status}{because}"
            yield Check("status", " or ".join(self.status), wrong)
        if self.error is not None:
            yield from self.error.checks("error", observed.error or "")
        yield from _values("output ", self.outputs, observed.outputs)
        if self.stop_reason:
            if observed.stop_reason in self.stop_reason:
                found = ""
            else:
                found = observed.stop_reason or "none"
            yield Check("stop_reason", " or ".join(self.stop_reason), found)
        for name in ("text", "calls", "sources", "rounds", "tokens", "seconds"):
            expected = getattr(self, name)
            if expected is not None:
                yield from expected.checks(name, getattr(observed, name))
        if self.failed_calls is not None:
            yield from self.failed_calls.checks("failed_calls", observed.failed)


class Expected(NodeExpected):
    """The expectation for a turn, or for a conversation: for its last turn and for the sums over all turns."""

    answer: ValueOrEqual | None = None
    """The answer of a chatflow."""
    conversation: _Values = Field(default_factory=dict)
    """The conversation variables after the turn."""
    ran: Texts = ()
    """The nodes that must run, by id or title."""
    not_run: Texts = ()
    nodes: Mapping[str, NodeExpected] = Field(default_factory=dict)
    """The expectations for nodes, by id or title. Each of these nodes must have run."""
    price: PriceOrMost | None = None
    similar: Annotated[SimilarExpected, BeforeValidator(_reference)] | None = None
    score: _Scores = ()
    judge: JudgeExpected | None = None

    def named(self) -> Iterator[tuple[str, str]]:
        """Yield each node that the expectation names, together with the key that names it."""
        for key, names in (("ran", self.ran), ("not_run", self.not_run), ("nodes", self.nodes)):
            yield from ((key, name) for name in names)

    def checks(self, observed: Observed, node: Callable[[str], FlowNode] | None = None) -> Iterator[Check]:
        """Yield all checks except those of judges and Python functions.

        If the run failed, a check fails, unless a status or an error is expected. `node` finds a node by its id or
        title, for messages about a node that did not run.
        """
        is_well = observed.status in WELL if observed.status else observed.error is None
        if not self.status and self.error is None and not is_well:
            because = f" ({observed.error})" if observed.error else ""
            yield Check("status", " or ".join(WELL), f"{observed.status or 'failed'}{because}")
        yield from super().checks(observed)
        if self.price is not None:
            yield from self.price.checks("price", float(observed.price), is_known=observed.has_known_price)
        if self.similar is not None:
            yield from self.similar.checks("similar", observed.text)
        if self.answer is not None:
            yield from _values("", {"answer": self.answer}, observed.outputs)
        yield from _values("conversation variable ", self.conversation, observed.conversation)
        last = {name: each for each in observed.nodes for name in (each.node.title, each.node.id)}
        ran = ", ".join(each.node.id for each in observed.nodes) or "no node"
        for name in self.ran:
            yield Check("ran", name, "" if name in last else ran)
        for name in self.not_run:
            yield Check("not_run", name, ran if name in last else "")
        for name, expected in self.nodes.items():
            if name in last:
                where = last[name].node
                found = [*expected.checks(last[name].observed)]
            else:
                if node is None:
                    where = FlowNode(name, "", "", {})
                else:
                    where = node(name)
                found = [Check("ran", "it runs", ran)]
            yield from (replace(check, name=f"{where}: {check.name}") for check in found)


def _values(place: str, expected: Mapping[str, ValueExpected], values: Mapping[str, object]) -> Iterator[Check]:
    for path, of_value in expected.items():
        try:
            yield from of_value.checks(f"{place}{path}", found_at(values, path))
        except LookupError as missing:
            yield Check(f"{place}{path}", "a value", str(missing))
