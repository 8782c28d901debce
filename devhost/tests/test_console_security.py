"""Who may ask the console: only a browser that came by its address with the token."""

from pathlib import Path

import pytest
from starlette.testclient import TestClient

from devhost.console.app import HEADERS, application
from devhost.console.folder import RunFolder
from devhost.console.web import Console
from support.console import HOME, PORT, TOKEN


@pytest.fixture
def browser(tmp_path: Path) -> TestClient:
    app = application(Console(RunFolder(tmp_path)), PORT, TOKEN)
    return TestClient(app, base_url=HOME, follow_redirects=False)


def test_the_token_is_traded_for_a_cookie_and_leaves_the_address(browser: TestClient) -> None:
    traded = browser.get(f"/?token={TOKEN}&search=two+words")

    assert (traded.status_code, traded.headers["location"]) == (303, "/?search=two+words")
    assert {"HttpOnly", "SameSite=strict"} <= set(traded.headers["set-cookie"].split("; "))
    assert browser.get("/").status_code == 200


def test_the_traded_address_stays_on_this_host(browser: TestClient) -> None:
    assert browser.get(f"{HOME}//elsewhere.example/?token={TOKEN}").headers["location"] == "/elsewhere.example/"


@pytest.mark.parametrize("path", ["/", "/?token=wrong", "/static/console.css", "/runs/any"])
def test_without_the_token_nothing_is_answered(browser: TestClient, path: str) -> None:
    answer = browser.get(path)

    assert answer.status_code == 403
    assert "open the address that `devhost ui` printed" in answer.text


@pytest.mark.parametrize("host", [f"attacker.example:{PORT}", "127.0.0.1", f"127.0.0.1:{PORT + 1}", ""])
def test_another_host_is_refused_even_with_the_token(browser: TestClient, host: str) -> None:
    browser.get(f"/?token={TOKEN}")

    assert browser.get("/", headers={"host": host}).status_code == 403


@pytest.mark.parametrize("origin", ["https://attacker.example", "null", f"http://127.0.0.1:{PORT + 1}", None])
def test_what_changes_something_must_come_from_the_console_itself(browser: TestClient, origin: str | None) -> None:
    browser.get(f"/?token={TOKEN}")

    answer = browser.post("/", headers={} if origin is None else {"origin": origin})

    assert answer.status_code == 403
    assert "does not come from a page of this console" in answer.text
    assert browser.post("/", headers={"origin": HOME}).status_code == 405


@pytest.mark.parametrize(
    "path", ["/", "/static/console.css", "/runs/missing", "/runs/..%2F..%2Fetc%2Fpasswd", "/runs/%00", "/nowhere"]
)
def test_every_answer_has_the_headers(browser: TestClient, path: str) -> None:
    browser.get(f"/?token={TOKEN}")

    answer = browser.get(path)

    assert {name: answer.headers[name] for name in HEADERS} == HEADERS
    assert answer.status_code == (404 if "runs" in path or "nowhere" in path else 200)


@pytest.mark.parametrize("other", ["a/b=1", 'prefs={"a": "b, c"}', "=", "no sign of equality"])
def test_the_cookies_of_other_servers_on_this_machine_are_no_obstacle(browser: TestClient, other: str) -> None:
    own = f"devhost-{PORT}={TOKEN}"

    answers = [browser.get("/", headers={"cookie": sent}) for sent in (f"{other}; {own}", f"{own}; {other}", other)]

    assert [answer.status_code for answer in answers] == [200, 200, 403]
