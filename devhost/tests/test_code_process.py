"""A code node's program in a process of its own: its result, its limits, and what it cannot see."""

import os
import shutil
from pathlib import Path

import pytest

from devhost.flow.outside import JAVASCRIPT, PYTHON, CodeError, OutsideAccess, render_template, run_program
from devhost.limits import HostLimits

pytestmark = pytest.mark.processes

LIMITS = HostLimits(code_seconds=60)


def test_a_program_has_an_empty_environment_and_a_folder_that_is_removed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-secret")
    program = "import os; open('é', 'w').close(); print(os.getcwd(), sorted(os.environ), os.path.exists('é'))"

    folder, said = run_program(PYTHON, program, LIMITS).split(" ", 1)

    assert "OPENAI_API_KEY" not in said
    assert "PATH" not in said
    assert said.endswith("True\n")
    assert not Path(folder).exists()


@pytest.mark.parametrize(
    ("program", "limits", "words"),
    [
        ("raise ValueError('no paper')", {}, "ValueError: no paper"),
        ("import sys; sys.exit(3)", {}, "the code ended with status 3"),
        ("while True: pass", {"code_seconds": 1}, "it ran longer than 1 seconds; --limit code-seconds=NUMBER"),
        ("print(len(b'x' * 10**9))", {}, "it needed more than 536,870,912 bytes of memory; --limit code-bytes=NUMBER"),
        ("while True: print('x' * 10**6)", {}, "File too large"),
    ],
)
def test_a_program_that_fails_or_meets_a_limit_is_an_error(program: str, limits: dict[str, int], words: str) -> None:
    with pytest.raises(CodeError) as error:
        run_program(PYTHON, program, LIMITS.model_copy(update=limits))

    assert words in str(error.value)


def test_a_template_is_text_made_of_variables() -> None:
    assert render_template("{{ a }}, {{ b.c }} – {{ 'é' }}", '{"a": 1, "b": {"c": "größe"}}', LIMITS) == "1, größe – é"


@pytest.mark.parametrize(
    ("template", "limits", "words"),
    [
        ("{% for a in b %}", {}, "Unexpected end of template"),
        ("{{ 1 / 0 }}", {}, "ZeroDivisionError: division by zero"),
        ("{{ ''.__class__.__mro__ }}", {}, "access to attribute '__class__' of 'str' object is unsafe"),
        (
            "{% for a in range(99999) %}{% for b in range(99999) %}{% endfor %}{% endfor %}",
            {"code_seconds": 1},
            "the template was ended because it ran longer than 1 seconds",
        ),
        ("{{ 'x' * 10**10 }}", {}, "the template was ended because it needed more than 536,870,912 bytes of memory"),
    ],
)
def test_a_template_has_the_limits_of_code(template: str, limits: dict[str, int], words: str) -> None:
    with pytest.raises(CodeError) as error:
        render_template(template, "{}", LIMITS.model_copy(update=limits))

    assert words in str(error.value)


@pytest.mark.skipif(shutil.which("node") is None, reason="needs Node.js")
def test_javascript_runs_where_node_is_installed() -> None:
    assert run_program(JAVASCRIPT, "console.log(6 * 7, Object.keys(process.env).length)", LIMITS) == "42 0\n"


def test_what_is_not_allowed_says_which_option_helps(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(os.environ, "PATH", "/nowhere")
    code = {"code_language": JAVASCRIPT}
    everything = OutsideAccess(http=True, code=True)

    assert OutsideAccess().why_not("http-request", {}) == "sends HTTP requests: allow it with --allow-http"
    assert "allow it with --allow-code" in str(OutsideAccess(http=True).why_not("code", code))
    assert "there is no program `node` on the PATH" in str(everything.why_not("code", code))
    assert "has code in 'ruby'" in str(everything.why_not("code", {"code_language": "ruby"}))
    assert everything.why_not("code", {"code_language": PYTHON}) is None
    assert everything.why_not("http-request", {}) is None
    assert OutsideAccess().why_not("llm", {}) is None
