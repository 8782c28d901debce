"""What a person types for a tool, as values: its arguments, its files, and the model that it may ask."""

import os
from collections.abc import Iterator
from pathlib import Path

from devhost.cli.options.model_options import BASE_URL, KEY, ModelOptions
from devhost.errors import ParameterError
from devhost.files.local_file import LocalFile
from devhost.limits import HostLimits
from devhost.models.backend import ModelBackend
from devhost.models.no_model import NoModel


def tool_model(options: ModelOptions) -> ModelBackend:
    configured = any(os.environ.get(name, "").strip() for name in (KEY, BASE_URL))
    asks_for_one = options != ModelOptions(scripted=options.scripted)
    return options.choose(None, "") if asks_for_one or (configured and not options.scripted) else NoModel()


def assignments(given: tuple[str, ...], option: str) -> Iterator[tuple[str, str]]:
    for assignment in given:
        key, equals, text = assignment.partition("=")
        if not equals or not key:
            raise ParameterError(f"{option} {key!r} is not KEY=VALUE")
        yield key, text


def given_file(text: str, limits: HostLimits) -> tuple[str, LocalFile]:
    """A path that exists is a path, whatever it is called."""
    key, equals, path = text.partition("=")
    if not equals or Path(text).exists():
        key, path = "", text
    return key, LocalFile.read(Path(path), limits)
