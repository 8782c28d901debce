"""The tools of a flow that do not come from a plugin: Dify's own tools, and tools that a script answers for."""

import calendar
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import partial
from html.parser import HTMLParser
from zoneinfo import ZoneInfo

import httpx

from devhost.errors import RefusedCallError, naming
from devhost.flow.document import FlowFile
from devhost.flow.outside import JAVASCRIPT, PYTHON, CodeError, OutsideAccess, run_program
from devhost.flow.tools import STAND_IN, NamedTool, named_entries
from devhost.limits import HostLimits
from devhost.models.scripted.script import RecordedPart
from devhost.plugin.casting import cast_for_call
from devhost.plugin.declaration import Parameter
from devhost.process.session import Answer
from devhost.protocol.wire import JsonObject
from devhost.tools.entity import ToolName, filled, meant_tool
from devhost.tools.recorded import message_of
from devhost.tools.tool import Tool, text_message

TIME = "%Y-%m-%d %H:%M:%S"


@dataclass
class OwnTool:
    """One of Dify's own tools, implemented by a function. Exceptions become error messages as in Dify."""

    provider: str
    name: str
    parameters: Mapping[str, str | JsonObject]
    """The type or the full declaration of each parameter. A parameter that has only a type is required."""
    function: Callable[[JsonObject], str]
    entity: JsonObject = field(init=False)

    def __post_init__(self) -> None:
        self.entity = entity_of(self.provider, self.name, self.parameters)

    def invoke(self, parameters: JsonObject, _answer: Answer, request_id: str, /) -> Iterator[JsonObject]:
        declared = [Parameter.model_validate(parameter) for parameter in self.entity["parameters"]]
        given = cast_for_call(declared, parameters, by_plugin=bool(request_id))
        try:
            text = self.function(given)
        except (ValueError, KeyError, OSError, CodeError, httpx.HTTPError) as error:
            raise RefusedCallError(f"Failed to invoke tool {self.provider}: {error}") from error
        yield text_message(text)


def entity_of(provider: str, name: str, parameters: Mapping[str, str | JsonObject]) -> JsonObject:
    identity = {"author": "Dify", "name": name, "label": {"en_US": name}, "provider": provider, "icon": ""}
    declared = [_declared(key, given) for key, given in parameters.items()]
    description = {"human": {"en_US": name}, "llm": name}
    return filled({"identity": identity, "parameters": declared, "description": description})


def _declared(name: str, given: str | JsonObject) -> JsonObject:
    label = {"en_US": name}
    usual = {"name": name, "label": label, "human_description": label, "llm_description": "", "form": "llm"}
    if isinstance(given, str):
        return {**usual, "type": given, "required": True}
    return {**usual, **given}


# Dify's provider `time`, rewritten from its source. Time zones are not checked against Dify's list.


def _zone(name: object) -> ZoneInfo:
    try:
        return ZoneInfo(str(name))
    except (ValueError, OSError, KeyError):
        raise ValueError(repr(name)) from None


def _in_zone(text: object, name: object) -> datetime:
    """Returns the point in time that a local time stands for.

    As in Dify, a repeated or skipped hour counts as standard time.
    """
    local = datetime.strptime(str(text), TIME).replace(tzinfo=_zone(name))
    if local.dst():
        later = local.replace(fold=1)
        if not later.dst():
            return later
    return local


def _current_time(given: JsonObject) -> str:
    name = given.get("timezone", "UTC")
    written = given.get("format") or f"{TIME} %Z"
    if name == "UTC":
        return datetime.now(UTC).strftime(written)
    try:
        zone = _zone(name)
    except ValueError:
        return f"Invalid timezone: {name}"
    return datetime.now(zone).strftime(written)


def _to_timestamp(given: JsonObject) -> str:
    name = given.get("timezone", "Asia/Shanghai")
    if not name:
        return str(int(datetime.strptime(str(given.get("localtime")), TIME).astimezone().timestamp()))
    return str(int(_in_zone(given.get("localtime"), name).timestamp()))


def _from_timestamp(given: JsonObject) -> str:
    name = given.get("timezone", "Asia/Shanghai")
    moment = datetime.fromtimestamp(given.get("timestamp") or 0, UTC)
    if not name:
        return moment.astimezone().strftime(TIME)
    return moment.astimezone(_zone(name)).strftime(TIME)


def _converted(given: JsonObject) -> str:
    local = _in_zone(given.get("current_time"), given.get("current_timezone", "Asia/Shanghai"))
    return local.astimezone(_zone(given.get("target_timezone", "Asia/Tokyo"))).strftime(TIME)


def _weekday(given: JsonObject) -> str:
    year, month, day = (given.get(key) for key in ("year", "month", "day"))
    if month is None:
        raise ValueError("Month is required")
    try:
        date = datetime(int(year or 0), int(month), int(day or 0))  # noqa: DTZ001 - a date needs no time zone
    except ValueError:
        return f"Invalid date: Year {year}, Month {month}, Day {day}."
    return f"{calendar.month_name[date.month]} {date.day}, {date.year} is {calendar.day_name[date.weekday()]}."


# Dify's providers `code` and `webscraper`.


def _run_code(given: JsonObject, limits: HostLimits) -> str:
    language = given.get("language", PYTHON)
    if language not in {PYTHON, JAVASCRIPT}:
        raise ValueError(f"Only python3 and javascript are supported, not {language}")
    return run_program(str(language), str(given.get("code") or ""), limits)


AGENT = "Mozilla/5.0 (Windows NT 10.0; Win64; x64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/91.0.4472.124"
MOST_SECONDS = 30
MOST_BYTES = 10_000_000


def _read_page(given: JsonObject) -> str:
    """Returns the title and the text of a page. Dify itself extracts only the article, and also reads documents."""
    url = str(given.get("url") or "")
    if not url:
        return "Please input url"
    if given.get("generate_summary"):
        raise ValueError(
            "a summary needs a model of Dify's workspace: turn generate_summary off, or let the script answer"
        )
    headers = {"User-Agent": str(given.get("user_agent") or AGENT)}
    with httpx.stream("GET", url, headers=headers, follow_redirects=True, timeout=MOST_SECONDS) as response:
        if not response.is_success:
            return f"URL returned status code {response.status_code}."
        kind = response.headers.get("Content-Type", "").partition(";")[0].strip()
        if not kind.startswith("text/"):
            return f"Unsupported content-type [{kind or None}] of URL."
        content = b""
        for part in response.iter_bytes():
            content += part
            if len(content) > MOST_BYTES:
                raise ValueError(f"the page is larger than {MOST_BYTES:,} bytes")
        page = _PageText()
        page.feed(content.decode(response.encoding or "utf-8", errors="replace"))
    return f"\nTITLE: {' '.join(page.title).strip()}\nAUTHOR: \nTEXT:\n\n" + "\n".join(page.lines) + "\n"


class _PageText(HTMLParser):
    UNREAD = frozenset({"script", "style", "noscript", "template", "svg"})

    def __init__(self) -> None:
        super().__init__()
        self.title = list[str]()
        self.lines = list[str]()
        self._inside = list[str]()

    def handle_starttag(self, tag: str, _attributes: object) -> None:
        if tag in self.UNREAD or tag == "title":
            self._inside.append(tag)

    def handle_endtag(self, tag: str) -> None:
        if tag in self._inside:
            self._inside.remove(tag)

    def handle_data(self, data: str) -> None:
        text = " ".join(data.split())
        if text and "title" in self._inside:
            self.title.append(text)
        elif text and not self._inside:
            self.lines.append(text)


# The available tools, and those that a flow uses.

ZONE: JsonObject = {"type": "string", "required": False, "default": "Asia/Shanghai"}
OF_CODE = "runs code on this machine, without a sandbox: allow it with --allow-code"
OF_HTTP = "sends HTTP requests: allow it with --allow-http"
OF_AUDIO = "needs the speech models of Dify's workspace"


def tools_of_dify(limits: HostLimits) -> list[OwnTool]:
    """Returns those of Dify's own tools that devhost implements."""
    panel: JsonObject = {"type": "string", "form": "form", "required": False}
    zones = {"current_time": "string", "current_timezone": "string", "target_timezone": "string"}
    page: JsonObject = {"url": "string", "user_agent": panel, "generate_summary": {**panel, "type": "boolean"}}
    return [
        OwnTool("time", "current_time", {"format": {**panel, "default": TIME}, "timezone": panel}, _current_time),
        OwnTool("time", "localtime_to_timestamp", {"localtime": "string", "timezone": ZONE}, _to_timestamp),
        OwnTool("time", "timestamp_to_localtime", {"timestamp": "number", "timezone": ZONE}, _from_timestamp),
        OwnTool("time", "timezone_conversion", zones, _converted),
        OwnTool("time", "weekday", dict.fromkeys(("year", "month", "day"), "number"), _weekday),
        OwnTool("code", "simple_code", {"language": "string", "code": "string"}, partial(_run_code, limits=limits)),
        OwnTool("webscraper", "webscraper", page, _read_page),
    ]


OF_DIFY = frozenset({"time", "code", "webscraper", "audio"})


def why_not(provider: str, allowed: OutsideAccess) -> str | None:
    """Returns why the tools of one of Dify's own providers may not run, or None if they may."""
    match provider:
        case "code" if not allowed.code:
            return OF_CODE
        case "webscraper" if not allowed.http:
            return OF_HTTP
        case "audio":
            return OF_AUDIO
    return None


def names_of_dify(file: FlowFile) -> list[ToolName]:
    """Returns Dify's own tools that the flow uses, even those that devhost does not have or may not run."""
    return [entry.tool for entry in named_entries(file) if entry.tool[0] in OF_DIFY]


def not_of_dify(file: FlowFile, allowed: OutsideAccess, there_are: Iterable[ToolName]) -> Iterator[str]:
    """Yields a sentence for each of Dify's own tools that devhost cannot run and that no other tool replaces."""
    others = list(there_are)
    known = {(tool.provider, tool.name) for tool in tools_of_dify(HostLimits())}
    for entry in named_entries(file):
        provider, name = entry.tool
        if provider not in OF_DIFY or meant_tool(provider, name, others) is not None:
            continue
        why = why_not(provider, allowed)
        if why is None and entry.tool not in known:
            why = f"which has no such tool; {naming(sorted(each for of, each in known if of == provider))}"
        if why is not None:
            what = f"{entry.node} uses {name} of Dify's own provider {provider}"
            yield f"{what}: {why}, or let the script answer: {STAND_IN}"


# Tools that a script answers for: custom tools (OpenAPI), workflow tools, and tools without a plugin. The arguments of
# a call do not affect the answer.

type ToolAnswers = Mapping[str, Sequence[RecordedPart]]
"""The answers of each tool, by NAME or PROVIDER/NAME: one per call, in order. The last answer is repeated."""


@dataclass
class AnsweredTool:
    """A tool whose answers come from the script."""

    provider: str
    name: str
    answers: Sequence[RecordedPart]
    entity: JsonObject
    _asked: int = 0

    def invoke(self, _parameters: JsonObject, _answer: Answer, _request_id: str, /) -> Iterator[JsonObject]:
        turn = min(self._asked, len(self.answers) - 1)
        self._asked += 1
        if self.answers:
            yield message_of(self.answers[turn])


NO_ANSWERS: ToolAnswers = {}


def answered_names(file: FlowFile, answers: ToolAnswers) -> list[ToolName]:
    return [(tool.provider, tool.name) for tool in answered_tools(file, answers)]


def answered_tools(file: FlowFile, answers: ToolAnswers) -> list[Tool]:
    """Returns the tools that the script answers for, with the parameters that the flow's nodes set."""
    tools = dict[ToolName, Tool]()
    for entry in named_entries(file):
        for key in entry.keys:
            if key in answers and entry.tool not in tools:
                entity = entity_of(*entry.tool, dict.fromkeys(entry.parameters, _any(entry)))
                tools[entry.tool] = AnsweredTool(*entry.tool, answers[key], entity)
    return list(tools.values())


def _any(entry: NamedTool) -> JsonObject:
    """Declares an optional parameter: of any type for a Tool node, and a string for an Agent node.

    Every model supports strings.
    """
    if entry.node.type == "agent":
        return {"type": "string", "required": False}
    return {"type": "any", "required": False}


def unknown_answers(file: FlowFile, answers: Iterable[str]) -> list[str]:
    """Returns the keys that do not name a tool of the flow."""
    known = {key for entry in named_entries(file) for key in entry.keys}
    return sorted(set(answers) - known)


def beside_plugins(
    file: FlowFile, answers: ToolAnswers, allowed: OutsideAccess, limits: HostLimits, recorded: Iterable[ToolName]
) -> list[Tool]:
    """Returns Dify's own tools that the flow uses, and the tools that the script answers for.

    A recorded tool replaces one of Dify's own.
    """
    named = {entry.tool for entry in named_entries(file)} - set(recorded)
    own = [tool for tool in tools_of_dify(limits) if why_not(tool.provider, allowed) is None]
    return [*(tool for tool in own if (tool.provider, tool.name) in named), *answered_tools(file, answers)]
