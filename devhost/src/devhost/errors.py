"""The exceptions of devhost: one tree, whose root is `HostError`; and words that their sentences share."""

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any


class HostError(Exception):
    """An error on the host's side; its text is a sentence for the person at the terminal."""

    field = ""
    """What a person gave that it is about, if one thing: `plugin`, `tools`, `script`, `strategy`, `model`, `storage`,
    `param.NAME`, `completion.NAME`, `credential.PROVIDER.KEY`, `set.TOOL.PARAMETER` and other options' names."""


def naming(names: Iterable[object]) -> str:
    """What there is, at the end of a sentence about what there is not: `there are: a, b`."""
    return f"there are: {', '.join(map(str, names)) or 'none'}"


@contextmanager
def about(field: str) -> Iterator[None]:
    """An error inside that does not name its field is about this one."""
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
    """`words` are what the node shows.

    The sentence adds the parameter's name if they do not contain it, or says the `mistake` instead, such as `is empty`.
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
    """A plugin did not start, or did not serve in time; with the end of its stderr."""


class SetupError(HostError):
    """A plugin refuses its credentials, or a tool a fixed value."""


class WireError(HostError):
    """A message that does not follow the protocol."""


class TraceError(HostError):
    """A trace cannot be written or read."""


class SuiteError(HostError):
    """A file of cases or of results that cannot be read or run; the sentence names the case and the key."""


class ConsoleError(HostError):
    """The console cannot be served, or cannot do what was asked of it."""


class BusyError(ConsoleError):
    """No more runs may go on at once."""

    def __init__(self, names: tuple[str, ...]) -> None:
        super().__init__(f"{len(names)} runs go on, and no more may: end one of {', '.join(names)}")
        self.names = names


class UnknownRunError(ConsoleError):
    """The console's folder has no such run."""


class FlowFileError(HostError):
    """A DSL file that is not a flow, or that asks for what devhost does not have; the sentence names the node."""


class OtherAppError(FlowFileError):
    """An app of Dify's that is neither a workflow nor a chatflow."""


class UnansweredFormError(HostError):
    """A Human Input node waits for an answer that was not given; the sentence says how to give it."""


class RefusedCallError(HostError):
    """A backwards call that the daemon refuses, in its words."""


class RunFailure(HostError):  # noqa: N818 - a family of endings, each of which is named …Error
    """A run that began and failed."""


class PluginLostError(RunFailure):
    """The plugin ended, or was killed, during or before a run."""


class InvocationError(RunFailure):
    """The `{error_type, message, args}` of an invocation that raised, or an error of the daemon in its place."""

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
    """The model calls of the run cost what they may cost."""


class NodeFailedError(RunFailure):
    """The message cannot become part of the node's outputs; `rule` names the reason, and the node `shows` a text."""

    def __init__(self, rule: str, sentence: str, *, shows: str = "") -> None:
        super().__init__(sentence)
        self.rule = rule
        self.shows = shows or sentence
