"""The list of tools of plugins and MCP servers, and a page that calls a tool as `devhost tool` does."""

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from hashlib import sha256
from pathlib import Path
from urllib.parse import urlencode

from pydantic import ConfigDict, TypeAdapter
from starlette.responses import RedirectResponse, Response

from devhost.console.children import answer_of
from devhost.console.folder import OUTPUT, changed_at, last_printed
from devhost.console.forms import WRONG, InputField, Mistake, in_words_of_the_page
from devhost.console.found import find, label_of, shortened
from devhost.console.setup import TYPED, Values, lines_in, typed
from devhost.console.web import NOTHING_NEW, Console, version_of
from devhost.direct import AskedTool, by_parameter, find_tool
from devhost.errors import ConsoleError, HostError
from devhost.files import LocalFile
from devhost.limits import HostLimits
from devhost.page.contents import ShownFile, shown_file
from devhost.plugin.declaration import FILES, Parameter, PluginDeclaration, ProvidedTool
from devhost.protocol.wire import JsonObject
from devhost.text import json_or, read_file
from devhost.tools.entity import typed_values

LISTED: TypeAdapter[list[ProvidedTool]] = TypeAdapter(list[ProvidedTool], config=ConfigDict(defer_build=True))
RESULT = ".tool.json"
"""The suffix of a file, beside the runs, with the output of `devhost tool --json`."""
MOST_BYTES = 64 * 1024 * 1024
PLUGIN = "tools"
SERVER = "mcp"
"""`PLUGIN` and `SERVER` name the field with the tool's source: the folder of a plugin or the command of a server."""


def _declared(folder: Path) -> Sequence[ProvidedTool]:
    return list(PluginDeclaration.read(folder).tools)


def _first_line(tool: ProvidedTool) -> str:
    return tool.declared.description.human.en_US.partition("\n")[0]


# The list of tools.

type Listed = tuple[str, str, str]
"""The name of a tool, its address, and what it does."""


def _listed(source: Values, tools: Sequence[ProvidedTool]) -> list[Listed]:
    return [
        (tool.names[1], f"/tool?{urlencode({**source, 'name': tool.names[1]})}", _first_line(tool)) for tool in tools
    ]


def _groups(console: Console) -> Iterator[tuple[str, list[Listed], str]]:
    """Yields the name of each plugin or server, its tools, and the error if they cannot be read."""
    for server, tools in console.servers.items():
        yield f"MCP server {server}", _listed({SERVER: server}, tools), ""
    for folder in find(console.plugin, console.folder.path).of("tool plugin"):
        try:
            yield label_of(folder), _listed({PLUGIN: str(folder)}, _declared(folder)), ""
        except HostError as error:
            yield label_of(folder), [], str(error)


def tools(console: Console, asked: Values, mistake: str = "") -> Response:
    groups = list(_groups(console))
    return console.page("tools.html.j2", _status(mistake), groups=groups, server=asked.get(SERVER, ""), mistake=mistake)


def _status(mistake: object) -> int:
    if mistake:
        return 422
    return 200


def connect(console: Console, given: Values) -> Response:
    """Starts the server once to list its tools. Each call starts the server again, as `devhost tool` does."""
    server = given.get(SERVER, "").strip()
    if not server:
        return tools(console, given, "give the command or the address of a server")
    try:
        told = json.loads(answer_of(("tool", "--mcp", server, "--json", "--no-color")))
        console.servers[server] = LISTED.validate_python(told["tools"])
    except WRONG as error:
        return tools(console, given, str(error))
    return RedirectResponse("/tools", 303)


# One tool: its form and its last call.


@dataclass(frozen=True)
class _Called:
    """A tool on its page of the console."""

    console: Console
    source: Values
    tool: ProvidedTool

    @classmethod
    def of(cls, console: Console, given: Values) -> "_Called":
        if given.get(SERVER):
            server = given[SERVER]
            if server not in console.servers:
                raise ConsoleError("this console is not connected to that MCP server: connect it on the page of tools")
            source = {SERVER: server}
            there_are = console.servers[server]
        elif given.get(PLUGIN):
            folder = shortened(Path(given[PLUGIN]))
            source = {PLUGIN: str(folder)}
            there_are = _declared(folder)
        else:
            raise ConsoleError("the address names no plugin: choose a tool of the list")
        return cls(console, source, find_tool(there_are, given.get("name", "")))

    @property
    def name(self) -> str:
        return self.tool.names[1]

    @property
    def address(self) -> Values:
        return {**self.source, "name": self.name}

    @cached_property
    def key(self) -> str:
        """The name of the child process. No run has this name."""
        words = re.sub(r"\W+", "-", self.name)
        return f"tool-{words[:60]}-{sha256(repr(sorted(self.address.items())).encode()).hexdigest()[:8]}"

    @property
    def result(self) -> Path:
        return self.console.folder.beside(self.key, RESULT)

    @property
    def printed(self) -> Path:
        return self.console.folder.beside(self.key, OUTPUT)

    @property
    def version(self) -> str:
        child = self.console.children.of(self.key)
        return version_of(child and child.exit_code, changed_at(self.result), changed_at(self.printed))

    def fields(self, values: Values) -> list[InputField]:
        return [InputField.of(each, None, values) for each in self.tool.declared.parameters]

    def texts(self, values: Values) -> dict[str, str]:
        """Returns the text of each parameter that is filled in, without parameters for files."""
        filled = (each for each in self.tool.declared.parameters if each.type not in FILES)
        texts = {each.name: values.get(TYPED + each.name, "") for each in filled}
        return {name: text for name, text in texts.items() if text}

    def files(self, values: Values) -> list[tuple[str, str]]:
        """Returns the parameter and the path of each file."""
        takers = (each for each in self.tool.declared.parameters if each.type in FILES)
        return [(each.name, path) for each in takers for path in lines_in(values, TYPED + each.name)]

    def check(self, values: Values) -> None:
        """Reads everything that `devhost tool` reads before it starts the tool. Raises HostError or OSError."""
        declared = self.tool.declared
        read = [(name, LocalFile.read(Path(path), HostLimits())) for name, path in self.files(values)]
        AskedTool.of(self.tool, typed_values(declared, self.texts(values)), by_parameter(declared, read))

    def arguments(self, values: Values) -> list[str]:
        """Returns the arguments of `devhost tool` as a person would type them."""
        asked = ["tool", self.name]
        if SERVER in self.source:
            asked += ["--mcp", self.source[SERVER]]
        else:
            asked += ["--tools", self.source[PLUGIN]]
        for name, text in self.texts(values).items():
            asked += ["--arg", f"{name}={text}"]
        for name, path in self.files(values):
            asked += ["--file", f"{name}={path}"]
        return asked


@dataclass(frozen=True)
class Outcome:
    """The result of the last call, from its JSON output."""

    report: JsonObject

    @property
    def messages(self) -> Sequence[tuple[str, object]]:
        """The type and the content of each message."""
        return [(str(each.get("type")), _said(each)) for each in self.report["messages"]]

    @property
    def files(self) -> list[ShownFile]:
        return list(map(shown_file, self.report["files"]))

    @property
    def error(self) -> Mapping[str, object]:
        return self.report.get("error") or {}


def _said(message: JsonObject) -> object:
    match message:
        case {"type": "text" | "link", "message": {"text": str(text)}, "meta": None}:
            return text
        case {"type": "json", "message": {"json_object": value}}:
            return value
        case _:
            return _without_nulls({name: value for name, value in message.items() if name != "type"})


def _without_nulls(value: object) -> object:
    """Returns the value without fields that are null. A message about a source has a dozen null fields."""
    match value:
        case dict():
            return {name: _without_nulls(each) for name, each in value.items() if each is not None}
        case list():
            return [_without_nulls(each) for each in value]
        case _:
            return value


def _outcome(file: Path) -> Outcome | None:
    """Returns the result of the last call, or `None` if there was no call or it printed no report."""
    try:
        report = json_or(read_file(file, MOST_BYTES), None)
    except OSError:
        return None
    if isinstance(report, dict) and {"messages", "files", "variables", "findings"} <= report.keys():
        return Outcome(report)
    return None


def one_tool(console: Console, asked: Values) -> Response:
    called = _Called.of(console, asked)
    if asked.get("seen") == called.version:
        return Response(status_code=NOTHING_NEW)
    return _page(called, console.calls.get(called.key, {}))


def _page(called: _Called, values: Values, mistake: Mistake | None = None) -> Response:
    console = called.console
    version = called.version
    child = console.children.of(called.key)
    goes_on = console.children.is_running(called.key)
    outcome = None
    if not goes_on:
        outcome = _outcome(called.result)
    printed = ""
    if child is not None and outcome is None:
        printed = last_printed(called.printed)
    return console.page(
        "one_tool.html.j2",
        _status(mistake),
        tool=called.tool,
        name=called.name,
        address=called.address,
        source=next(iter(called.source.values())),
        fields=called.fields(values),
        outcome=outcome,
        printed=printed,
        goes_on=goes_on,
        began=child and child.began,
        command=typed(called.arguments(values)),
        version=version,
        mistake=mistake,
    )


def call(console: Console, given: Values) -> Response:
    """Calls the tool, or ends the running call if the field `do` is "stop"."""
    called = _Called.of(console, given)
    child = console.children.of(called.key)
    if given.get("do") == "stop":
        if child is not None:
            child.end()
        return RedirectResponse(f"/tool?{urlencode(called.address)}", 303)
    values = {name: text for name, text in given.items() if name.startswith(TYPED)}
    try:
        called.check(values)
        arguments = (*called.arguments(values), "--json", "--no-color")
        console.children.start(called.key, arguments, called.result, called.printed)
    except WRONG as error:
        return _page(called, values, _mistake(called.tool.declared.parameters, error))
    console.calls[called.key] = values
    return RedirectResponse(f"/tool?{urlencode(called.address)}", 303)


def _mistake(parameters: Sequence[Parameter], error: Exception) -> Mistake:
    """Returns the error as a mistake, with the field that it is about, if there is one."""
    sentence = in_words_of_the_page(str(error), {})
    place = getattr(error, "field", "").rpartition(".")[2]
    found = next((each for each in parameters if each.name == place), None)
    if found is None:
        return Mistake("", "", sentence)
    return Mistake(f"{TYPED}{found.name}", found.label.en_US, sentence)
