"""Files of this machine that a person gives to a question or a tool, checked as Dify checks uploads.

In: paths. Out: a `LocalFile` for each, or a `ParameterError` with one sentence, before anything starts.
"""

import os
import stat
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Self

from devhost.errors import ParameterError
from devhost.limits import HostLimits
from devhost.node.messages.file_facts import AUDIO, IMAGE, VIDEO, file_type, mime_type_of
from devhost.plugin.casting import FILE_IDENTITY
from devhost.protocol.wire import JsonObject


@dataclass(frozen=True)
class LocalFile:
    path: Path
    size: int
    """Bytes."""

    @classmethod
    def read(cls, path: Path, limits: HostLimits) -> Self:
        try:
            status = path.stat()
        except FileNotFoundError:
            raise ParameterError(f"there is no file {path}") from None
        except (OSError, ValueError) as error:  # a ValueError for NUL in a path
            reason = error.strerror if isinstance(error, OSError) else error
            raise ParameterError(f"{str(path)!r} cannot be read: {reason}") from error
        if stat.S_ISDIR(status.st_mode):
            raise ParameterError(f"{path} is a folder: name a file")
        if not stat.S_ISREG(status.st_mode):
            raise ParameterError(f"{path} is not a file with contents, such as a document or a picture")
        if not os.access(path, os.R_OK):
            raise ParameterError(f"{path} cannot be read: its permissions do not allow it")
        read = cls(path.absolute(), status.st_size)
        read._check_size(limits)
        return read

    def __str__(self) -> str:
        return self.path.name

    @property
    def kind(self) -> str:
        """Dify's file type."""
        return file_type(self._extension, mime_type_of(self.path.name))

    def described(self, url: str) -> JsonObject:
        """As it stands in a plugin's parameters (dify-api, `File.to_plugin_parameter`)."""
        return {
            "dify_model_identity": FILE_IDENTITY,
            "mime_type": mime_type_of(self.path.name),
            "filename": self.path.name,
            "extension": self._extension,
            "size": self.size,
            "type": self.kind,
            "url": url,
        }

    @property
    def _extension(self) -> str:
        """Dify stores it in lower case without its dot, and puts the dot before whatever it has."""
        return f".{self.path.suffix.removeprefix('.').lower()}"

    def _check_size(self, limits: HostLimits) -> None:
        sizes = {IMAGE: limits.image_bytes, AUDIO: limits.audio_bytes, VIDEO: limits.video_bytes}
        most = sizes.get(self.kind, limits.document_bytes)
        if self.size > most:
            name = self.kind if self.kind in sizes else "document"
            raise ParameterError(
                f"{self.path} has {self.size:,} bytes; Dify takes at most {most:,} for this type of file. "
                f"Where your Dify takes more, give --limit {name}-bytes=NUMBER"
            )


def local_files(paths: Sequence[Path], limits: HostLimits) -> tuple[LocalFile, ...]:
    """Those of one message."""
    if len(paths) > limits.message_files:
        raise ParameterError(
            f"{len(paths)} files were given; Dify takes at most {limits.message_files} with a message. "
            "Where your Dify takes more, give --limit message-files=NUMBER"
        )
    return tuple(LocalFile.read(path, limits) for path in paths)
