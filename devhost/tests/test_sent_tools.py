"""Whether a model plugin sends tools, asked in front of a listener: the gateway, and what it may lack."""

import shutil
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest

from devhost.sent_tools import asked_whether_tools_are_sent
from support.plugins import GATEWAY

pytestmark = pytest.mark.processes

DROPS_TOOLS = ("models/llm/llm.py", '"function_calling_type": "tool_call", ', "")
"""What the SDK's class reads: without it, tools are left out of the request."""
LISTS_NONE = [
    ("models/llm/gpt-4.1.yaml", "features: [multi-tool-call, ", "features: ["),
    ("models/llm/llama3.2.yaml", "features: [tool-call]", "features: []"),
]
HAS_NO_ADDRESS = ("provider/gateway.yaml", "endpoint_url", "region")
ASKS = '        print(f"asks'
FAILS_FIRST = ("models/llm/llm.py", ASKS, f'        raise ValueError("no such region")\n{ASKS}')
TELLS = ("models/llm/llm.py", ASKS, f"        raise ValueError(repr(sorted(credentials.items())))\n{ASKS}")


@pytest.fixture
def changed(tmp_path: Path) -> Callable[..., Path]:
    """The gateway with other words in some of its files."""

    def change(*changes: tuple[str, str, str]) -> Path:
        folder = shutil.copytree(GATEWAY, tmp_path / "gateway", ignore=shutil.ignore_patterns(".venv", "__pycache__"))
        for file, old, new in changes:
            text = (folder / file).read_text(encoding="utf-8")
            assert old in text
            (folder / file).write_text(text.replace(old, new), encoding="utf-8")
        return folder

    return change


@pytest.mark.parametrize(
    ("changes", "model", "said"),
    [
        ([], None, "yes, as tried with gpt-4.1"),
        ([], "llama3.2", "yes, as tried with llama3.2"),
        ([DROPS_TOOLS], None, "declared, not sent, as tried with gpt-4.1"),
        ([DROPS_TOOLS, *LISTS_NONE], None, "no, as tried with gpt-4.1"),
        ([HAS_NO_ADDRESS], None, "declares tools, not tried: no credential sets its address"),
        ([HAS_NO_ADDRESS, *LISTS_NONE], None, "declares no tools, not tried: no credential sets its address"),
        ([FAILS_FIRST], None, "declares tools, not tried: [models] Error: no such region"),
        ([], "qwen3", "yes, as tried with qwen3"),
    ],
)
def test_what_arrives_is_told(
    changed: Callable[..., Path], changes: list[tuple[str, str, str]], model: str | None, said: str
) -> None:
    assert asked_whether_tools_are_sent(changed(*changes), model, {}) == said


def test_a_plugin_that_does_not_start_is_not_tried(changed: Callable[..., Path]) -> None:
    folder = changed(("models/llm/llm.py", "from dify_plugin import", "from absent import"))
    assert asked_whether_tools_are_sent(folder, None, {}).startswith("declares tools, not tried: ")


@pytest.mark.parametrize("given", [{"api_key": "sk-the-persons-own"}, {"endpoint_url": "https://provider.example/v3"}])
def test_no_key_and_no_address_of_a_person_is_used(changed: Callable[..., Path], given: Mapping[str, str]) -> None:
    said = asked_whether_tools_are_sent(changed(TELLS), None, given)

    assert "sk-the-persons-own" not in said
    assert "provider.example" not in said
    assert "http://127.0.0.1:" in said
