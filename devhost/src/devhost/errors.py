"""The exceptions of devhost, which all derive from `HostError`, and wording that their messages share."""

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any


class HostError(Exception):
    """An error on the host's side. Its text is a sentence for the user at the terminal."""

    field = ""
    """The input that the error is about, if it is a single one.

    It is `plugin`, `tools`, `script`, `strategy`, `model`, `storage`, `param.NAME`, `completion.NAME`,
    `credential.PROVIDER.KEY`, `set.TOOL.PARAMETER` or the name of another option.
    """


def naming(names: Iterable[object]) -> str:
    """Return the end of a message about an unknown name, which lists the known ones: `there are: a, b`."""
    return f"there are: {', '.join(map(str, names)) or 'none'}"


@contextmanager
def about(field: str) -> Iterator[None]:
    """Set the field of an error raised inside, unless the error already has one."""
    try:
        yield
    except HostError as error:
        error.field = error.field or field
        raise


class DeclarationError(HostError):
    """A YAML file cannot be read, or a plugin directory is incomplete or does not fit the schema of plugins."""


class ScriptError(HostError):
    """A script, read from YAML or given as data, does not fit the schema of scripts."""


class ParameterError(HostError, ValueError):
    """A value for a parameter, an option or a variable that Dify or devhost refuses before a run."""


class NodeParameterError(ParameterError):
    """A value of a node's parameter that fails the node. `words` is the text that the node shows.

    The message names the `parameter`, if there is one, with its `mistake`, such as `is empty`, or else with `words`.
    """

    def __init__(self, words: str, parameter: str = "", mistake: str = "") -> None:
        if mistake:
            said = f"{parameter} {mistake}"
        else:
            said = f"{parameter}: {words}"
        super().__init__(f"{said} (in Dify this fails the node)" if parameter else words)
        self.words = words
        if parameter:
            self.field = f"param.{parameter}"
        else:
            self.field = ""


class PluginStartError(HostError):
    """A plugin did not start, or did not serve in time. The message includes the end of its stderr."""


class SetupError(HostError):
    """A plugin refuses its credentials, or a tool refuses a fixed value."""


class WireError(HostError):
    """A message that does not follow the protocol."""


class TraceError(HostError):
    """A trace cannot be written or read."""


class SuiteError(HostError):
    """A file of cases or results cannot be read or run. The message names the case and the key."""


class ConsoleError(HostError):
    """The console cannot be served, or cannot do what was requested."""


class BusyError(ConsoleError):
    """The maximum number of runs is in progress."""

    def __init__(self, names: tuple[str, ...]) -> None:
        super().__init__(f"{len(names)} runs are in progress, and no more are allowed: end one of {', '.join(names)}")
        self.names = names


class UnknownRunError(ConsoleError):
    """The console's folder does not contain the run."""


class FlowFileError(HostError):
    """A DSL file is not a flow, or needs something that devhost does not have. The message names the node."""


class OtherAppError(FlowFileError):
    """A Dify app that is neither a workflow nor a chatflow."""


class UnansweredFormError(HostError):
    """A Human Input node waits for an answer that was not given. The message says how to give it."""


class RefusedCallError(HostError):
    """A backwards call that the daemon refuses. The message is the daemon's."""


class RunFailure(HostError):  # noqa: N818 - a base class, whose subclasses are named …Error
    """A run that began and failed."""


class PluginLostError(RunFailure):
    """The plugin ended, or was killed, during or before a run."""


class InvocationError(RunFailure):
    """An invocation failed with `{error_type, message, args}`, or the daemon reported an error instead."""

    def __init__(self, error_type: str, message: str, args: dict[str, Any] | None = None) -> None:
        super().__init__(message)
        self.error_type = error_type
        self.message = message
        self.details = args
        traceback = (args or {}).get("traceback")
        if traceback is None:
            self.traceback = None
        else:
            self.traceback = str(traceback)

    @property
    def said(self) -> dict[str, Any]:
        """The error as the daemon sends it to the node."""
        said: dict[str, Any] = {"error_type": self.error_type, "message": self.message}
        if self.details is None:
            return said
        return {**said, "args": self.details}


class RunTimeoutError(RunFailure):
    """The run took longer than `HostLimits.run_seconds`."""


class RunStoppedError(RunFailure):
    """A person stopped the run."""


class PriceLimitError(RunFailure):
    """The model calls of the run reached the price limit."""


class NodeFailedError(RunFailure):
    """A message cannot become part of the node's outputs.

    `rule` names the reason, and `shows` is what the node shows.
    """

    def __init__(self, rule: str, sentence: str, *, shows: str = "") -> None:
        super().__init__(sentence)
        self.rule = rule
        self.shows = shows or sentence
