"""Which files and addresses a script may use, because it may come from someone else.

What a script reads is sent to a model's provider. By default, a script may use files in or below its own folder, and
no addresses. A user can allow more for one command.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, replace
from pathlib import Path

import click

from devhost.errors import ParameterError
from devhost.options import Declared, option
from devhost.text import real_path


@dataclass(frozen=True)
class AllowedFolders:
    folders: tuple[Path, ...] = ()
    """Folders whose files a script may send, besides its own folder."""
    http: bool = False
    """Whether a recorded answer may make devhost fetch an address."""


_NOTHING = AllowedFolders()
_REACH = ContextVar("reach", default=_NOTHING)


@contextmanager
def reaching(reach: AllowedFolders) -> Iterator[None]:
    """Allow these files and addresses to scripts that are read inside the context."""
    token = _REACH.set(reach)
    try:
        yield
    finally:
        _REACH.reset(token)


def may_fetch() -> bool:
    return _REACH.get().http


def within_reach(file: Path, folder: Path) -> Path:
    """Return the file unchanged. Raises ParameterError for a file outside of the script's `folder` and allowed folders.

    Links are resolved before the check.
    """
    real = real_path(file)
    if any(real.is_relative_to(real_path(each)) for each in (folder, *_REACH.get().folders)):
        return file
    sentence = f"the file {file} (that is, {real}) is outside of the script's folder {real_path(folder)}"
    raise ParameterError(f"{sentence}: allow it with --allow-files {real.parent}")


def allow_files_option() -> Declared:
    words = "Let scripts send files of this folder, besides those of their own. Repeatable."
    return option("--allow-files DIR...", words, callback=_files_allowed)


def allow_http_option() -> Declared:
    words = "Let HTTP request nodes of flows, and recorded answers with pictures of other servers, send requests."
    return option("--allow-http", words, callback=_http_allowed)


def _files_allowed(context: click.Context, _option: click.Parameter, given: tuple[Path, ...]) -> tuple[Path, ...]:
    context.with_resource(reaching(replace(_REACH.get(), folders=given)))
    return given


def _http_allowed(context: click.Context, _option: click.Parameter, given: bool) -> bool:  # noqa: FBT001 - as click passes it
    context.with_resource(reaching(replace(_REACH.get(), http=given)))
    return given
