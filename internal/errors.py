"""What the agent raises inside. ``node_errors`` turns each of them into an error that Dify knows.

AgentError                 the run cannot go on; its text is written for the app builder
├── InvalidParameters      a parameter of the node must be changed before a run makes sense
├── PromptTooLarge         what the node was given does not fit into one request, whatever is left out
└── ModelCallFailed        the model's side failed for good; says what kind of failure and what the provider said

Each text is redacted where it is raised. What the model can correct is never an exception: it is the text of a tool
result.
"""

from internal.failures import FailureKind


class AgentError(Exception):
    """The run cannot go on."""


class InvalidParameters(AgentError):  # noqa: N818 - says what happened
    """A parameter of the node cannot be used as it is."""


class PromptTooLarge(AgentError):  # noqa: N818 - as above
    """The request would not pass the host's line limit."""


class ModelCallFailed(AgentError):  # noqa: N818 - as above
    """The model call failed and nothing is left to try."""

    def __init__(self, text: str, kind: FailureKind) -> None:
        super().__init__(text)
        self.kind = kind
