"""The messages of a tool, where tests/agent/test_tool_output.py does not reach: odd values, limits, floods."""

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
from internal.events import MAX_FILE_BYTES, MAX_NAME_LENGTH, ExternalImage, HostedFile, UserFile
from internal.host.files import FileBytes, FileRefused, read_local_file
from internal.host.session import WireMessage, wellformed_message
from internal.text.secrets import KnownSecrets, Redactor
from tests.support.generators import any_text, json_values

HOSTED = "/files/tools/0a1b-2c3d.png"
NO_SECRETS = KnownSecrets(Redactor())


def message(kind: str, meta: dict[str, Any] | None = None, **body: Any) -> WireMessage:  # noqa: ANN401 - whatever a tool sends
    return wellformed_message(WireMessage(type=kind, message=body or None, meta=meta))


def text(said: str | None) -> WireMessage:
    return message("text", text=said)


def json_value(value: object) -> WireMessage:
    return message("json", json_object=value)


def variable(name: str, value: object, *, stream: bool = False) -> WireMessage:
    return message("variable", variable_name=name, variable_value=value, stream=stream)


def sources(*resources: dict[str, Any]) -> WireMessage:
    return message("retriever_resources", retriever_resources=list(resources))


def output_of(
    *messages: WireMessage, secrets: KnownSecrets = NO_SECRETS, between_texts: str = ""
) -> tuple[ToolOutput, list[UserFile]]:
    output = ToolOutput(secrets, between_texts)
    return output, [file for wire in messages if (file := output.read_one(wire))]


def collected(*messages: WireMessage) -> tuple[str, list[UserFile]]:
    output, files = output_of(*messages)
    return output.rendered(), files


def read(*messages: WireMessage) -> str:
    return collected(*messages)[0]


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
    if hasattr(thing, "__dict__"):
        return kept(vars(thing))
    return 1


PNG = b"\x89PNG\r\n\x1a\n" + b"\0" * 16
META = {"tool_file_id": "f1", "mime_type": "image/png", "filename": "chart.png"}
DEEP = "[" * 100_000
READ: dict[str, tuple[list[WireMessage], str]] = {
    "odd values": (
        [json_value({"half": "\ud83d", "nul": "\0", "id": 2**60})],
        '{"half": "?", "nul": "", "id": 1152921504606846976}',
    ),
    "text, JSON and lines": (
        [text("sa"), text(None), text("id"), json_value([1]), message("link", text="http://a.test/a")],
        "said\n\n[1]\n\nlink: http://a.test/a",
    ),
    # A workflow tool says its JSON as text first; the daemon writes 1.0 as 1.
    "JSON that was said": (
        [text('{\n"b": ["x"], "a": 1.0}'), json_value({"a": 1, "b": ["x"]})],
        '{\n"b": ["x"], "a": 1.0}',
    ),
    "each JSON by the text before it": (
        [text("[1]"), json_value([1]), text("[2]"), json_value([2]), json_value([3])],
        "[1][2]\n\n[3]",
    ),
    "JSON that only resembles the text": ([text('{"a": 1}'), json_value({"a": 2})], '{"a": 1}\n\n{"a": 2}'),
    "text that only begins like JSON": ([text("{broken"), json_value({"a": 2})], '{broken\n\n{"a": 2}'),
    "brackets beyond any parser": ([text(DEEP), json_value([1])], DEEP + "\n\n[1]"),
    "variables beside text": ([variable("v", 1), text("said"), variable("w", 1)], "said"),
    "variables beside JSON": ([variable("v", 1), json_value([1])], "[1]"),
    "variables beside a file": (
        [message("blob", {"filename": "a.txt", "mime_type": "text/plain"}, blob=""), variable("v", 1)],
        '{"v": 1}\n\nfile: a.txt (text/plain), handed to the user',
    ),
    "variables beside sources": ([sources({"content": "c"}), variable("v", 1)], '{"v": 1}\n\nc'),
    "sources beside text": ([sources({"content": "c"}, {}), text("answer")], "answer"),
    "many small messages": ([text(str(number % 10)) for number in range(20_000)], "0123456789" * 2_000),
}


@pytest.mark.parametrize(("messages", "expected"), READ.values(), ids=READ)
def test_what_the_model_reads(messages: list[WireMessage], expected: str) -> None:
    assert read(*messages) == expected


def test_the_last_value_of_a_variable_counts_and_pieces_of_a_streamed_text_follow_each_other() -> None:
    said = read(
        variable("chunks", ["é", {"a": None}]),
        text(" "),
        *(variable("n", number) for number in (1, 2)),
        *(variable("s", piece, stream=True) for piece in ("a\n", 'b"')),
        *(variable("again", piece, stream=True) for piece in ("a", 5, "b")),
        variable("t", "x"),
        variable("t", "y", stream=True),
    )

    assert json.loads(said) == {"chunks": ["é", {"a": None}], "n": 2, "s": 'a\nb"', "again": "b", "t": "y"}


WEB = "https://host.test/a"
PDF = "/files/tools/f1.pdf?sign=x"
ENDLESS = "https://host.test/" + "x" * 5000
REMOTE = {"filename": "a.png", "mime_type": "image/png", "remote_url": WEB}
REPORT = {"tool_file_id": "f", "filename": "report"}
CHART = "file: chart.png (image/png), handed to the user"


def described(**file: Any) -> WireMessage:  # noqa: ANN401 - passed on as it is
    return message("file", {"file": file})


FILES: list[tuple[WireMessage, str, UserFile | None]] = [
    (message("link", META, text=WEB), CHART, HostedFile(WEB, META)),
    (message("image", {**META, "made_up": "x" * 1000}, text=HOSTED), CHART, HostedFile(HOSTED, META)),
    (
        message("binary_link", REPORT, text=PDF),
        "file: report.pdf (unknown type), handed to the user",
        HostedFile(PDF, {**REPORT, "filename": "report.pdf"}),
    ),
    (message("link", {"tool_file_id": ""}, text="/etc/passwd"), "link: /etc/passwd", None),
    (message("binary_link", text="ftp://host.test/a"), "file: ftp://host.test/a", None),
    (message("binary_link", META, text="/dev/zero"), str(FileRefused()), None),
    (message("image_link", META, text=ENDLESS), "file: its address is too long, not handed on", None),
    (message("image_link", {"file": REMOTE}, text=WEB), f"image: a.png, {WEB}, shown to the user", ExternalImage(WEB)),
    (described(type="image", remote_url=WEB), f"image: {WEB}, shown to the user", ExternalImage(WEB)),
    (described(**{**REMOTE, "mime_type": "x/y"}), f"file: a.png (x/y), {WEB}", None),
    (described(**{**REMOTE, "remote_url": "/etc/passwd"}), "file: a.png (image/png)", None),
    (described(**{**REMOTE, "remote_url": ENDLESS}), "file: a.png (image/png)", None),
    (described(mime_type="text/csv"), "file (text/csv)", None),
    (message("file", {"filename": "a\nb.png", "mime_type": "x/y"}), "file: a b.png (x/y)", None),
    (
        message("blob", {"mime_type": None}, blob=base64.b64encode(PNG).decode()),
        "file (image/png), handed to the user",
        FileBytes(PNG, "image/png", ""),
    ),
    (message("blob", blob="日本"), "file: its bytes could not be read", None),
    (message("blob", blob=5), "file: its bytes could not be read", None),
    (message("blob", blob="A" * (MAX_FILE_BYTES // 3 * 4 + 4)), "file: larger than 15 MiB, not handed on", None),
]


@pytest.mark.parametrize(("wire", "line", "file"), FILES)
def test_what_becomes_of_a_file(wire: WireMessage, line: str, file: UserFile | None) -> None:
    assert collected(wire) == (line, [file] if file else [])


def test_a_local_file_under_the_root_is_handed_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "chart.png").write_bytes(PNG)
    monkeypatch.setattr("internal.calls.output.read_local_file", partial(read_local_file, root=tmp_path))

    said, files = collected(message("image", text=f"{tmp_path}/chart.png"))

    assert files == [FileBytes(PNG, "image/png", "chart.png")]
    assert said == "file: chart.png (image/png), handed to the user"


def test_no_text_of_a_files_meta_is_longer_than_a_name() -> None:
    endless = "x" * 10_000
    odd = {"mime_type": endless, "filename": f"{endless}.png", "type": [endless], "size": 7, "extension": None}
    blobs = [message("blob", {"filename": name}, blob="") for name in (f".{endless}", f"a.{endless}", endless)]

    hosted = collected(message("image_link", {"tool_file_id": "f1", **odd}, text=HOSTED))[1]

    short = {"mime_type": "x" * MAX_NAME_LENGTH, "filename": "x" * (MAX_NAME_LENGTH - 4) + ".png"}
    assert hosted == [HostedFile(HOSTED, {"tool_file_id": "f1", **short, "size": 7})]
    assert [len(getattr(file, "filename", "")) for file in collected(*blobs)[1]] == [MAX_NAME_LENGTH] * 3


SECRET = "hunter2-hunter2"
RESOURCES = {"title": "t" * 192 + SECRET, "content": "c" * 39_992 + SECRET, "document_name": "n" * 300 + SECRET}


@pytest.mark.parametrize(
    "wire",
    [
        message("blob", {"mime_type": f"text/{SECRET}", "filename": "a" * 192 + SECRET}, blob="aGVsbG8="),
        message("link", {"tool_file_id": "t", "filename": "a" * 188 + SECRET + ".png"}, text="/files/tools/a.png"),
        message("file", {"file": {"name": "a" * 192 + SECRET, "mime_type": SECRET}}),
        message("binary_link", text="https://a.test/" + "a" * 177 + SECRET),
        sources(RESOURCES),
    ],
    ids=lambda wire: wire.type,
)
def test_no_part_of_a_secret_is_left_where_names_and_titles_are_cut(wire: WireMessage) -> None:
    output, files = output_of(wire, secrets=KnownSecrets(Redactor.of([SECRET])))

    assert "hunter" not in output.rendered()
    assert "hunter" not in repr((files, output.sources))


def test_a_secret_that_two_text_blocks_share_is_replaced() -> None:
    blocks = map(text, ("key", "correct", "-horse", "end"))
    output, _ = output_of(*blocks, secrets=KnownSecrets(Redactor.of(["correct-horse"])), between_texts="\n")

    assert output.rendered() == "key\n[redacted]\nend"


@given(
    st.lists(
        st.tuples(st.sampled_from(["text", "link", "image", "file", "blob", "json", "odd"]), any_text, json_values)
    )
)
def test_any_result_of_a_tool_can_be_written(said: list[tuple[str, str, object]]) -> None:
    result = read(*(message(kind, {"filename": t}, text=t, blob=t, json_object=value) for kind, t, value in said))

    assert result.encode().decode() == result


MEGABYTE = "m" * 1_000_000
ENDS = "only the beginning and the end were kept"
TOGETHER = "were kept: together they are too long"
LONG = {"content": MEGABYTE, "doc_metadata": {"a": MEGABYTE}}
FLOODS: dict[str, tuple[Callable[[int], WireMessage], str]] = {
    "text": (lambda _: text(MEGABYTE), f"of its 30,000,000 characters of text {ENDS}"),
    "JSON": (lambda at: json_value({"n": at, "m": MEGABYTE}), f"of its 30,000,588 characters of JSON {ENDS}"),
    "links": (
        lambda _: message("link", text=MEGABYTE),
        f"of its 30,000,209 characters of lines about files and links {ENDS}",
    ),
    "hosted files": (lambda _: message("image_link", {"tool_file_id": "1", "filename": MEGABYTE}, text=HOSTED), ""),
    "one variable": (lambda at: variable("v", f"{at}{MEGABYTE}"), f"not all of its variables {TOGETHER}"),
    "variables": (lambda at: variable(f"v{at}{MEGABYTE}", MEGABYTE), f"not all of its variables {TOGETHER}"),
    "a stream": (lambda _: variable("v", MEGABYTE, stream=True), f"not all of its variables {TOGETHER}"),
    "long sources": (
        lambda at: sources({"document_id": f"{at}{MEGABYTE}", **LONG}),
        f"not all of its sources {TOGETHER}",
    ),
    "short sources": (
        lambda at: sources(*({"title": f"{at}.{place}"} for place in range(1_000))),
        f"not all of its sources {TOGETHER}",
    ),
}


@pytest.mark.heavy
@pytest.mark.parametrize(("flood", "note"), FLOODS.values(), ids=FLOODS)
def test_of_any_amount_only_a_readable_part_is_kept_and_the_log_says_so(
    flood: Callable[[int], WireMessage], note: str
) -> None:
    output, _ = output_of(*map(flood, range(30)))

    assert kept(output) < 9_000_000
    assert len(output.rendered()) < 5_000_000
    assert output.notes == ([note] if note else [])
