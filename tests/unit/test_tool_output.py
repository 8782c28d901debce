"""The messages of a tool: the text for the model, the files for the user, and the sources."""

import base64
import json
from collections.abc import Callable, Mapping
from functools import partial
from io import StringIO
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from internal.calls.output import ToolOutput
from internal.events import (
    MAX_ADDRESS_LENGTH,
    MAX_FILE_BYTES,
    MAX_NAME_LENGTH,
    ExternalImage,
    FileBytes,
    HostedFile,
    UserFile,
)
from internal.host.files import FileRefused, read_local_file
from internal.host.session import WireMessage, wellformed_message
from internal.text.secrets import KnownSecrets, Redactor
from tests.unit.generators import any_text, json_values

PNG = b"\x89PNG\r\n\x1a\n" + b"\0" * 16
HOSTED = "/files/tools/0a1b-2c3d.png"
META = {"tool_file_id": "f1", "mime_type": "image/png", "filename": "chart.png"}


def message(kind: str, meta: dict[str, Any] | None = None, **body: Any) -> WireMessage:  # noqa: ANN401 - whatever a tool sends
    return wellformed_message(WireMessage(type=kind, message=body or None, meta=meta))


NO_SECRETS = KnownSecrets(Redactor())


def text(said: str | None) -> WireMessage:
    return message("text", text=said)


def json_value(value: object) -> WireMessage:
    return message("json", json_object=value)


def make_output(between_texts: str = "", secrets: KnownSecrets = NO_SECRETS) -> ToolOutput:
    return ToolOutput(secrets, between_texts)


def collected(*messages: WireMessage, between_texts: str = "") -> tuple[str, list[UserFile], ToolOutput]:
    output = make_output(between_texts)
    files = [file for wire in messages if (file := output.take(wire))]
    return output.rendered().text, files, output


def read(*messages: WireMessage) -> str:
    return collected(*messages)[0]


def test_texts_are_joined_as_they_stream() -> None:
    assert read(text("It is "), text("y."), text(None)) == "It is y."


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ({"a": "日本", "n": 1}, '{"a": "日本", "n": 1}'),
        ([1, None], "[1, null]"),
        (
            {"half": "\ud83d", "nul": "\0", "id": 2**60},
            '{"half": "?", "nul": "", "id": 1152921504606846976}',
        ),
    ],
    ids=["object", "list", "odd values"],
)
def test_json_is_read_as_its_text(value: object, expected: str) -> None:
    assert read(json_value(value)) == expected


def test_text_json_and_lines_are_separated() -> None:
    assert read(text("said"), json_value([1]), message("link", text="http://host.test/a")) == (
        "said\n\n[1]\n\nlink: http://host.test/a"
    )


@pytest.mark.parametrize("value", [{"a": 1, "b": ["x"]}, [1, 2], {"id": 2**60}, {"s": "\0"}], ids=json.dumps)
def test_json_that_repeats_the_text_of_a_workflow_tool_is_dropped(value: object) -> None:
    said = json.dumps(value, indent=1)

    assert read(text(said), json_value(value)) == said


@pytest.mark.parametrize("value", [{"a": 1.0}, [1.0, {"b": 2.5}]], ids=json.dumps)
def test_a_number_that_lost_its_decimals_counts_as_the_same(value: object) -> None:
    """The daemon writes 1.0 as 1."""
    said = json.dumps(value)

    assert read(text(said), json_value(json.loads(said.replace("1.0", "1")))) == said


def test_each_json_is_compared_with_the_text_before_it() -> None:
    assert read(text("[1]"), json_value([1]), text("[2]"), json_value([2]), json_value([3])) == "[1][2]\n\n[3]"


def test_json_that_only_resembles_the_text_is_kept() -> None:
    assert read(text('{"a": 1}'), json_value({"a": 2})) == '{"a": 1}\n\n{"a": 2}'
    assert read(text("{broken"), json_value({"a": 2})) == '{broken\n\n{"a": 2}'


def test_a_text_of_brackets_beyond_any_parser_is_only_a_text() -> None:
    assert read(text("[" * 100_000), json_value([1])) == "[" * 100_000 + "\n\n[1]"


@pytest.mark.parametrize("kind", ["image_link", "binary_link", "image", "link"])
@pytest.mark.parametrize(
    ("address", "meta"), [(HOSTED, None), (HOSTED + "?sign=x", {}), (HOSTED, META), ("http://host.test/x", META)]
)
def test_a_stored_file_is_forwarded_unchanged(kind: str, address: str, meta: dict[str, str] | None) -> None:
    said, files, _ = collected(message(kind, meta, text=address))

    assert files == [HostedFile(address, meta or {})]
    assert said == ("file: chart.png (image/png)" if meta else "file (unknown type)") + ", handed to the user"


@pytest.mark.parametrize("kind", ["link", "image_link", "binary_link"])
def test_a_workflows_file_goes_by_the_name_in_its_description(kind: str) -> None:
    described = {"filename": "report.pdf", "mime_type": "application/pdf", "transfer_method": "tool_file"}

    said, files, _ = collected(message(kind, {"tool_file_id": "f1", "file": described}, text="/files/tools/f1.pdf"))

    assert said == "file: report.pdf (application/pdf), handed to the user"
    assert files == [HostedFile("/files/tools/f1.pdf", {"tool_file_id": "f1", "filename": "report.pdf"})]


@pytest.mark.parametrize("address", ["https://host.test/files/x", "/etc/passwd", "file:///etc/passwd", "x" * 5000])
def test_another_link_is_only_cited(address: str) -> None:
    said, files, _ = collected(message("link", {"tool_file_id": ""}, text=address))

    assert (said, files) == (f"link: {address}", [])


def test_an_image_on_the_web_is_shown_and_can_be_cited() -> None:
    said, files, _ = collected(message("image_link", text="https://host.test/a.png"))

    assert files == [ExternalImage("https://host.test/a.png")]
    assert said == "image: https://host.test/a.png, shown to the user"


def test_an_image_with_a_name_goes_by_it() -> None:
    meta = {"file": {"filename": "sales chart.png"}}

    assert read(message("image_link", meta, text="https://host.test/a.png")) == (
        "image: sales chart.png, https://host.test/a.png, shown to the user"
    )
    assert read(message("image_link", meta, text=HOSTED)) == "file: sales chart.png (unknown type), handed to the user"


REMOTE = {"filename": "a.png", "mime_type": "image/png", "remote_url": "https://host.test/a"}
DESCRIBED: dict[str, tuple[dict[str, Any], str, list[UserFile]]] = {
    "an image on the web": (
        REMOTE,
        "image: a.png, https://host.test/a, shown to the user",
        [ExternalImage("https://host.test/a")],
    ),
    "an image by its kind": (
        {"type": "image", "remote_url": "https://host.test/a"},
        "image: https://host.test/a, shown to the user",
        [ExternalImage("https://host.test/a")],
    ),
    "another file on the web": (
        {**REMOTE, "filename": "a.pdf", "mime_type": "application/pdf"},
        "file: a.pdf (application/pdf), https://host.test/a",
        [],
    ),
    "no address of the web": ({**REMOTE, "remote_url": "/etc/passwd"}, "file: a.png (image/png)", []),
    "an endless address": ({**REMOTE, "remote_url": "https://" + "x" * 5000}, "file: a.png (image/png)", []),
    "an upload": ({**REMOTE, "remote_url": None}, "file: a.png (image/png)", []),
    "no name": ({"mime_type": "text/csv"}, "file (text/csv)", []),
}


@pytest.mark.parametrize(("described", "line", "files"), DESCRIBED.values(), ids=DESCRIBED)
def test_a_file_on_the_web_is_named_with_its_address(
    described: dict[str, Any], line: str, files: list[UserFile]
) -> None:
    assert collected(message("file", {"file": described}))[:2] == (line, files)


@pytest.mark.parametrize("address", ["https://host.test/a.zip", "data:text/plain,x", "ftp://host.test/a"])
def test_an_external_file_is_only_a_line(address: str) -> None:
    said, files, _ = collected(message("binary_link", text=address))

    assert files == []
    assert said == f"file: {address}"


@pytest.mark.parametrize("kind", ["image_link", "binary_link", "image"])
@pytest.mark.parametrize("meta", [None, META], ids=["bare", "with a made-up file id"])
@pytest.mark.parametrize(
    "path",
    ["/etc/passwd", "file:///etc/passwd", "/files/tools/../../etc/passwd", " ", "../x", "/dev/zero", "file://[x"],
)
def test_a_local_path_is_refused_in_a_line_for_the_model(kind: str, meta: dict[str, str] | None, path: str) -> None:
    said, files, _ = collected(message(kind, meta, text=path))

    assert files == []
    assert said == str(FileRefused())
    assert "passwd" not in said


def test_a_local_file_under_the_root_is_handed_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "chart.png").write_bytes(PNG)
    monkeypatch.setattr("internal.calls.output.read_local_file", partial(read_local_file, root=tmp_path))

    said, files, _ = collected(message("image", text=f"{tmp_path}/chart.png"))

    assert files == [FileBytes(PNG, "image/png", "chart.png")]
    assert said == "file: chart.png (image/png), handed to the user"


@pytest.mark.parametrize(
    ("meta", "mime_type", "name"),
    [
        ({"mime_type": "image/png", "filename": "chart.png"}, "image/png", "chart.png"),
        (None, "image/png", ""),
        ({"mime_type": None, "filename": None}, "image/png", ""),
        ({"mime_type": "application/x-nothing"}, "application/x-nothing", ""),
    ],
)
def test_a_blob_is_handed_on_with_its_type(meta: dict[str, Any] | None, mime_type: str, name: str) -> None:
    said, files, _ = collected(message("blob", meta, blob=base64.b64encode(PNG).decode()))

    assert files == [FileBytes(PNG, mime_type, name)]
    assert said == f"file{name and f': {name}'} ({mime_type}), handed to the user"


@pytest.mark.parametrize(("given", "shown"), [("report", "report.pdf"), ("v1.2", "v1.2"), ("a.pdf", "a.pdf")])
def test_a_stored_file_is_told_by_the_name_that_dify_gives_it(given: str, shown: str) -> None:
    meta = {"tool_file_id": "f1", "filename": given, "mime_type": "application/pdf"}

    assert read(message("binary_link", meta, text="/files/tools/f1.pdf?sign=x")).startswith(f"file: {shown} (")


SECRET = "hunter2-hunter2"
RESOURCES = {"title": "t" * 192 + SECRET, "content": "c" * 39_992 + SECRET, "document_name": "n" * 300 + SECRET}


@pytest.mark.parametrize(
    "wire",
    [
        message("blob", {"mime_type": f"text/{SECRET}", "filename": "a" * 192 + SECRET}, blob="aGVsbG8="),
        message("link", {"tool_file_id": "t", "filename": "a" * 188 + SECRET + ".png"}, text="/files/tools/a.png"),
        message("file", {"file": {"name": "a" * 192 + SECRET, "mime_type": SECRET}}),
        message("binary_link", text="https://a.test/" + "a" * 177 + SECRET),
        message("retriever_resources", retriever_resources=[RESOURCES]),
    ],
    ids=lambda wire: wire.type,
)
def test_no_part_of_a_secret_is_left_where_names_and_titles_are_cut(wire: WireMessage) -> None:
    output = make_output(secrets=KnownSecrets(Redactor.of([SECRET])))
    file = output.take(wire)

    assert "hunter" not in output.rendered().text
    assert "hunter" not in repr((file, output.sources))


def test_only_the_meta_that_dify_reads_are_forwarded() -> None:
    assert collected(message("image_link", {**META, "made_up": "x" * 1000}, text=HOSTED))[1] == [
        HostedFile(HOSTED, META)
    ]


def test_no_text_of_a_files_meta_is_longer_than_a_name() -> None:
    endless = "x" * 10_000
    odd = {"mime_type": endless, "filename": f"{endless}.png", "type": [endless], "size": 7, "extension": None}

    hosted = collected(message("image_link", {"tool_file_id": "f1", **odd}, text=HOSTED))[1]
    blob = collected(message("blob", odd, blob=base64.b64encode(PNG).decode()))[1]

    name = "x" * (MAX_NAME_LENGTH - 4) + ".png"
    short = {"mime_type": "x" * MAX_NAME_LENGTH, "filename": name}
    assert hosted == [HostedFile(HOSTED, {"tool_file_id": "f1", **short, "size": 7})]
    assert blob == [FileBytes(PNG, short["mime_type"], name)]


@pytest.mark.parametrize(
    "name", ["." + "x" * 10_000, "a." + "x" * 10_000, "x" * 10_000], ids=["hidden", "a dot", "none"]
)
def test_a_suffix_of_any_length_is_none(name: str) -> None:
    (file,) = collected(message("blob", {"filename": name}, blob=""))[1]

    assert isinstance(file, FileBytes)
    assert len(file.filename) == MAX_NAME_LENGTH


def test_an_address_that_is_too_long_is_refused() -> None:
    said, files, _ = collected(message("image_link", META, text="https://host.test/" + "x" * MAX_ADDRESS_LENGTH))

    assert files == []
    assert "too long" in said


@pytest.mark.parametrize("blob", ["not base64!", "日本", "abc", 5], ids=repr)
def test_a_blob_that_is_not_base64_is_only_a_line(blob: object) -> None:
    said, files, _ = collected(message("blob", blob=blob))

    assert (said, files) == ("file: its bytes could not be read", [])


def test_a_blob_above_the_limit_of_the_daemon_is_only_a_line() -> None:
    said, files, _ = collected(message("blob", blob=base64.b64encode(bytes(MAX_FILE_BYTES + 1)).decode()))

    assert files == []
    assert "larger than 15 MiB" in said


@pytest.mark.parametrize(
    "meta", [{"file": {"filename": "a b.pdf", "mime_type": "x/y"}}, {"filename": "a\nb.pdf", "mime_type": "x/y"}]
)
def test_a_file_message_is_a_line(meta: dict[str, Any]) -> None:
    assert read(message("file", meta)) == "file: a b.pdf (x/y)"


def variable(name: str, value: object, *, stream: bool = False) -> WireMessage:
    return message("variable", variable_name=name, variable_value=value, stream=stream)


def test_logs_are_not_the_models_business() -> None:
    said, files, output = collected(message("log", id="1"), variable("v", 1), text("said"))

    assert (said, files, output.notes) == ("said", [], [])


def test_variables_are_the_result_of_a_tool_that_sends_nothing_else() -> None:
    said = read(
        variable("chunks", ["é", {"a": None}]),
        text(" "),
        variable("n", 1),
        variable("s", "a\n", stream=True),
        variable("s", "b", stream=True),
        variable("n", 2),
    )

    assert json.loads(said) == {"chunks": ["é", {"a": None}], "s": "a\nb", "n": 2}


def test_a_streamed_variable_that_is_set_again_starts_again() -> None:
    pieces = [variable("s", "a", stream=True), variable("s", 5, stream=True), variable("s", "b", stream=True)]

    assert json.loads(read(*pieces, variable("t", "x"), variable("t", "y", stream=True))) == {"s": "b", "t": "y"}


@pytest.mark.parametrize("said", [text("said"), json_value([1])], ids=["text", "JSON"])
@pytest.mark.parametrize("first", [True, False])
def test_variables_stay_out_beside_text_or_json(said: WireMessage, first: bool) -> None:  # noqa: FBT001
    messages = [variable("v", 1), said] if first else [said, variable("v", 1)]

    assert read(*messages) in {"said", "[1]"}


def test_variables_are_read_beside_files_and_sources() -> None:
    blob = message("blob", {"filename": "a.txt", "mime_type": "text/plain"}, blob="")
    sources = message("retriever_resources", retriever_resources=[{"content": "c"}])

    assert read(blob, variable("v", 1)) == '{"v": 1}\n\nfile: a.txt (text/plain), handed to the user'
    assert read(sources, variable("v", 1)) == '{"v": 1}\n\nc'


@pytest.mark.parametrize(
    ("blocks", "expected"),
    [(["10", "20", "3"], "10\n20\n3"), (["a\n", "b"], "a\nb"), (["", "a", "", "b", ""], "a\nb"), ([], "")],
)
def test_a_line_break_separates_the_text_blocks_of_an_mcp_server(blocks: list[str], expected: str) -> None:
    assert collected(*map(text, blocks), between_texts="\n")[0] == expected


def test_a_secret_that_two_text_blocks_share_is_replaced() -> None:
    output = make_output("\n", KnownSecrets(Redactor.of(["correct-horse"])))
    for block in ("key", "correct", "-horse", "end"):
        output.take(text(block))

    assert output.rendered().text == "key\n[redacted]\nend"


def test_an_unknown_type_is_skipped_and_named() -> None:
    said, files, output = collected(message("hologram", text="x"), text("y"))

    assert (said, files) == ("y", [])
    assert "'hologram'" in output.notes[0]


def test_citations_become_sources_and_are_the_result_only_without_other_text() -> None:
    resources = [{"content": "It is y.", "document_name": "Manual"}, {}]
    citations = message("retriever_resources", retriever_resources=resources)

    said, _, output = collected(citations)
    assert said == "It is y."
    assert [source.title for source in output.sources] == ["Manual"]
    assert read(citations, text("answer")) == "answer"


@pytest.mark.parametrize("kind", ["text", "json", "link", "image_link", "binary_link", "blob", "file", "log", "x"])
def test_a_message_without_a_body_is_harmless(kind: str) -> None:
    assert isinstance(read(message(kind)), str)


@given(
    st.lists(
        st.tuples(st.sampled_from(["text", "link", "image", "file", "blob", "json", "odd"]), any_text, json_values)
    )
)
def test_any_result_of_a_tool_can_be_written(said: list[tuple[str, str, object]]) -> None:
    result = read(*(message(kind, {"filename": t}, text=t, blob=t, json_object=value) for kind, t, value in said))

    assert result.encode().decode() == result


def kept(thing: object) -> int:
    """Characters and bytes of everything that hangs from an object."""
    if isinstance(thing, str | bytes):
        return len(thing)
    if isinstance(thing, StringIO):
        return len(thing.getvalue())
    if isinstance(thing, Mapping):
        return sum(kept(key) + kept(value) for key, value in thing.items())
    if isinstance(thing, list | set):
        return len(thing) + sum(map(kept, thing))
    return kept(vars(thing)) if hasattr(thing, "__dict__") else 1


MEGABYTE = "m" * 1_000_000
FLOODS: dict[str, Callable[[int], WireMessage]] = {
    "text": lambda _: text(MEGABYTE),
    "text that looks like JSON": lambda _: text(f'["{MEGABYTE}"]'),
    "JSON": lambda number: json_value({"n": number, "m": MEGABYTE}),
    "links": lambda _: message("link", text=MEGABYTE),
    "image links": lambda _: message("image_link", {"tool_file_id": MEGABYTE, "filename": MEGABYTE}, text=MEGABYTE),
    "hosted files": lambda _: message("image_link", {"tool_file_id": "1", "filename": MEGABYTE}, text=HOSTED),
    "blobs": lambda _: message("blob", {"mime_type": "text/plain"}, blob=MEGABYTE),
    "files": lambda _: message("file", {"file": {"filename": MEGABYTE, "remote_url": MEGABYTE}}),
    "one variable": lambda number: variable("v", f"{number}{MEGABYTE}"),
    "variables": lambda number: variable(f"v{number}{MEGABYTE}", MEGABYTE),
    "a streamed variable": lambda _: variable("v", MEGABYTE, stream=True),
    "logs": lambda _: message("log", id="1", data={"a": MEGABYTE}),
    "long sources": lambda number: message(
        "retriever_resources",
        retriever_resources=[
            {"document_id": f"{number}{MEGABYTE}", "content": MEGABYTE, "doc_metadata": {"a": MEGABYTE}}
        ],
    ),
    "short sources": lambda number: message(
        "retriever_resources", retriever_resources=[{"title": f"{number}.{place}"} for place in range(1_000)]
    ),
}


@pytest.mark.heavy
@pytest.mark.parametrize("flood", FLOODS.values(), ids=FLOODS)
def test_of_any_amount_only_a_readable_part_is_kept(flood: Callable[[int], WireMessage]) -> None:
    output = make_output()

    for number in range(30):
        output.take(flood(number))

    assert kept(output) < 9_000_000
    assert len(output.sources) < 5_000
    assert len(output.notes) <= 10
    assert len(output.rendered().text) < 5_000_000


NOTES = {
    "text": "of its 30,000,000 characters of text only the beginning and the end were kept",
    "JSON": "of its 30,000,588 characters of JSON only the beginning and the end were kept",
    "links": "of its 30,000,209 characters of lines about files and links only the beginning and the end were kept",
    "a streamed variable": "not all variables were kept: together they are too long",
    "long sources": "only the first 26 sources were kept: together they are too long",
}


@pytest.mark.parametrize("kind", NOTES)
def test_parts_that_are_not_kept_are_noted(kind: str) -> None:
    output = make_output()
    for number in range(30):
        output.take(FLOODS[kind](number))
    output.rendered()

    assert output.notes == [NOTES[kind]]


def test_many_small_messages_are_kept_as_one_text() -> None:
    said = read(*(text(str(number % 10)) for number in range(20_000)))

    assert said == "0123456789" * 2_000


@pytest.mark.parametrize("keeps_json", [False, True])
def test_json_is_kept_as_it_came_only_where_it_is_asked_for(*, keeps_json: bool) -> None:
    output = ToolOutput(NO_SECRETS, keeps_json=keeps_json)

    for value in ({"a": "é"}, [1]):
        output.take(json_value(value))

    assert output.sent_json == (['{"a": "é"}', "[1]"] if keeps_json else [])
