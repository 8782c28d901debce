"""The tests of flows run in the environment of the workflow engine: `make flows`."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from devhost.flow.turn import has_engine
from devhost.host.host import Host
from devhost.models.backend import ModelRequest
from devhost.protocol.wire import JsonObject
from devhost.tools.setup import ToolSetup
from tests.support.strict_reader import READER

ROOT = Path(__file__).parents[2]
FIXTURES = ROOT / "devhost" / "tests" / "fixtures"
CHARTS_KEY = "ck_live_1234567890"
PROMPTS_OF_DIFY = {"parameter-extractor", "question-classifier"}
"""Nodes whose prompts the engine writes: an extractor's has calls of the engine's own, and results without names."""
collect_ignore_glob = [] if has_engine() else ["test_*.py"]


@pytest.fixture(scope="session", autouse=True)
def nodes_are_read() -> Iterator[None]:
    """The strict reader reads what the nodes of a flow ask models, too, where the prompt is the flow's own."""
    from devhost.flow.engine.models import AskedModel  # noqa: PLC0415 - where the engine is

    ask = AskedModel.invoke

    def invoke(model: AskedModel, request: ModelRequest, /) -> Iterator[JsonObject]:
        answer = ask(model, request)
        if model._node.type in PROMPTS_OF_DIFY:
            return answer
        return READER.answers(request.model_dump(mode="json"), answer)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(AskedModel, "invoke", invoke)
        yield


@pytest.fixture(scope="session")
def office() -> Iterator[Host]:
    """A host with the tools of the office, which send and delete."""
    with Host.start(ROOT, tools=[ROOT / "examples" / "injection"]) as host:
        yield host


@pytest.fixture(scope="session")
def puppet() -> Iterator[Host]:
    """A host with the strategy that does what its query says, and tools of all shapes."""
    setups = [
        *(ToolSetup.read(FIXTURES / name) for name in ("toolbox", "oddments")),
        ToolSetup.read(FIXTURES / "charts", credentials={"charts": {"api_key": CHARTS_KEY}}),
    ]
    with Host.start(FIXTURES / "puppet", tools=[setup.with_every_tool() for setup in setups]) as host:
        yield host
