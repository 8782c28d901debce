"""The base of the office's tools: it opens the database, and hands a model what it can correct as a text.

A tool imports this module and not the class: the SDK takes every class of `Tool` in a tool's module for the tool.
"""

import os
import tempfile
from abc import abstractmethod
from collections.abc import Callable, Generator
from functools import cache
from pathlib import Path
from typing import Any, ClassVar

from dify_plugin import Tool
from dify_plugin.entities.tool import ToolInvokeMessage

from .store import RequestError, Store

VARIABLE = "OFFICE_DIRECTORY"
_PLUGIN_FOLDER = Path(__file__).resolve().parent.parent


class OfficeTool(Tool):
    name: ClassVar[str]

    @abstractmethod
    def act(self, office: Store, given: Callable[[str], str]) -> str:
        """Returns what the model reads. `given`: a parameter by its name, "" for one that is missing.

        Raises:
            RequestError: The model reads the sentence, and can correct the call.
        """

    def _invoke(self, tool_parameters: dict[str, Any]) -> Generator[ToolInvokeMessage, None, None]:
        office = Store(_PLUGIN_FOLDER / "documents", database_directory(_PLUGIN_FOLDER))
        try:
            said = self.act(office, lambda name: str(tool_parameters.get(name) or "").strip())
        except RequestError as error:
            said = f"{self.name} error: {error}"
        yield self.create_text_message(said)


def database_directory(plugin_folder: Path) -> Path:
    """What the environment variable names, else `data/` in the plugin's folder, else a temporary directory."""
    directory = Path(os.environ.get(VARIABLE, "").strip() or plugin_folder / "data")
    try:
        directory.mkdir(parents=True, exist_ok=True)
    except OSError:  # of a packaged plugin the folder often cannot be written
        return _temporary_directory()
    return directory


@cache
def _temporary_directory() -> Path:
    return Path(tempfile.mkdtemp(prefix="office-"))
