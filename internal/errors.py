"""What the agent raises, and nothing else.

AgentError                 the run cannot go on; its text is written for the app builder
├── InvalidParameters      a parameter of the node must be changed before a run makes sense
├── PromptTooLarge         what the node was given does not fit into one request, whatever is left out
└── ModelCallFailed        the model's side failed for good; says what kind of failure and what the provider said

Dify shows the text and the traceback of an exception to app builders, so each of them is raised ``from None`` and its
text is redacted. What the model can mend is never an exception: it is the text of a tool result.
"""


class AgentError(Exception):
    """The run cannot go on."""


class InvalidParameters(AgentError):  # noqa: N818 - the name is what the app builder reads first
    """A parameter of the node cannot be used as it is."""


class PromptTooLarge(AgentError):  # noqa: N818 - as above
    """The request would not pass the host's line limit."""


class ModelCallFailed(AgentError):  # noqa: N818 - as above
    """The model call failed and nothing is left to try."""
