"""The console's pages of tools: what can be called, a call as `devhost tool` does it, and what came of it."""

import re
import shlex
from collections.abc import Iterator
from html import unescape
from pathlib import Path
from urllib.parse import urlencode

import pytest

from devhost.console.found import shortened
from support.console import ConsoleClient, start_instead, words
from support.mcp_servers import COMMAND
from support.plugins import CHARTS, PUPPET, TOOLBOX
from support.waiting import wait_for

pytestmark = pytest.mark.processes

DRAW = {"tools": str(TOOLBOX), "name": "toolbox/draw"}
REPEAT = {**DRAW, "name": "toolbox/repeat"}


@pytest.fixture
def console(tmp_path: Path) -> Iterator[ConsoleClient]:
    console = ConsoleClient(tmp_path, PUPPET)
    yield console
    console.close()


def called(console: ConsoleClient, tool: dict[str, str], **given: str) -> str:
    """The page of the tool after the call, which has ended."""
    address = console.post("/tool", 303, do="call", **tool, **given)
    wait_for(lambda: 'name="do" value="stop"' not in console.get(address), "the call ends")
    return console.get(address)


def command(page: str) -> list[str]:
    found = re.search(r'<pre class="command"[^>]*>([^<]+)<', page)
    assert found
    return shlex.split(unescape(found[1]))


def test_a_call_shows_what_was_sent_and_what_came(console: ConsoleClient, tmp_path: Path) -> None:
    page = called(console, DRAW, **{"p.size": "300"})

    shown = words(page)
    assert "finished after" in shown
    assert "Sent size 300" in shown
    assert "Messages image_link" in shown
    assert '"document_name": "Drawing for all"' in shown
    assert "Files picture.png image/png · 300 bytes" in shown
    assert command(page)[1:] == ["tool", "toolbox/draw", "--tools", str(shortened(TOOLBOX)), "--arg", "size=300"]
    assert 'id="p.size" name="p.size" value="300"' in page, "the form keeps what was typed"
    next_console = ConsoleClient(tmp_path, PUPPET)
    assert "finished after" in words(next_console.get(f"/tool?{urlencode(DRAW)}"))
    assert console.console.folder.names() == [], "a call is not a run"


def test_a_page_is_sent_again_only_when_the_call_goes_on(console: ConsoleClient) -> None:
    page = called(console, REPEAT, **{"p.word": "tea", "p.times": "3"})
    assert "tea" in words(page).partition("Messages")[2]
    (address,) = re.findall(r'hx-get="([^"]+)"', page)

    assert console.get(unescape(address), 204) == ""


@pytest.mark.parametrize(
    ("tool", "given", "sentence", "target"),
    [
        (DRAW, {}, "tool draw needs size", None),
        (DRAW, {"p.size": "big"}, "size", "p.size"),
        ({**DRAW, "name": "gone"}, {}, "there is no tool 'gone'", None),
        ({"tools": "/nowhere", "name": "draw"}, {}, "/nowhere is not a plugin", None),
        ({"mcp": "never connected", "name": "draw"}, {}, "connect it on the page of tools", None),
        ({"name": "draw"}, {}, "choose a tool of the list", None),
    ],
)
def test_what_cannot_be_called_is_said_and_nothing_starts(
    console: ConsoleClient,
    tool: dict[str, str],
    given: dict[str, str],
    sentence: str,
    target: str | None,
) -> None:
    is_of_form = tool is DRAW

    page = console.post("/tool", 422 if is_of_form else 400, do="call", **tool, **given)

    assert sentence in words(page)
    if target is not None:
        assert f'<a href="#{target}">' in page
    assert not list(console.console.folder.path.iterdir())


def test_what_the_command_printed_is_shown_where_it_has_no_result(
    console: ConsoleClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("CHARTS_API_KEY", raising=False)
    page = called(console, {"tools": str(CHARTS), "name": "charts/export_table"}, **{"p.rows": "1,2"})

    assert "CHARTS_API_KEY" in words(page)
    assert "finished" not in words(page)


def test_a_call_is_stopped(console: ConsoleClient, monkeypatch: pytest.MonkeyPatch) -> None:
    start_instead(monkeypatch, "import time; time.sleep(10**6)")
    address = console.post("/tool", 303, do="call", **REPEAT, **{"p.word": "tea"})
    assert 'value="stop"' in console.get(address)
    assert "is already running" in words(console.post("/tool", 422, do="call", **REPEAT, **{"p.word": "rice"}))

    assert console.post("/tool", 303, do="stop", **REPEAT) == address

    wait_for(lambda: 'value="stop"' not in console.get(address), "the call is over")


def test_the_tools_of_a_server_are_listed_and_called(console: ConsoleClient) -> None:
    assert console.post("/tools", mcp=COMMAND) == "/tools"
    listed = console.get("/tools")
    addresses = {unescape(address) for address in re.findall(r'<li data-entry><a href="([^"]+)"', listed)}
    repeat = next(address for address in addresses if address.startswith("/tool?mcp=") and address.endswith("repeat"))

    assert "text" in words(console.get(repeat))
    source = {"mcp": COMMAND, "name": repeat.partition("name=")[2].replace("%2F", "/")}
    after = called(console, source, **{"p.text": "hello", "p.times": "2"})
    assert "hello" in words(after).partition("Messages")[2]
    assert "--mcp" in command(after)


def test_a_server_that_does_not_start_is_named(console: ConsoleClient) -> None:
    page = console.post("/tools", 422, mcp="no-such-program-anywhere")

    assert "no-such-program-anywhere" in words(page)
    assert 'href="#mcp"' in page
