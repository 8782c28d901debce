"""Pictures that tools make: which of them a model with vision sees, and when they give way."""

import base64
from collections.abc import Iterator

import pytest

from internal.host.session import MAX_REQUEST_BYTES
from internal.node.model import MAX_FILE_BYTES
from prompt import template
from tests.support.host import Json
from tests.support.plans import (
    STRATEGIES,
    offered,
)
from tests.support.run import Outcome, run
from tests.support.scenes import ANSWER, check_growth, search
from tests.support.wire import calls, json_message, model, parameter, replies, tool

PNG = b"\x89PNG\r\n\x1a\n"


def blob(name: str = "chart.png", data: bytes = PNG, mime_type: str = "image/png") -> Json:
    meta = {"filename": name, "mime_type": mime_type}
    return {"type": "blob", "message": {"blob": base64.b64encode(data).decode()}, "meta": meta}


def hosted(name: str, mime_type: str) -> Json:
    meta = {"tool_file_id": "7", "filename": name, "mime_type": mime_type}
    return {"type": "image_link", "message": {"text": "/files/tools/7.png"}, "meta": meta}


def parts_of(message: Json) -> list[str]:
    """What a user's message says; of a picture its name."""
    content = (
        [{"type": "text", "data": message["content"]}] if isinstance(message["content"], str) else message["content"]
    )
    return [part["data"] if part["type"] == "text" else f"<{part['filename']}>" for part in content]


def seen(outcome: Outcome, request: int = -1) -> list[list[str]]:
    """The messages with pictures of a prompt, without their header."""
    messages = [parts_of(each) for each in outcome.model.prompts[request] if each["role"] == "user"]
    return [parts[1:] for parts in messages if parts[0] == template.PICTURES_HEADER]


LEFT_OUT = template.ELIDED_MEDIA.format(kind="image")
BEYOND = template.PICTURE_BEYOND.format(most=4)


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_a_model_with_vision_sees_what_a_tool_draws(strategy: str) -> None:
    blueprint, before, after = STRATEGIES[strategy]
    outcome = run([*before, search(), ANSWER, *after], {"search": replies("Drawn.", blob())}, blueprint=blueprint)

    assert outcome.error is None
    requests = [request for request in outcome.model.requests if offered(request) == ["search"]]
    check_growth(requests)
    *_, result, between, shown = requests[1]["prompt_messages"]
    assert (between["role"], between["content"]) == ("assistant", template.TURN_BETWEEN)
    assert result["content"] == "Drawn.\n\nfile: chart.png (image/png), handed to the user"
    assert parts_of(shown) == [template.PICTURES_HEADER, "Pictures from search: chart.png", "<chart.png>"]
    picture = shown["content"][-1]
    assert (picture["type"], picture["mime_type"], picture["detail"]) == ("image", "image/png", "high")
    assert base64.b64decode(picture["base64_data"]) == PNG
    assert "Pictures from search: chart.png" in outcome.notes
    assert [body["end"] for body in outcome.bodies("blob_chunk")] == [False, True]


def test_a_model_without_vision_reads_what_it_read_before() -> None:
    blind = model(features=["tool-call"])

    outcome = run([search(), ANSWER], {"search": replies(blob())}, {"model": blind})

    assert outcome.model.prompts[1][-1]["role"] == "tool"
    assert outcome.notes == []


def test_every_picture_that_stays_out_is_named() -> None:
    many = [blob(f"{number}.png", PNG + bytes([number])) for number in range(3)]
    others = [
        blob("huge.png", PNG + bytes(MAX_FILE_BYTES)),
        blob("logo.svg", b"<svg/>", "image/svg+xml"),
        blob("error.png", b"Not found."),
        hosted("kept.png", "image/png"),
        hosted("kept.pdf", "application/pdf"),
        {"type": "image", "message": {"text": "https://a.example/b.png"}, "meta": None},
        blob("report.pdf", b"%PDF-1.7", "application/pdf"),
    ]
    handlers = {"first": replies(*many, *others), "second": replies(blob("a.png"), blob("b.jpg"), blob(""))}

    outcome = run([calls(("first", {}), ("second", {})), ANSWER], handlers)

    (shown,) = seen(outcome)
    assert shown[:-1] == [
        "Pictures from first: 0.png, 1.png, 2.png",
        *("<0.png>", "<1.png>", "<2.png>"),
        "Pictures from second: a.png",
        "<a.png>",
    ]
    assert shown[-1].splitlines() == [
        f"Not shown to you: huge.png from first: {template.PICTURE_TOO_LARGE}",
        "Not shown to you: logo.svg from first: models cannot take the type image/svg+xml",
        "Not shown to you: error.png from first: its bytes are not of the type image/png",
        f"Not shown to you: kept.png from first: {template.PICTURE_ELSEWHERE}",
        f"Not shown to you: https://a.example/b.png from first: {template.PICTURE_ELSEWHERE}",
        f"Not shown to you: b.jpg from second: {BEYOND}",
        f"Not shown to you: unnamed from second: {BEYOND}",
    ]


def test_a_name_is_one_line_without_secrets_and_the_type_is_that_of_the_bytes() -> None:
    secret = tool(
        "search", parameter("key", "secret-input", form="form"), runtime_parameters={"key": "hunter2-hunter2"}
    )
    pictures = replies(blob("a\nhunter2-hunter2.png", PNG, "application/octet-stream"))

    outcome = run([calls(("search", {})), ANSWER], {"search": pictures}, {"tools": [secret]})

    (shown,) = seen(outcome)
    assert shown[0] == "Pictures from search: a [redacted].png"
    assert "hunter2" not in str(outcome.model.prompts)
    assert outcome.model.prompts[-1][-1]["content"][-1]["mime_type"] == "image/png"


def test_pictures_yield_before_texts_when_the_window_is_full() -> None:
    said = "word " * 200
    steps = [search("a"), search("b"), search("c"), ANSWER]

    outcome = run(steps, {"search": replies(said, blob())}, {"model": model(context_size=4_000)})

    assert [parts[-1] for parts in seen(outcome)] == [LEFT_OUT, LEFT_OUT, "<chart.png>"]
    results = [message for message in outcome.model.prompts[-1] if message["role"] == "tool"]
    assert all(said.strip() in result["content"] for result in results)
    assert any("2 pictures of tools" in note for note in outcome.notes)


def test_a_request_stays_small_and_the_users_own_file_stays_in_it() -> None:
    def draw(request: Json) -> Iterator[Json]:
        letter = request["tool_parameters"]["q"]
        yield blob(f"{letter}.png", PNG + letter.encode() * 1_500_000)

    own = {
        "type": "image",
        "format": "png",
        "mime_type": "image/png",
        "filename": "own.png",
        "base64_data": "A" * 10**6,
    }
    asked = model(history_prompt_messages=[{"role": "user", "content": [own]}, {"role": "assistant", "content": "Hm."}])

    outcome = run([search("a"), search("b"), search("c"), ANSWER], {"search": draw}, {"model": asked})

    assert parts_of(outcome.model.prompts[-1][1]) == ["<own.png>"]
    assert [parts[-1] for parts in seen(outcome)] == [LEFT_OUT, LEFT_OUT, "<c.png>"]
    assert outcome.transport.longest_line <= MAX_REQUEST_BYTES


def test_an_equal_result_with_another_picture_is_another_result() -> None:
    def screenshots(*contents: bytes) -> Outcome:
        left = iter(contents)

        def shoot(_request: Json) -> Iterator[Json]:
            yield blob("screen.png", PNG + next(left))

        return run([*[search()] * 3, ANSWER], {"search": shoot})

    changing = screenshots(b"1", b"2", b"3")
    still = screenshots(b"1", b"1")

    assert (len(changing.tools.requests), len(seen(changing))) == (3, 3)
    assert (len(still.tools.requests), len(seen(still))) == (2, 2)
    assert template.REPEATED_RESULT_NOTE in still.tool_results(3)[0]


def test_the_picture_of_an_approved_call_is_seen_and_no_state_keeps_one() -> None:
    asking: Json = {"approval_required": "search", "extra_outputs": "state"}
    handlers = {"search": replies("Drawn.", blob())}
    first = run([search()], handlers, asking)
    second = run([ANSWER], handlers, {**asking, "state": first.variables["state"], "approval": "yes", "query": "yes"})
    third = run([ANSWER], handlers, {**asking, "state": second.variables["state"]})

    assert seen(second) == [["Pictures from search: chart.png", "<chart.png>"]]
    assert seen(third) == []
    assert "file: chart.png (image/png), handed to the user" in str(third.model.prompts[0])


def test_pictures_within_texts_and_json_are_seen_and_only_named_there() -> None:
    data = base64.b64encode(PNG + bytes(100)).decode()
    address = f"data:image/png;base64,{data}"
    said: list[Json | str] = [f"![chart]({address}) and data:image/png;base64,AAAA", json_message({"image": [address]})]

    outcome, blind = (
        run([search(), ANSWER], {"search": replies(*said)}, {"model": chosen, "extra_outputs": "tool_results"})
        for chosen in (model(), model(features=["tool-call"]))
    )

    assert outcome.tool_results() == [
        '![chart]([picture 1]) and data:image/png;base64,AAAA\n\n{"image": ["[picture 2]"]}'
    ]
    assert seen(outcome) == [["Pictures from search: picture 1, picture 2", "<picture 1>", "<picture 2>"]]
    assert outcome.variables["tool_results"][0]["json"] == {"image": [address]}
    assert blind.tool_results()[0].count(address) == 2
