"""Conversations whose states are kept in tests/fixtures/state, each with the node that continues it.

NAME.txt is the state exactly as a run put it out, NAME.json shows people what it holds.
"""

import base64
import json
import zlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests.support.host import Handler, Json, Step, When
from tests.support.local_http import file
from tests.support.plans import STRATEGIES, advised, answers, completed, done_at_once, incomplete, plans, works_on
from tests.support.run import Outcome, run
from tests.support.scenes import CITY
from tests.support.wire import breaks, calls, json_message, message, model, parameter, replies, says, text_message, tool

FOLDER = Path(__file__).parents[1] / "fixtures" / "state"

type Call = tuple[str, Json]
"""A tool, and the parameters with which it was called."""


@dataclass(frozen=True)
class Turn:
    query: str
    steps: Sequence[Step]
    params: Json = field(default_factory=dict)


@dataclass(frozen=True)
class RecordedState:
    """The turns that lead to a state, and what happens in the next turn."""

    turns: Sequence[Turn]
    handlers: Mapping[str, Handler]
    node: Json
    """Parameters of the node in every turn."""
    strategy: str = "function calling"
    """One of ``STRATEGIES``."""
    waiting: Sequence[Call] = ()
    """The calls that an approval makes, in any order."""
    after_yes: Sequence[Step] = ()
    after_no: Sequence[Step] = ()

    def put_out(self) -> str:
        """The state that a run puts out today after the last turn."""
        state = ""
        for turn in self.turns:
            outcome = self.next_run(state, turn.query, turn.steps, **turn.params)
            assert outcome.error is None
            state = outcome.variables["state"]
        return state

    def answered(self, state: str, approval: str, steps: Sequence[Step]) -> Outcome:
        """The next run in a chat: what the user says is both the approval and the query."""
        return self.next_run(state, approval, steps, approval=approval)

    def next_run(self, state: str, query: str, steps: Sequence[Step], **params: object) -> Outcome:
        blueprint, _, _ = STRATEGIES[self.strategy]
        given = {**self.node, "extra_outputs": "state", "state": state, "query": query, **params}
        return run(steps, self.handlers, given, blueprint=blueprint)


def made_calls(outcome: Outcome) -> list[Call]:
    """The calls that reached a tool."""
    return [(request["tool"], request["tool_parameters"]) for request in outcome.tools.requests]


def stored(name: str) -> str:
    """The recorded text."""
    return (FOLDER / f"{name}.txt").read_text(encoding="utf-8").removesuffix("\n")


def stored_json(name: str) -> Any:  # noqa: ANN401 - JSON
    """What the recorded text holds."""
    return json.loads((FOLDER / f"{name}.json").read_text(encoding="utf-8"))


def is_stored(name: str) -> bool:
    return (FOLDER / f"{name}.txt").exists()


def store(name: str, text: str) -> None:
    """Keep the state of a run under a name that has none."""
    shown = json.dumps(json.loads(content(text)), indent=1, ensure_ascii=False)
    (FOLDER / f"{name}.txt").write_text(f"{text}\n", encoding="utf-8")
    (FOLDER / f"{name}.json").write_text(f"{shown}\n", encoding="utf-8")


def content(text: str) -> bytes:
    """The JSON in the text of a state, which is packed as a raw deflate stream and written in base64."""
    packed = text.rpartition(".")[2]
    return zlib.decompress(base64.urlsafe_b64decode(packed), wbits=-zlib.MAX_WBITS)


def ordered(request: Json) -> Iterator[Json]:
    yield text_message(f"ordered: {request['tool_parameters']['q']}")


def transfer(bank: str) -> Json:
    """A tool whose bank a developer has set in the node."""
    own = [parameter("amount"), parameter("bank", form="form")]
    return tool("transfer", *own, runtime_parameters={"bank": bank})


LONG = "".join(f"Line {number} of the minutes. " for number in range(60))
"""Long enough for an id."""
ITEMS: Json = {"items": [{"id": 7, "name": "ランプ"}, {"id": 2**60}]}
SOURCE = {"title": "Opening hours", "content": "The shop opens at nine.", "metadata": {"document_id": "d1"}}
FILM = file("http://host.test/a.mp4", "video", mime_type="video/mp4", extension=".mp4")
OFFER = file(
    "http://files.test/files/1/offer.pdf?timestamp=1&nonce=2&sign=valid",
    "document",
    mime_type="application/pdf",
    extension=".pdf",
)
SEND = tool("send", parameter("q"), parameter("body", "object"), parameter("list", "array"))
MAIL = tool("mail", parameter("to"), parameter("offer", "file", required=True))
FILLERS = [tool(f"filler_{number}", parameter("q")) for number in range(1, 41)]
WEATHER = tool("get_weather", parameter("q", required=True))
SHOP: dict[str, Handler] = {"search": replies("a shop"), "order": ordered, "quote": replies("Quote A-17: 40 euros.")}
SEARCHED: dict[str, Handler] = {
    "search": replies(
        "The shop closes at <b>five</b>. 😀",
        message("retriever_resources", retriever_resources=[{"document_name": "Closing", "document_id": "d2"}]),
    ),
    "weather": breaks("503 service unavailable"),
}
LAMP: Call = ("order", {"q": "lamp"})
CHAIR: Call = ("order", {"q": "chair"})
DONE = says("Done.")

RECORDED: dict[str, RecordedState] = {
    "conversation": RecordedState(
        turns=[
            Turn(
                "When do you open, and when do you close?",
                [
                    calls(("search", {"q": "closing"}), ("weather", {"q": "Kyoto"}), text="I look both up."),
                    says("It opens at nine [1] and closes at five [2]."),
                ],
                {"context": [SOURCE], "files": [FILM]},
            ),
            Turn(
                "日曜日は開いていますか。",
                [
                    calls(("search", {"q": "日曜日"}), ("nothing", {"x": 1}), ("search", "{")),
                    says("はい、開いています [2]。"),
                ],
            ),
        ],
        handlers=SEARCHED,
        node={},
    ),
    "summary": RecordedState(
        turns=[
            Turn(
                "What does a lamp cost?",
                [says("The user wants lamps. A lamp costs 3."), calls(("search", {"q": "lamp"})), says("3 euros.")],
                {
                    "model": model(
                        context_size=6_000,
                        history_prompt_messages=[
                            {"role": "user", "content": f"I want lamps. {'fact ' * 6_000}"},
                            {"role": "assistant", "content": "A lamp costs 3."},
                        ],
                    )
                },
            )
        ],
        handlers=SHOP,
        node={},
    ),
    "skills_and_tools": RecordedState(
        turns=[
            Turn(
                "Is it raining in Rome?",
                [
                    calls(("read_skill", {"name": "tone"}), ("find_tools", {"query": "weather"})),
                    calls(("get_weather", {"q": "Rome"})),
                    says("Yes."),
                ],
            )
        ],
        handlers={"get_weather": replies("Rain.")},
        node={
            "tools": [*FILLERS, WEATHER],
            "skills": "---\nname: tone\ndescription: Words.\n---\nBe kind.",
        },
    ),
    "waiting_react": RecordedState(
        turns=[Turn("Order a lamp.", [calls(("search", {"q": "lamp"})), calls(LAMP, text="I order it.")])],
        handlers=SHOP,
        node={"approval_required": "order"},
        strategy="react",
        waiting=[LAMP],
        after_yes=[DONE],
        after_no=[DONE],
    ),
    "waiting_file": RecordedState(
        turns=[
            Turn(
                "Send it to a@b.example.",
                [calls(("mail", {"to": "a@b.example", "offer": "offer.pdf"}))],
                {"files": [OFFER]},
            )
        ],
        handlers={"mail": replies("sent")},
        node={"tools": [MAIL], "approval_required": "mail"},
        waiting=[("mail", {"to": "a@b.example", "offer": OFFER})],
        after_yes=[DONE],
        after_no=[DONE],
    ),
    "waiting_for_one_of_two_settings": RecordedState(
        turns=[Turn("Pay 5.", [calls(("tools_transfer", {"amount": "5"}), text="I pay.")])],
        handlers={"transfer": replies("paid")},
        node={"tools": [transfer("sandbox"), transfer("production")], "approval_required": "transfer"},
        waiting=[("transfer", {"amount": "5", "bank": "production"})],
        after_yes=[DONE],
        after_no=[DONE],
    ),
    "waiting_references": RecordedState(
        turns=[
            Turn(
                "Send the minutes to the first one.",
                [
                    calls(("read", {"q": "minutes"}), ("find", {"q": "items"})),
                    calls(("send", {"q": "result:r1", "body": "result:r2#", "list": ["result:r2#/items/0/id", "x"]})),
                ],
            )
        ],
        handlers={"read": replies(LONG), "find": replies(json_message(ITEMS)), "send": replies("sent")},
        node={"tools": [tool("read", parameter("q")), tool("find", parameter("q")), SEND], "approval_required": "send"},
        waiting=[
            ("send", {"q": LONG, "body": {"items": [ITEMS["items"][0], {"id": str(2**60)}]}, "list": [7, "x"]}),
        ],
        after_yes=[DONE],
        after_no=[DONE],
    ),
    "waiting_beside_answer_tool": RecordedState(
        turns=[Turn("Order a lamp and make a quote.", [calls(("quote", {"q": "lamp"}), ("search", {"q": "a"}), LAMP)])],
        handlers=SHOP,
        node={"approval_required": "order", "answer_tools": "quote"},
        waiting=[("quote", {"q": "lamp"}), LAMP],
        after_no=[DONE],
    ),
    "waiting_among_done": RecordedState(
        turns=[
            Turn("Which city has lamps?", [calls(("submit_answer", {"city": "Rome"}))]),
            Turn(
                "Order one, and a chair.",
                [
                    calls(
                        LAMP,
                        ("search", {"q": "a"}),
                        ("submit_answer", {"city": "Rome"}),
                        ("order", "broken"),
                        CHAIR,
                    )
                ],
            ),
        ],
        handlers=SHOP,
        node={"approval_required": "order", "answer_schema": CITY},
        waiting=[LAMP, CHAIR],
        after_yes=[calls(("submit_answer", {"city": "Rome"}))],
        after_no=[calls(("submit_answer", {"city": "Rome"}))],
    ),
    "waiting_in_plan": RecordedState(
        turns=[
            Turn(
                "Buy a lamp and a chair, and find a desk.",
                [
                    plans("lamp", "chair", "desk"),
                    works_on("lamp", says("Hm.")),
                    incomplete("lamp", "Order it."),
                    advised("Order it.", calls(LAMP)),
                    works_on("chair", calls(("search", {"q": "chair"}))),
                    When("a shop", calls(CHAIR)),
                    *done_at_once("desk"),
                ],
                {"context": [SOURCE]},
            )
        ],
        handlers=SHOP,
        node={"approval_required": "order"},
        strategy="plan and reflect",
        waiting=[LAMP, CHAIR],
        after_yes=[completed("lamp"), completed("chair"), answers(), says("Ordered."), says("Ordered.")],
        after_no=[completed("lamp"), completed("chair"), answers(), says("Not ordered."), says("Not ordered.")],
    ),
}
"""By the names of their files. Names that begin with v belong to tests/unit/test_state.py."""
