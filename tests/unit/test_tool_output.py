"""What a tool says, turned into what the model reads, what the user gets, and sources."""

import base64
import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from internal.local_files import FileRefused
from internal.tool_output import LONGEST_NAME, ToolOutput, WireMessage, cut_to_size, with_sources
from internal.user_files import LARGEST_FILE, LONGEST_ADDRESS, ExternalImage, FileBytes, HostedFile, UserFile
from tests.unit.generators import any_text, json_values

PNG = b"\x89PNG\r\n\x1a\n" + b"\0" * 16
HOSTED = "/files/tools/0a1b-2c3d.png"
META = {"tool_file_id": "f1", "mime_type": "image/png", "filename": "chart.png"}


def message(kind: str, meta: object = None, **body: Any) -> WireMessage:  # noqa: ANN401 - whatever a tool sends
    return WireMessage.model_validate({"type": kind, "message": body or None, "meta": meta})


def text(said: str | None) -> WireMessage:
    return message("text", text=said)


def json_value(value: object) -> WireMessage:
    return message("json", json_object=value)


def collected(*messages: WireMessage) -> tuple[str, list[UserFile], ToolOutput]:
    output = ToolOutput()
    files = [file for wire in messages for file in output.take(wire)]
    return output.rendered(), files, output


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
            {"half": "\ud83d", "nan": float("nan"), "id": 2**60},
            '{"half": "?", "nan": null, "id": "1152921504606846976"}',
        ),
    ],
    ids=["object", "list", "odd values"],
)
def test_json_is_read_as_its_text(value: object, expected: str) -> None:
    assert read(json_value(value)) == expected


def test_text_and_json_and_lines_stand_apart() -> None:
    assert read(text("said"), json_value([1]), message("link", text="http://host.test/a")) == (
        "said\n\n[1]\n\nlink: http://host.test/a"
    )


@pytest.mark.parametrize("value", [{"a": 1, "b": ["x"]}, [1, 2], {"id": 2**60}, {"s": "\ud83d"}], ids=json.dumps)
@pytest.mark.parametrize("split", [False, True], ids=["one text", "two texts"])
def test_json_that_a_workflow_tool_said_as_text_already_is_dropped(value: object, split: bool) -> None:  # noqa: FBT001
    said = json.dumps(value, indent=1)
    texts = [text(said[:5]), text(said[5:])] if split else [text(said)]

    assert read(*texts, json_value(value)) == said


def test_json_that_only_resembles_the_text_is_kept() -> None:
    assert read(text('{"a": 1}'), json_value({"a": 2})) == '{"a": 1}\n\n{"a": 2}'
    assert read(text("{broken"), json_value({"a": 2})) == '{broken\n\n{"a": 2}'


def test_a_text_of_brackets_beyond_any_parser_is_only_a_text() -> None:
    assert read(text("[" * 100_000), json_value([1])) == "[" * 100_000 + "\n\n[1]"


@pytest.mark.parametrize("kind", ["image_link", "binary_link", "image"])
@pytest.mark.parametrize(
    ("address", "meta"), [(HOSTED, None), (HOSTED + "?sign=x", {}), (HOSTED, META), ("http://host.test/x", META)]
)
def test_a_file_that_dify_has_goes_on_as_it_came(kind: str, address: str, meta: dict[str, str] | None) -> None:
    said, files, _ = collected(message(kind, meta, text=address))

    assert files == [HostedFile(address, meta or {})]
    assert said.startswith("file: ")
    assert "handed to the user" in said


def test_an_image_on_the_web_is_shown_and_can_be_cited() -> None:
    said, files, _ = collected(message("image_link", text="https://host.test/a.png"))

    assert files == [ExternalImage("https://host.test/a.png")]
    assert "https://host.test/a.png" in said


@pytest.mark.parametrize("address", ["https://host.test/a.zip", "data:text/plain,x", "ftp://host.test/a"])
def test_another_file_on_the_web_is_a_line_alone(address: str) -> None:
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


@pytest.mark.parametrize(
    ("meta", "mime_type", "name"),
    [
        ({"mime_type": "image/png", "filename": "chart.png"}, "image/png", "chart.png"),
        (None, "image/png", ""),
        ({"mime_type": None, "filename": None}, "image/png", ""),
    ],
)
def test_a_blob_is_handed_on_with_its_type(meta: object, mime_type: str, name: str) -> None:
    said, files, _ = collected(message("blob", meta, blob=base64.b64encode(PNG).decode()))

    assert files == [FileBytes(PNG, mime_type, name)]
    assert said == f"file: {name or 'unnamed'} (image/png), handed to the user"


def test_of_a_files_meta_only_what_dify_reads_goes_on() -> None:
    assert collected(message("image_link", {**META, "made_up": "x" * 1000}, text=HOSTED))[1] == [
        HostedFile(HOSTED, META)
    ]


def test_no_text_of_a_files_meta_is_longer_than_a_name() -> None:
    endless = "x" * 10_000
    odd = {"mime_type": endless, "filename": f"{endless}.png", "type": [endless], "size": 7, "extension": None}

    hosted = collected(message("image_link", {"tool_file_id": "f1", **odd}, text=HOSTED))[1]
    blob = collected(message("blob", odd, blob=base64.b64encode(PNG).decode()))[1]

    name = "x" * (LONGEST_NAME - 4) + ".png"
    short = {"mime_type": "x" * LONGEST_NAME, "filename": name}
    assert hosted == [HostedFile(HOSTED, {"tool_file_id": "f1", **short, "size": 7})]
    assert blob == [FileBytes(PNG, short["mime_type"], name)]


@pytest.mark.parametrize(
    "name", ["." + "x" * 10_000, "a." + "x" * 10_000, "x" * 10_000], ids=["hidden", "a dot", "none"]
)
def test_a_suffix_of_any_length_is_none(name: str) -> None:
    (file,) = collected(message("blob", {"filename": name}, blob=""))[1]

    assert isinstance(file, FileBytes)
    assert len(file.filename) == LONGEST_NAME


def test_an_address_of_any_length_is_no_address() -> None:
    said, files, _ = collected(message("image_link", META, text="https://host.test/" + "x" * LONGEST_ADDRESS))

    assert files == []
    assert "too long" in said


def test_a_blob_of_bytes_is_taken_as_it_is() -> None:
    assert collected(message("blob", blob=PNG))[1] == [FileBytes(PNG, "image/png", "")]


@pytest.mark.parametrize("blob", ["not base64!", "日本", "abc", 5], ids=repr)
def test_a_blob_that_is_no_base64_is_a_line_alone(blob: object) -> None:
    said, files, _ = collected(message("blob", blob=blob))

    assert (said, files) == ("file: its bytes could not be read", [])


def test_a_blob_beyond_the_daemons_limit_is_a_line_alone() -> None:
    said, files, _ = collected(message("blob", blob=b"\0" * (LARGEST_FILE + 1)))

    assert files == []
    assert "larger than 15 MiB" in said


@pytest.mark.parametrize(
    "meta", [{"file": {"filename": "a b.pdf", "mime_type": "x/y"}}, {"filename": "a\nb.pdf", "mime_type": "x/y"}]
)
def test_a_file_message_is_a_line(meta: dict[str, Any]) -> None:
    assert read(message("file", meta)) == "file: a b.pdf (x/y)"


@pytest.mark.parametrize("kind", ["variable", "log"])
def test_variables_and_logs_are_not_the_models_business(kind: str) -> None:
    said, files, output = collected(message(kind, variable_name="v", variable_value=1))

    assert (said, files, output.notes) == ("", [], [])


def test_an_unknown_type_is_passed_over_and_named() -> None:
    said, files, output = collected(message("hologram", text="x"), text("y"))

    assert (said, files) == ("y", [])
    assert "'hologram'" in output.notes[0]


def test_citations_join_the_sources_and_are_read_only_when_nothing_else_was_said() -> None:
    resources = [{"content": "It is y.", "document_name": "Manual"}, "odd", {}]
    citations = message("retriever_resources", retriever_resources=resources)

    said, _, output = collected(citations)
    assert said == "It is y."
    assert [source.title for source in output.sources] == ["Manual"]
    assert read(citations, text("answer")) == "answer"
    assert read(message("retriever_resources", retriever_resources=None)) == ""


@pytest.mark.parametrize("kind", ["text", "json", "link", "image_link", "binary_link", "blob", "file", "log", "x"])
def test_a_message_without_a_body_is_no_accident(kind: str) -> None:
    assert isinstance(read(message(kind)), str)


@given(
    st.lists(
        st.tuples(st.sampled_from(["text", "link", "image", "file", "blob", "json", "odd"]), any_text, json_values)
    )
)
@settings(deadline=None)
def test_whatever_a_tool_says_the_text_can_be_written(said: list[tuple[str, str, object]]) -> None:
    result = read(*(message(kind, {"filename": t}, text=t, blob=t, json_object=value) for kind, t, value in said))

    assert result.encode().decode() == result


def test_a_tool_that_said_nothing_is_told_apart() -> None:
    assert not ToolOutput().said_something
    assert read() == ""
    assert all(
        collected(one)[2].said_something
        for one in (
            text("x"),
            text(""),
            json_value(None),
            message("file"),
            message("variable", variable_name="order", variable_value="placed"),
            message("log", id="1"),
            message("hologram"),
            WireMessage(),
        )
    )


@pytest.mark.parametrize(
    "odd",
    [
        {"type": "weird", "message": [1]},
        {"type": "text", "message": "plain"},
        {"type": "blob", "message": 7, "meta": []},
        {"type": "image_link", "message": [], "meta": "x"},
        {"type": ["text"], "message": {"text": "x"}},
        {"type": None},
        {"message": {"text": "x"}},
        {},
    ],
    ids=repr,
)
def test_a_message_of_odd_shape_is_noted_once_and_costs_nothing_else(odd: dict[str, Any]) -> None:
    messages = [WireMessage.model_validate(one) for one in (odd, odd, {"type": "text", "message": {"text": "after"}})]
    said, files, output = collected(*messages)

    assert said.startswith("after")
    assert [file for file in files if not isinstance(file, FileBytes)] == []
    assert output.notes
    assert len(set(output.notes)) == len(output.notes)


@given(st.text(min_size=1, max_size=20), st.integers(1, 200), st.integers(100, 300))
@settings(deadline=None, max_examples=200)
def test_a_cut_result_is_never_longer_than_the_limit_and_keeps_head_and_tail(unit: str, times: int, limit: int) -> None:
    whole = unit * times
    result = cut_to_size(whole, limit)

    assert len(result) <= limit
    if len(whole) <= limit:
        assert result == whole
    else:
        head, middle, tail = result.partition("\n[… ")
        number, _, rest = tail.partition(" characters left out")
        end = rest.partition("…]\n")[2]
        assert all((head, middle, end))
        assert whole.startswith(head)
        assert whole.endswith(end)
        assert int(number) == len(whole) - len(head) - len(end)


def test_a_result_and_its_sources_share_the_limit() -> None:
    assert with_sources("text", "", 1000) == "text"
    assert with_sources("text", "[1] A", 1000) == "text\n\n[1] A"
    together = with_sources("t" * 5000, "s" * 5000, 1000)
    assert len(together) <= 1000
    assert together.startswith("t")
    assert together.endswith("s")
