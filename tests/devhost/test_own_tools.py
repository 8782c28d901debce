"""Tools of a flow that come from no plugin: Dify's own, and those that a script answers for."""

import re
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from threading import Thread

import pytest

from devhost.case import Case
from devhost.errors import FlowFileError, RefusedCallError, ScriptError
from devhost.flow.checks import check_flow
from devhost.flow.document import FlowFile
from devhost.flow.outside import OutsideAccess
from devhost.flow.own_tools import answered_tools, beside_plugins, tools_of_dify
from devhost.flow.whole import WholeFlow
from devhost.limits import HostLimits
from devhost.protocol.wire import JsonObject
from devhost.script import Script
from support.flow_documents import START, answer, chain, chatflow, mixed, node

LIMITS = HostLimits()


def called(name: str, /, **parameters: object) -> str:
    """By a Tool node."""
    (tool,) = (each for each in tools_of_dify(LIMITS) if each.name == name)
    (message,) = tool.invoke(parameters, lambda *_: None, "")
    return str(message["message"]["text"])


def own(provider: str, name: str, kind: str = "builtin", **parameters: JsonObject) -> JsonObject:
    """A Tool node of a provider that no plugin has."""
    data = {"provider_id": provider, "provider_name": provider, "provider_type": kind, "tool_name": name}
    return node("tool", "use", **data, tool_label=name, tool_configurations={}, tool_parameters=parameters)


def flow(folder: Path, given: JsonObject) -> FlowFile:
    return FlowFile.read(chatflow(folder, [START, given, answer("{{#use.text#}}")], chain("start", "use", "answer")))


@pytest.mark.parametrize(
    ("name", "parameters", "text"),
    [
        ("weekday", {"year": 2024, "month": 2, "day": 29}, "February 29, 2024 is Thursday."),
        ("weekday", {"year": 2023, "month": "2", "day": 29}, "Invalid date: Year 2023, Month 2, Day 29."),
        ("localtime_to_timestamp", {"localtime": "2024-1-1 0:0:0"}, "1704038400"),
        ("localtime_to_timestamp", {"localtime": "2024-01-01 00:00:00", "timezone": "UTC"}, "1704067200"),
        ("localtime_to_timestamp", {"localtime": "2024-10-27 02:30:00", "timezone": "Europe/Berlin"}, "1729992600"),
        ("timestamp_to_localtime", {"timestamp": "1704038400"}, "2024-01-01 00:00:00"),
        ("timestamp_to_localtime", {"timestamp": 0, "timezone": "America/New_York"}, "1969-12-31 19:00:00"),
        ("timezone_conversion", {"current_time": "2024-01-01 12:00:00"}, "2024-01-01 13:00:00"),
        ("current_time", {"format": "here", "timezone": "Asia/Tokyo"}, "here"),
        ("current_time", {"timezone": "Atlantis"}, "Invalid timezone: Atlantis"),
    ],
)
def test_the_time_is_told_as_dify_tells_it(name: str, parameters: JsonObject, text: str) -> None:
    assert called(name, **parameters) == text


def test_the_time_now_has_a_zone() -> None:
    assert re.fullmatch(r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d UTC", called("current_time"))


def test_a_time_that_is_none_fails_the_tool_in_difys_words() -> None:
    with pytest.raises(RefusedCallError, match="Failed to invoke tool time: time data 'soon' does not match"):
        called("localtime_to_timestamp", localtime="soon")


def test_code_runs_in_a_process_of_its_own() -> None:
    assert called("simple_code", language="python3", code="print(6 * 7)") == "42\n"
    with pytest.raises(RefusedCallError, match="Only python3 and javascript are supported, not ruby"):
        called("simple_code", language="ruby", code="")


@pytest.fixture
def site() -> Iterator[str]:
    class Page(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            status = 200 if self.path == "/page" else 404
            self.send_response(status)
            self.send_header("Content-Type", "text/html; charset=utf-8")
            self.end_headers()
            self.wfile.write(b"<html><title>Fair</title><script>no()</script><p>In <b>May</b></p></html>")

        def log_message(self, *_: object) -> None:
            """Quiet."""

    server = HTTPServer(("127.0.0.1", 0), Page)
    thread = Thread(target=server.serve_forever)
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()
    thread.join()
    server.server_close()


def test_a_page_is_read_as_title_and_text(site: str) -> None:
    assert called("webscraper", url=f"{site}/page") == "\nTITLE: Fair\nAUTHOR: \nTEXT:\n\nIn\nMay\n"
    assert called("webscraper", url=f"{site}/gone") == "URL returned status code 404."
    assert called("webscraper", url="") == "Please input url"


@pytest.mark.parametrize(
    ("provider", "name", "sentence"),
    [
        ("code", "simple_code", "runs code on this machine, without a sandbox: allow it with --allow-code"),
        ("webscraper", "webscraper", "sends HTTP requests: allow it with --allow-http"),
        ("audio", "tts", "needs the speech models of Dify's workspace"),
        ("time", "noon", "which has no such tool; there are: current_time, localtime_to_timestamp, "),
    ],
)
def test_what_may_not_run_or_needs_dify_is_told_with_what_helps(
    tmp_path: Path, provider: str, name: str, sentence: str
) -> None:
    file = flow(tmp_path, own(provider, name))
    script = Script.model_validate({"tool_answers": {name: "stood in"}})

    with pytest.raises(FlowFileError) as refused:
        check_flow(file, {}, ())
    assert f"node 'Use' (use) uses {name} of Dify's own provider {provider}: {sentence}" in str(refused.value)
    assert "let the script answer: tool_answers: {NAME: TEXT}" in str(refused.value)
    assert check_flow(file, {}, (), answers=script.tool_answers) == ()


def test_the_time_needs_no_permission_and_code_has_none_without_one(tmp_path: Path) -> None:
    def beside(provider: str, name: str, allowed: OutsideAccess) -> list[str]:
        file = flow(tmp_path, own(provider, name))
        return [tool.name for tool in beside_plugins(file, {}, allowed, LIMITS, ())]

    assert beside("time", "weekday", OutsideAccess()) == ["weekday"]
    assert beside("code", "simple_code", OutsideAccess()) == []
    assert beside("code", "simple_code", OutsideAccess(code=True)) == ["simple_code"]


@pytest.mark.parametrize(
    ("kind", "words"),
    [("api", "a custom tool (OpenAPI)"), ("workflow", "a workflow tool")],
)
def test_a_tool_of_the_workspace_is_answered_by_a_script(tmp_path: Path, kind: str, words: str) -> None:
    given = own("2ebe9c1d", "order", kind, city=mixed("Bonn"))
    given["data"]["provider_name"] = "shop"
    file = flow(tmp_path, given)
    script = Script.model_validate({"tool_answers": {"shop/order": ["one", {"json": {"id": 2}}]}})

    with pytest.raises(FlowFileError) as refused:
        check_flow(file, {}, ())
    assert f"uses order of shop, {words}, which is in Dify's workspace alone: let the script answer" in str(
        refused.value
    )
    assert check_flow(file, {}, (), answers=script.tool_answers) == ()
    (tool,) = answered_tools(file, script.tool_answers)
    said = [next(iter(tool.invoke({}, lambda *_: None, "")))["message"] for _ in range(3)]
    assert said == [{"text": "one"}, {"json_object": {"id": 2}}, {"json_object": {"id": 2}}]
    assert [parameter["name"] for parameter in tool.entity["parameters"]] == ["city"]


def test_an_answer_for_a_tool_that_the_flow_does_not_have_is_refused(tmp_path: Path) -> None:
    script = Script.model_validate({"tool_answers": {"ordr": "x"}})

    played = WholeFlow(flow(tmp_path, own("2ebe9c1d", "order", "api")), {})
    with pytest.raises(ScriptError, match="tool_answers: the flow has no tool ordr"):
        played.check(Case(script, played), [script])
