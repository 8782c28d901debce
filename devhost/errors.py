"""What can go wrong on the host's side, as one tree.

HostError ── DeclarationError      a plugin directory that cannot be read
          ├─ ScriptError           a script.yaml that cannot be read
          ├─ ParameterError        values that are refused before the plugin is asked
          │   └─ NodeParameterError    by Dify's node, in its words
          ├─ PluginStartError      a plugin process that never served
          ├─ RegistrationError     a plugin that introduces itself over TCP in a way that the daemon hangs up on
          ├─ ToolSetupError        a tool plugin that refuses its credentials or a value of the panel
          ├─ WireError             a line that is no message of the protocol
          ├─ TraceError            a trace that cannot be written or read
          ├─ RefusedCallError      a backwards call that the daemon or Dify refuses; its text reaches the plugin
          └─ RunFailure ── PluginLostError      the process has gone, or was killed at a limit
                        ├─ InvocationError      the plugin answered with an error
                        ├─ RunTimeoutError      the host's deadline for the run
                        ├─ RunStoppedError      a person ended it
                        └─ NodeFailedError      the Agent node fails on what the plugin sent
"""

from typing import Any


class HostError(Exception):
    """Something on the host's side, worded for the person at the terminal."""


class DeclarationError(HostError):
    pass


class ScriptError(HostError):
    pass


class ParameterError(HostError, ValueError):
    pass


class NodeParameterError(ParameterError):
    """`words` are what the node shows; the sentence adds the parameter's name where they lack it."""

    def __init__(self, words: str, parameter: str = "") -> None:
        super().__init__(f"{parameter}: {words} (in Dify this fails the node)" if parameter else words)
        self.words = words


class PluginStartError(HostError):
    pass


class RegistrationError(HostError):
    """`line` is what the plugin reads before the connection ends."""

    def __init__(self, message: str, line: str | None = None) -> None:
        super().__init__(message)
        self.line = line or message.replace("\n", " ")


class ToolSetupError(HostError):
    pass


class WireError(HostError):
    pass


class TraceError(HostError):
    pass


class RefusedCallError(HostError):
    pass


class RunFailure(HostError):  # noqa: N818 - a family of endings, each of which is named …Error
    """A run that began and did not end well."""


class PluginLostError(RunFailure):
    pass


class InvocationError(RunFailure):
    """The `{error_type, message, args}` of an invocation that raised, or an error of the daemon's in its place."""

    def __init__(self, error_type: str, message: str, args: dict[str, Any] | None = None) -> None:
        super().__init__(message)
        self.error_type = error_type
        self.message = message
        self.details = args
        traceback = (args or {}).get("traceback")
        self.traceback = None if traceback is None else str(traceback)

    @property
    def said(self) -> dict[str, Any]:
        """What the daemon tells the node."""
        said: dict[str, Any] = {"error_type": self.error_type, "message": self.message}
        return said if self.details is None else {**said, "args": self.details}


class RunTimeoutError(RunFailure):
    pass


class RunStoppedError(RunFailure):
    pass


class NodeFailedError(RunFailure):
    """The message cannot become part of the node's outputs; `rule` names the reason, and the node `shows` a text."""

    def __init__(self, rule: str, sentence: str, *, shows: str = "") -> None:
        super().__init__(sentence)
        self.rule = rule
        self.shows = shows or sentence
