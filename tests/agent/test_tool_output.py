"""The messages of tools: what the model reads, what the user gets, which sources are added."""

import base64
from typing import Any

import pytest

from tests.support.host import Json
from tests.support.run import Outcome, run
from tests.support.scenes import ANSWER, log_of, search
from tests.support.wire import breaks, calls, json_message, message, parameter, replies, says, tool

PNG = b"\x89PNG\r\n\x1a\n" + bytes(range(256)) * 100


def said_by(*messages: Json | str, **params: Any) -> Outcome:  # noqa: ANN401 - passed on as it is
    outcome = run([search(), ANSWER], {"search": replies(*messages)}, params)
    assert outcome.error is None
    return outcome


def resource(title: str, **more: Any) -> Json:  # noqa: ANN401 - passed on as it is
    return message("retriever_resources", retriever_resources=[{"document_name": title, **more}])


READ: dict[str, tuple[list[Json | str], str]] = {
    "variable and log": (["said", message("variable", variable_name="v"), message("log", id="1")], "said"),
    "nothing": ([], "(no output)"),
    "blank": (["  \n"], "(no output)"),
}


@pytest.mark.parametrize(("said", "expected"), READ.values(), ids=READ)
def test_what_the_model_reads(said: list[Json | str], expected: str) -> None:
    assert said_by(*said).tool_results()[0].partition("\n\nSources")[0] == expected


def test_an_unknown_message_type_is_skipped_and_noted() -> None:
    outcome = said_by("one ", message("hologram", text="?"), "two")

    assert outcome.tool_results() == ["one two"]
    assert any("hologram" in note for note in outcome.notes)


HOSTED: dict[str, tuple[str, str, Json]] = {
    "image by id": ("image_link", "/files/tools/1a-2b.png", {"tool_file_id": "1a-2b", "mime_type": "image/png"}),
    "image by path": ("image_link", "/files/tools/1a-2b.png?sign=x", {}),
    "document": ("binary_link", "/files/tools/7.pdf", {"tool_file_id": "7", "filename": "report.pdf"}),
    "link by id": ("link", "https://dify.example/f/1.pdf", {"tool_file_id": "1", "filename": "a.pdf"}),
    "a workflow's file": ("link", "/files/tools/1a.pdf", {"tool_file_id": "1a", "file": {"filename": "report.pdf"}}),
}


@pytest.mark.parametrize("name", HOSTED)
def test_a_stored_file_is_forwarded_and_no_name_is_made_up(name: str) -> None:
    kind, address, meta = HOSTED[name]

    outcome = said_by(message(kind, meta, text=address))

    (sent,) = (item for item in outcome.messages if item["type"] == "image_link")
    named = {key: value for key, value in {**meta, **meta.get("file", {})}.items() if key != "file"}
    assert sent["message"] == {"text": address}
    assert (sent["meta"] or {}) == named
    assert outcome.tool_results()[0].startswith(f"file: {named['filename']} (" if "filename" in named else "file (")
    assert outcome.bodies("blob_chunk") == []


@pytest.mark.parametrize(("provider_type", "expected"), [("mcp", "[10,\n20,\n3]"), ("builtin", "[10,20,\n3]")])
def test_only_text_blocks_of_an_mcp_server_have_lines_of_their_own(provider_type: str, expected: str) -> None:
    offered = tool("search", parameter("q"), provider_type=provider_type)

    outcome = run([search(), ANSWER], {"search": replies("", "[10,", "20,\n", "", "3]", "")}, {"tools": [offered]})

    assert outcome.tool_results() == [expected]


def node_text(outcome: Outcome) -> str:
    """The node's text when Dify can fetch no image."""
    said = {"text": "{text}", "image": "Failed to download image: {text}: 404"}
    return "".join(said[item["type"]].format(**item["message"]) for item in outcome.messages if item["type"] in said)


def test_difys_note_about_a_missing_image_has_its_own_line() -> None:
    """Dify fetches an image on the web."""
    handlers = {"search": replies(message("image_link", text="https://a.example/x.png"))}
    failed = "Failed to download image: https://a.example/x.png: 404"

    quiet = run([search(), ANSWER], handlers)
    thinking = run([search(text="I look."), ANSWER], handlers, {"emit_intermediate_thoughts": True})

    assert quiet.bodies("image") == [{"text": "https://a.example/x.png"}]
    assert node_text(quiet) == f"{failed}\nDone."
    assert node_text(thinking) == f"<think>\nI look.\n</think>\n{failed}\n\nDone."


@pytest.mark.parametrize("kind", ["image", "image_link", "binary_link"])
@pytest.mark.parametrize(
    "path", ["file:///etc/passwd", "/files/tools/../../etc/passwd", "C:\\x.png", " /x", "file://[x"]
)
def test_a_refused_local_path_is_not_named(kind: str, path: str) -> None:
    outcome = said_by(message(kind, {"tool_file_id": None}, text=path))

    assert "refused" in outcome.tool_results()[0]
    assert path not in str(outcome.model.prompts)
    assert not {"image", "image_link", "blob_chunk"} & {item["type"] for item in outcome.messages}


@pytest.mark.parametrize("data", [PNG, b"", b"x" * 8192, b"x" * 8193], ids=["png", "empty", "a chunk", "a byte more"])
def test_a_blob_goes_out_in_small_chunks_with_an_empty_end(data: bytes) -> None:
    meta = {"mime_type": "image/png", "filename": "a.png"}

    outcome = said_by(message("blob", meta, blob=base64.b64encode(data).decode()))

    sent = [item for item in outcome.messages if item["type"] == "blob_chunk"]
    pieces = [base64.b64decode(item["message"]["blob"]) for item in sent]
    assert b"".join(pieces) == data
    assert all(0 < len(piece) <= 8192 for piece in pieces[:-1])
    assert pieces[-1] == b""
    assert [item["message"]["end"] for item in sent] == [False] * (len(sent) - 1) + [True]
    assert [item["message"]["sequence"] for item in sent] == list(range(len(sent)))
    assert all(item["meta"] == meta and item["message"]["total_length"] == len(data) for item in sent)
    assert outcome.tool_results() == ["file: a.png (image/png), handed to the user"]


def test_sources_are_numbered_in_the_models_order_after_the_contexts() -> None:
    handlers = {
        "search": replies("found", resource("Second", content="b", page=3), resource("First", content="a")),
        "look": replies("seen", resource("Third"), resource("First", content="a")),
    }
    params = {"context": [{"title": "First", "content": "a"}]}

    outcome = run([calls(("look", {}), ("search", {})), says("By [1], [3].")], handlers, params)

    looked, searched = outcome.tool_results()
    assert looked == "seen\n\nSources of this result, to be cited by number:\n[2] Third\n[1] First"
    assert searched.endswith("[3] Second, page 3\n[1] First")
    listed = [(item["number"], item["title"], item["cited"]) for item in outcome.variables["sources"]]
    assert listed == [(1, "First", True), (2, "Third", False), (3, "Second, page 3", True)]


SECRET = "hunter2-hunter2"


def test_a_secret_that_a_tool_repeats_reaches_neither_model_nor_log_nor_variables() -> None:
    outcome = said_by(
        json_message({"used": f"k={SECRET}"}),
        message("link", text=f"https://a.example/?k={SECRET}"),
        resource(f"k {SECRET}", content=f"k {SECRET}"),
        message("blob", {"filename": f"{SECRET}.txt", "mime_type": "text/plain"}, blob="eA=="),
        tools=[tool("search", parameter("q"), runtime_parameters={"api_key": SECRET, "region": "eu"})],
    )

    assert outcome.tools.requests[0]["tool_parameters"] == {"q": "x", "api_key": SECRET, "region": "eu"}
    assert outcome.tool_results()[0].count("[redacted]") == 4
    assert SECRET not in str(outcome.model.prompts)
    for kind in ("log", "variable", "json"):
        assert SECRET not in str(outcome.bodies(kind))


@pytest.mark.parametrize("told", [SECRET, f'{{"password": "{SECRET}"}}', "api_key=sk-abcdefghijkl"])
def test_a_secret_in_a_tools_error_is_redacted_in_the_log(told: str) -> None:
    offered = tool("search", runtime_parameters={"password": SECRET})

    outcome = run([calls(("search", {})), ANSWER], {"search": breaks(f"refused {told}")}, {"tools": [offered]})

    assert "refused" in log_of(outcome, "CALL search")["error"]
    assert SECRET not in str(outcome.messages)
    assert "sk-abcdefghijkl" not in str(outcome.messages)
