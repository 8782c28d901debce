"""What a case expects of its runs, or of a turn of a flow, as pydantic checks it, and whether what was found fits."""

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from typing import Annotated, Any, Self

import jsonschema_rs
from pydantic import AfterValidator, BeforeValidator, Field, NonNegativeFloat
from pydantic_core import PydanticCustomError

from devhost.errors import ScriptError, naming
from devhost.models.scripted.script import Script, Scripted, SomeTurns, Texts, listed, one_sentence
from devhost.node.outputs.run import Run, ToolCall
from devhost.node.texts import ThoughtSpans
from devhost.text import json_value, validator_of, worded

# One expectation and what came of it.


@dataclass(frozen=True)
class Check:
    name: str
    """The expectation's key in words, such as `text contains`."""
    expected: str
    found: str = ""
    """What was there instead; empty if the run fits."""
    remark: str = ""
    """Such as the reason of a judge."""
    score: float | None = None
    """Of a check that gives one."""

    @property
    def passed(self) -> bool:
        return not self.found

    @property
    def sentence(self) -> str:
        """For a check that failed."""
        return f"{self.name}: expected {self.expected}; found {self.found}"


# The parts of an expectation. Each says whether what was found fits.


def _schema(schema: dict[str, Any]) -> dict[str, Any]:
    try:
        validator_of(schema)
    except ValueError as error:
        raise PydanticCustomError("json_schema", "not a JSON Schema: {error}", {"error": str(error)}) from error
    return schema


def _equal(value: object) -> object:
    """A value alone must be equal."""
    if isinstance(value, dict):
        return value
    return {"equals": value}


def _bounds(value: object) -> object:
    """A number alone is the upper bound."""
    if isinstance(value, int | float) and not isinstance(value, bool):
        return {"at_most": value}
    return value


def _named(value: object) -> object:
    """`search` and `{search: {language: ja}}`."""
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
"""Characters of a value in a sentence."""


class ValueExpected(Scripted):
    """Of a text, or of a value in JSON."""

    contains: Texts = ()
    lacks: Texts = ()
    matches: Annotated[tuple[re.Pattern[str], ...], BeforeValidator(listed)] = ()
    """Regular expressions of Python, searched anywhere; `^` and `$` match at each line."""
    equals: Annotated[Any, BeforeValidator(json_value)] = None
    """Null is a value, too."""
    json_schema: _Schema | None = None
    """The text is JSON that fits."""

    def checks(self, name: str, value: object) -> Iterator[Check]:
        text = value if isinstance(value, str) else _as_json(value)
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
    """The value at a path such as `plan.0`; LookupError with the names at the place where the path ends."""
    for name in path.split("."):
        inside = {str(number): value for number, value in enumerate(values)} if isinstance(values, list) else values
        if not isinstance(inside, Mapping) or name not in inside:
            raise LookupError(f"nothing; {naming(inside if isinstance(inside, Mapping) else ())}")
        values = inside[name]
    return values


class ExpectedCall(Scripted):
    name: str
    arguments: Annotated[dict[str, Any], BeforeValidator(json_value)] = Field(default_factory=dict)
    """Those that matter, with their values; the tool may have been given others too."""

    def fits(self, call: ToolCall) -> bool:
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


class CallsExpected(Scripted):
    exactly: _Calls | None = None
    """These and no others, in this order."""
    in_order: _Calls = ()
    """These in this order; others may stand between them."""
    at_least: _Calls = ()
    never: _Calls = ()

    @property
    def every(self) -> tuple[ExpectedCall, ...]:
        return (*(self.exactly or ()), *self.in_order, *self.at_least, *self.never)

    def checks(self, name: str, calls: Sequence[ToolCall]) -> Iterator[Check]:
        made = _in_a_row(calls)
        if self.exactly is not None:
            same = len(calls) == len(self.exactly) and all(map(ExpectedCall.fits, self.exactly, calls))
            yield Check(f"{name} exactly", _in_a_row(self.exactly), "" if same else made)
        if self.in_order:
            following = iter(calls)
            found = all(any(each.fits(call) for call in following) for each in self.in_order)
            yield Check(f"{name} in order", _in_a_row(self.in_order), "" if found else made)
        if self.at_least:
            yield Check(f"{name} at least", _in_a_row(self.at_least), "" if _among(self.at_least, calls) else made)
        for never in self.never:
            made_anyway = [call for call in calls if never.fits(call)]
            yield Check(f"{name} never", str(never), _in_a_row(made_anyway) if made_anyway else "")


def _in_a_row(calls: Sequence[ToolCall | ExpectedCall]) -> str:
    return ", ".join(map(str, calls)) or "no call"


def _among(expected: Sequence[ExpectedCall], calls: Sequence[ToolCall]) -> bool:
    """Whether each expected call has a call of its own; those that say most of their call choose first."""
    left = list(calls)
    for each in sorted(expected, key=lambda each: len(each.arguments), reverse=True):
        found = next((call for call in left if each.fits(call)), None)
        if found is None:
            return False
        left.remove(found)
    return True


class Bounds(Scripted):
    at_least: NonNegativeFloat | None = None
    at_most: NonNegativeFloat | None = None

    def checks(self, name: str, value: float) -> Iterator[Check]:
        if self.at_least is not None:
            yield Check(name, f"at least {self.at_least:,g}", "" if value >= self.at_least else f"{value:,g}")
        if self.at_most is not None:
            yield Check(name, f"at most {self.at_most:,g}", "" if value <= self.at_most else f"{value:,g}")


type BoundsOrMost = Annotated[Bounds, BeforeValidator(_bounds)]


class PriceExpected(Bounds):
    """Of all model calls, in the currency of the model."""

    def checks(self, name: str, value: float, *, is_known: bool = True) -> Iterator[Check]:
        for check in super().checks(name, value):
            if is_known:
                yield check
            else:
                yield replace(check, found="no price is known of the model")


type PriceOrMost = Annotated[PriceExpected, BeforeValidator(_bounds)]


# Scores: numbers that compare an answer with a reference, or that a Python function gives. Reports have their means.


def _reference(value: object) -> object:
    """A text alone is the reference."""
    if isinstance(value, str):
        return {"to": value}
    return value


class SimilarExpected(Scripted):
    """How similar the answer is to a reference text, from 0 to 1.

    It is RapidFuzz's ratio, the share of characters that both have in the same order; capitals, punctuation and white
    space around words do not count.
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
    """`my_module:function`, which has to give at least 1, or true."""
    if isinstance(value, str):
        return {"function": value}
    return value


class ScoreExpected(Scripted):
    """What a Python function says of a run; `devhost.evaluation.scoring` calls it."""

    function: Annotated[
        str,
        Field(pattern=r"^[A-Za-z_]\w*(\.[A-Za-z_]\w*)*:[A-Za-z_]\w*$"),
        one_sentence("should be module:function, such as my_scores:is_polite"),
    ]
    at_least: float | None = None
    """1 if at_most is not given either."""
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
        """Of its check."""
        return f"score {self.function}"


type _Scores = Annotated[
    tuple[Annotated[ScoreExpected, BeforeValidator(_function)], ...],
    BeforeValidator(listed),
]


class SourcesExpected(Scripted):
    cited: Texts = ()
    """Each is part of the title or the document of a source that the answer cites."""
    at_least: NonNegativeFloat | None = None
    at_most: NonNegativeFloat | None = None

    def checks(self, name: str, cited: Sequence[str]) -> Iterator[Check]:
        found = ", ".join(cited) or "none"
        for part in self.cited:
            yield Check(f"{name} cited", part, "" if any(part in source for source in cited) else found)
        yield from Bounds(at_least=self.at_least, at_most=self.at_most).checks(f"{name} cited", len(cited))


class JudgeExpected(Scripted):
    rubric: Annotated[str, Field(min_length=1)]
    """What a good answer is, for the model that judges."""
    turns: SomeTurns | None = None
    """What a scripted judge says; `when` is searched in the question and answer that it reads."""


# What came of the runs of a case, and whether it fits what the case expects.


@dataclass(frozen=True)
class Observed:
    """Of a conversation: text, sources and stop reason of its last run, the sums of all runs."""

    text: str
    """Without thoughts."""
    error: str | None = None
    calls: tuple[ToolCall, ...] = ()
    stop_reason: str = ""
    """Empty if the strategy reports none."""
    sources: tuple[str, ...] = ()
    """Title and document of each that the answer cites."""
    rounds: int = 0
    """As the strategy reports them; of one that reports none, the number of its model calls."""
    tokens: int = 0
    price: str = "0"
    currency: str = "USD"
    seconds: float = 0.0
    findings: tuple[str, ...] = ()
    """The rules of Dify that the runs broke."""

    @property
    def failed_calls(self) -> int:
        return sum(bool(call.error) for call in self.calls)

    @property
    def errors_of_calls(self) -> tuple[str, ...]:
        """Why calls failed, as `find_parts: KeyError: 'wordy', tools/find_parts.py:14`."""
        return tuple(f"{call.name}: {call.error}" for call in self.calls if call.error)

    @property
    def has_known_price(self) -> bool:
        """A model whose price is not known counts tokens, and no price."""
        return not self.tokens or Decimal(self.price) > 0

    @classmethod
    def of(cls, runs: Sequence[Run]) -> "Observed":
        last = runs[-1]
        return cls(
            text=without_thoughts(last.outputs.text),
            error=None if last.error is None else f"{last.error.kind}: {last.error.message}",
            calls=tuple(call for run in runs for call in run.calls.tools.values()),
            stop_reason=last.ending.stop_reason,
            sources=tuple(_cited(last.outputs.variables.get("sources"))),
            rounds=sum(map(rounds_of, runs)),
            tokens=sum(run.calls.spent["total_tokens"] for run in runs),
            price=str(sum((Decimal(run.calls.spent["total_price"]) for run in runs), Decimal(0))),
            currency=last.calls.spent["currency"],
            seconds=round(sum(run.elapsed_seconds for run in runs), 3),
            findings=tuple(dict.fromkeys(finding.rule for run in runs for finding in run.findings)),
        )


def without_thoughts(text: str) -> str:
    spans = ThoughtSpans()
    said = [*spans.feed(text), *spans.finish()]
    return "".join(part for is_thought, part in said if not is_thought).strip()


def _cited(sources: object) -> list[str]:
    listed = sources if isinstance(sources, list) else []
    return [
        f"{source.get('title') or ''} ({source.get('document_id') or ''})"
        for source in listed
        if isinstance(source, dict) and source.get("cited")
    ]


def rounds_of(run: Run) -> int:
    """As its strategy says, or else the number of model calls."""
    for value in run.outputs.json_of_strategy():
        match value:
            case {"decision_summary": {"rounds": int(rounds)}}:
                return rounds
    return run.asked.get("llm", 0)


# Whether a run fits what its case expects.


class Expected(Scripted):
    """Of a conversation with a strategy."""

    text: ValueOrEqual | None = None
    error: ValueOrEqual | None = None
    """Of the last run, which then has to fail."""
    calls: CallsExpected | None = None
    failed_calls: BoundsOrMost | None = None
    stop_reason: Texts = ()
    """Any of these."""
    sources: SourcesExpected | None = None
    rounds: BoundsOrMost | None = None
    tokens: BoundsOrMost | None = None
    seconds: BoundsOrMost | None = None
    price: PriceOrMost | None = None
    similar: Annotated[SimilarExpected, BeforeValidator(_reference)] | None = None
    score: _Scores = ()
    judge: JudgeExpected | None = None

    @classmethod
    def of(cls, script: Script) -> Self | None:
        """What a script expects; ScriptError if that cannot be read."""
        with worded(lambda why: ScriptError(f"{script.place}: expect: {why}")):
            if script.expect is None:
                return None
            return cls.model_validate(script.expect)

    def checks(self, observed: Observed) -> Iterator[Check]:
        """All but those of judges and Python functions. A run that failed fits no case."""
        if self.error is not None:
            yield from self.error.checks("error", observed.error or "")
        elif observed.error is not None:
            yield Check("run", "it ends without an error", observed.error)
        if self.stop_reason:
            found = "" if observed.stop_reason in self.stop_reason else observed.stop_reason or "none"
            yield Check("stop_reason", " or ".join(self.stop_reason), found)
        for name in ("text", "calls", "sources", "rounds", "tokens", "seconds"):
            expected = getattr(self, name)
            if expected is not None:
                yield from expected.checks(name, getattr(observed, name))
        if self.failed_calls is not None:
            yield from failed_calls_checks(self.failed_calls, observed)
        if self.price is not None:
            yield from self.price.checks("price", float(observed.price), is_known=observed.has_known_price)
        if self.similar is not None:
            yield from self.similar.checks("similar", observed.text)


def failed_calls_checks(bounds: Bounds, observed: Observed) -> Iterator[Check]:
    """A check that fails says why the calls failed."""
    for check in bounds.checks("failed_calls", observed.failed_calls):
        if check.passed:
            yield check
        else:
            reasons = "; ".join(dict.fromkeys(observed.errors_of_calls))
            yield replace(check, found=f"{check.found}: {reasons}".removesuffix(": "))
