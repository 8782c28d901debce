"""What all tools do around the store: read the parameters as texts, and answer the model or fail."""

from collections.abc import Callable, Mapping
from pathlib import Path

from .errors import RequestError
from .location import database_directory
from .store import Store

_PLUGIN_FOLDER = Path(__file__).resolve().parent.parent


def office() -> Store:
    return Store(_PLUGIN_FOLDER / "documents", database_directory(_PLUGIN_FOLDER))


def text_of(parameters: Mapping[str, object], name: str) -> str:
    return str(parameters.get(name) or "").strip()


def answered(tool: str, act: Callable[[], str]) -> str:
    """The text for the model. What it can correct, it reads; other failures are the operator's and are raised."""
    try:
        return act()
    except RequestError as error:
        return f"{tool} error: {error}"
