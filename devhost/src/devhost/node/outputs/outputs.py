"""Builds the Agent node's outputs from a strategy's messages, and collects the findings about them."""

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from decimal import Decimal, InvalidOperation
from typing import Annotated, Any

from pydantic import BaseModel, BeforeValidator, ConfigDict, PlainSerializer, StrictFloat, StrictInt, ValidationError

from devhost.errors import InvocationError, NodeFailedError
from devhost.limits import HostLimits
from devhost.node.messages import FileMessages, Message, ToolFileStore, names_a_file, read_message
from devhost.node.texts import NodeText
from devhost.protocol.structs import agent_message
from devhost.protocol.wire import FILE_LINKS, JsonObject
from devhost.text import describe
from devhost.words import MOST_DIGITS

NODE_ID = "agent"
REFUSED = "refused"
"""The status that this repository's strategies log for a tool call that they did not send."""
OPEN = "start"
"""The status of a log entry that has begun but not ended."""
LOGGED = ("id", "parent_id", "error", "status", "data", "label")
"""The fields that a log entry copies from its message, in the order of `outputs.json`."""
DEEPEST = 24
"""The maximum depth of the log tree. Dify has no limit, but no readable log is so deep, and a page cannot show it."""


@dataclass
class LogEntry:
    """An entry of the log, with the entries below it."""

    id: str
    parent_id: str | None
    label: str
    status: str
    error: str | None
    data: JsonObject
    metadata: JsonObject
    children: list["LogEntry"] = field(default_factory=list)

    @property
    def every(self) -> Iterator["LogEntry"]:
        """The entry itself and all entries below it."""
        yield self
        for child in self.children:
            yield from child.every

    @property
    def unsaid(self) -> JsonObject:
        """The entry's data without what its label already says: an entry `NOTE x` may have `note: x`."""
        return {name: value for name, value in self.data.items() if self.label != f"{name.upper()} {value}"}

    @property
    def is_refused(self) -> bool:
        """Whether the entry is a tool call that the strategy refused to send.

        A call that the user did not approve has no error, so it does not count.
        """
        return bool(self.error) and self.data.get("status") == REFUSED

    @property
    def reason(self) -> str:
        """Why the entry failed. For a refused call, this includes the answer that the model got."""
        told = self.data.get("tool_response")
        if not self.is_refused or not isinstance(told, str):
            return self.error or ""
        return f"{self.error}: {re.sub(r'^tool [a-z ]+ error: ', '', told)}"

    def stored(self) -> JsonObject:
        """Returns the entry as in `outputs.json`."""
        return {**{name: getattr(self, name) for name in LOGGED}, "metadata": self.metadata, "node_id": NODE_ID}

    def tree(self) -> JsonObject:
        return {**self.stored(), "children": [child.tree() for child in self.children]}


class AgentLog:
    """The entries of a strategy's log."""

    def __init__(self) -> None:
        self.entries: dict[str, LogEntry] = {}

    def add(self, body: JsonObject) -> None:
        """Adds an entry, or updates the entry with this id, which keeps its position and its parent."""
        kept: JsonObject = {name: body.get(name) for name in LOGGED}
        entry = LogEntry(**kept, metadata=body.get("metadata") or {})
        if known := self.entries.get(entry.id):
            entry.parent_id = known.parent_id
        self.entries[entry.id] = entry

    def roots(self) -> list[LogEntry]:
        """Returns the entries at the top of the tree. An entry is at the top if its parent is missing or came later.

        Entries below the deepest level become siblings, so that the depth of a tree is limited.
        """
        roots: list[LogEntry] = []
        below: dict[str | None, tuple[list[LogEntry], int]] = {}
        """Maps an entry's id to the list for the entries below it, and to their level."""
        for entry in self.entries.values():
            siblings, level = below.get(entry.parent_id, (roots, 1))
            siblings.append(entry)
            entry.children = []
            if level < DEEPEST:
                below[entry.id] = (entry.children, level + 1)
            else:
                below[entry.id] = (siblings, level)
        return roots


# A node's usage from `execution_metadata`, read by the rules of graphon 0.7, which have been strict since 0.3.1.

WORKFLOW_TOTALS = ("total_tokens", "total_price", "currency")
"""The keys of `execution_metadata` whose values Dify stores next to the outputs, unchanged."""
TOKENS = ("prompt_tokens", "completion_tokens", "total_tokens")
Seconds = Annotated[StrictInt | StrictFloat, PlainSerializer(float)]


class _Metadata(BaseModel):
    model_config = ConfigDict(title="_LLMUsageMetadataInput")

    prompt_tokens: StrictInt = 0
    completion_tokens: StrictInt = 0
    total_tokens: StrictInt = 0
    prompt_unit_price: Decimal = Decimal(0)
    completion_unit_price: Decimal = Decimal(0)
    total_price: Decimal = Decimal(0)
    currency: Annotated[str, BeforeValidator(str)] = "USD"
    prompt_price_unit: Decimal = Decimal(0)
    completion_price_unit: Decimal = Decimal(0)
    prompt_price: Decimal = Decimal(0)
    completion_price: Decimal = Decimal(0)
    latency: Seconds = 0.0
    time_to_first_token: Seconds | None = None
    time_to_generate: Seconds | None = None


def read_usage(metadata: Mapping[str, object]) -> JsonObject:
    """Parses the usage in `execution_metadata`. Raises NodeFailedError for a value of the wrong type."""
    try:
        read = _Metadata.model_validate(dict(metadata))
    except ValidationError as error:
        raise NodeFailedError(
            "usage-types",
            f"execution_metadata: {describe(error)}; the node fails after its text has been streamed",
            shows=str(error),
        ) from error
    if read.total_tokens == 0 and (read.prompt_tokens > 0 or read.completion_tokens > 0):
        read.total_tokens = read.prompt_tokens + read.completion_tokens
    return read.model_dump(mode="json")  # prices become strings, and seconds become floats


def no_usage() -> JsonObject:
    """Returns the usage of a node that got no JSON message, or a list in the last one.

    As in graphon, the prices are 0.0.
    """
    prices = [name for name, field in _Metadata.model_fields.items() if field.annotation is Decimal]
    return _Metadata.model_validate(dict.fromkeys(prices, "0.0")).model_dump(mode="json")


def spent(usages: Iterable[Mapping[str, object]]) -> JsonObject:
    """Adds up the tokens, prices and seconds that model responses reported. The last response sets the currency."""
    reported = list(usages)
    counts = {name: sum(int(_number(usage.get(name))) for usage in reported) for name in TOKENS}
    currencies = [str(usage["currency"]) for usage in reported if usage.get("currency")]
    return {
        **counts,
        "total_price": str(sum((_number(usage.get("total_price")) for usage in reported), Decimal(0))),
        "currency": (currencies or ["USD"])[-1],
        "latency": round(float(sum(_number(usage.get("latency")) for usage in reported)), 3),
    }


def _number(value: object) -> Decimal:
    """Parses a number, or returns 0 for anything else. Prices are sent as strings."""
    try:
        number = Decimal(str(value))
    except InvalidOperation:
        return Decimal(0)
    if number.is_finite() and abs(number.adjusted()) < MOST_DIGITS:
        return number
    return Decimal(0)


NOT_LOOKED_AT = frozenset({"output-schema-invalid", "output-schema-misfit", "tool-says-nothing", "variable-missing"})
"""Rules that Dify does not check. Dify uses `output_schema` only to list variables."""


@dataclass(frozen=True)
class Finding:
    """A rule that the run broke, which is either Dify's or one that only devhost has.

    A broken rule does not always fail the run.
    """

    rule: str
    sentence: str

    @property
    def is_of_dify(self) -> bool:
        """Whether Dify itself checks the rule."""
        return self.rule not in NOT_LOOKED_AT


def _without(value: object, variables: JsonObject) -> object:
    """Returns an object without the values that repeat a variable, and without objects that become empty."""
    if not isinstance(value, dict) or not value:
        return value
    if value == variables:
        return {}
    known = [each for each in variables.values() if each not in (None, "", [], {})]
    return {key: rest for key, item in value.items() if item not in known and (rest := _without(item, variables)) != {}}


@dataclass(frozen=True)
class NodeOutputs:
    """The outputs of an Agent node, under the names that other nodes use, and its log tree."""

    text: str = ""
    """The text as newer versions of Dify store it, with every `<think>` closed."""
    files: list[JsonObject] = field(default_factory=list)
    json: list[Any] = field(default_factory=list)
    usage: Any = field(default_factory=no_usage)
    variables: JsonObject = field(default_factory=dict)
    logs: list[LogEntry] = field(default_factory=list)
    dropped_retriever_resources: int = 0
    workflow_totals: JsonObject = field(default_factory=dict)
    """The values of `execution_metadata` that Dify keeps for the totals of the whole workflow."""

    def json_of_strategy(self) -> list[Any]:
        """Returns the strategy's own objects, without the log entries before them and the placeholder for missing JSON.

        Values that repeat a variable are left out at any depth, because variables are shown separately.
        """
        logged = self.json[sum(1 for root in self.logs for _ in root.every) :]
        values = (_without(value, self.variables) for value in logged if value != {"data": []})
        return [value for value in values if value != {}]

    @property
    def pending_calls(self) -> list[Any]:
        """The tool calls that wait for the user's answer, which strategies put into the variable `pending_calls`."""
        calls = self.variables.get("pending_calls")
        if isinstance(calls, list):
            return calls
        return []

    def by_name(self) -> JsonObject:
        """Returns the outputs and variables by the names that other nodes use."""
        named = {"text": self.text, "usage": self.usage, "files": self.files, "json": self.json}
        return {**named, **self.variables}


class OutputsFold:
    """Builds the outputs of a node from the messages of a strategy."""

    def __init__(self, files: ToolFileStore, limits: HostLimits, declared: frozenset[str] = frozenset()) -> None:
        """`declared` are the variables in the strategy's output_schema."""
        self.messages: list[JsonObject] = []
        """All messages as they were received."""
        self._declared = declared
        self._store = files
        self._file_messages = FileMessages(files, limits, self._found)
        self._text = NodeText()
        self._files: list[JsonObject] = []
        self._json: list[Any] = []
        self._usage = no_usage()
        self._workflow_totals: JsonObject = {}
        self._variables: JsonObject = {}
        self._log = AgentLog()
        self._dropped_resources = 0
        self._findings: list[Finding] = []

    def decoded(self, said: Any) -> JsonObject:  # noqa: ANN401 - any value that the plugin streamed
        """Returns a message in the form in which the daemon passes it on.

        The result is meant for `add`. Raises InvocationError, which ends the run.
        """
        try:
            return agent_message(said)
        except InvocationError as failure:
            self._found("message-malformed", str(failure))
            raise

    def add(self, data: JsonObject) -> Iterator[Message]:
        """Adds one message and yields the messages for the page, with links instead of bytes."""
        self.messages.append(data)
        try:
            for message in self._file_messages.transform(read_message(data)):
                self._add(message)
                yield from self._text.read(message)
        except NodeFailedError as failure:
            self._found(failure.rule, str(failure))
            raise

    def play(self, said: Iterable[JsonObject]) -> Iterator[Message]:
        """Adds all messages and yields the messages for the page. A thought that is still open is closed at the end."""
        for data in said:
            yield from self.add(data)
        yield from self._text.finish()

    def outputs(self) -> NodeOutputs:
        logs = [entry.stored() for entry in self._log.entries.values()]
        return NodeOutputs(
            text=self._text.passed,
            files=list(self._files),
            json=[*logs, *(self._json or [{"data": []}])],
            usage=self._variables.get("usage", dict(self._usage)),
            variables=dict(self._variables),
            logs=self._log.roots(),
            dropped_retriever_resources=self._dropped_resources,
            workflow_totals=dict(self._workflow_totals),
        )

    def findings(self, *, was_stopped: bool = False) -> Iterator[Finding]:
        """Yields the findings about single messages, then those about the finished outputs.

        Log entries and thoughts that are still open are not findings if a person stopped the run.
        """
        yield from self._findings
        for entry in self._log.entries.values():
            if entry.status == OPEN and not was_stopped:
                yield Finding("log-left-open", f"log {entry.label!r} was not finished: Dify shows it as running")
        if self._text.is_open and not was_stopped:
            yield Finding(
                "think-left-open",
                "a <think> is never closed (a quoted one counts too): in the chat it swallows all that follows; "
                "newer Dify puts a </think> at the end, but not where two messages share the tag",
            )
        for by in dict.fromkeys(self._text.repairs):
            sentence = f"a <think> was open when {by} came: newer Dify puts a </think> before it"
            yield Finding("think-closed-early", sentence)
        for name in self._variables:
            if name not in self._declared | {"usage"}:
                sentence = f"variable {name!r} is not in the strategy's output_schema: no other node can choose it"
                yield Finding("variable-not-declared", sentence)

    def _add(self, message: Message) -> None:
        body = message.body
        match message.type:
            case kind if kind in FILE_LINKS or (kind == "link" and names_a_file(message)):
                self._add_file(message)
            case "json":
                self._add_json(body["json_object"])
            case "variable":
                self._add_variable(body)
            case "log":
                self._add_log(body)
            case "retriever_resources":
                self._dropped_resources += len(body["retriever_resources"])

    def _add_file(self, message: Message) -> None:
        file = self._store.find(message.text, message.meta)
        if file is None:
            sought = message.meta.get("tool_file_id") or message.text.rpartition("/")[2].partition(".")[0]
            raise NodeFailedError(
                "file-link-without-tool-file",
                f"{message.type} {message.text!r} has no tool file; "
                "send a file of your own as a blob, and an image from elsewhere as an image message",
                shows=f"Tool file '{sought}' does not exist",
            )
        self._files.append(file.output())

    def _add_json(self, value: object) -> None:
        """Adds a JSON message. Its execution_metadata replaces the usage; without such metadata, the usage is reset."""
        had_usage = self._usage["total_tokens"] > 0
        rest = value
        metadata = None
        if isinstance(value, dict):
            rest = {key: item for key, item in value.items() if key != "execution_metadata"}
            metadata = value.get("execution_metadata")
        if metadata is not None and not isinstance(metadata, dict):
            raise NodeFailedError("usage-types", "execution_metadata must be an object")
        if isinstance(value, dict):
            self._usage = read_usage(metadata or {})
        else:
            self._usage = no_usage()
        self._workflow_totals = {name: metadata[name] for name in WORKFLOW_TOTALS if metadata and name in metadata}
        if had_usage and metadata:
            self._found("usage-replaced", "a second execution_metadata replaced the first: Dify does not add them up")
        elif had_usage:
            self._found(
                "usage-reset", "a JSON message without execution_metadata came after the usage and reset it to zero"
            )
        if rest:
            self._json.append(rest)

    def _add_variable(self, body: JsonObject) -> None:
        name = body["variable_name"]
        value = body.get("variable_value")
        if name == "usage":
            self._found("variable-hides-usage", "a variable called 'usage' overwrites the node's usage")
        if body.get("stream"):
            value = f"{self._variables.get(name, '')}{value}"
        self._variables[name] = value

    def _add_log(self, body: JsonObject) -> None:
        self._log.add(body)
        elapsed = (body.get("metadata") or {}).get("elapsed_time")
        if elapsed is not None and (isinstance(elapsed, bool) or not isinstance(elapsed, int | float)):
            self._found(
                "log-elapsed-time", f"log {body['label']!r} has elapsed_time {elapsed!r}: the panel breaks on it"
            )

    def _found(self, rule: str, sentence: str) -> None:
        self._findings.append(Finding(rule, sentence))
