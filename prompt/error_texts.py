"""All sentences of node errors that end a run, except those about parameters.

Dify shows an error in English, in its own frame, to the person who runs the app. The keys are the values of
``FailureKind`` (internal/host/failures.py). tests/unit/test_errors.py finds a missing key.
"""

MODEL_FAILED = {
    "rate limited": "The {model} has reached its rate limit or quota. Try again in a minute",
    "quota used up": "The quota or the balance for the {model} is used up. Check plan and billing at its provider",
    "unauthorized": "The provider of the {model} refused its credentials. Check the model's API key in Dify",
    "connection failed": "The connection to the {model} failed. Try again later",
    "stream cut off": "The connection to the {model} failed. Try again later",
    "timeout": "The {model} did not answer in time. Try again later",
    "unavailable": "The {model} is unavailable at the moment. Try again later",
    "context length exceeded": "The request is too long for the {model}. Ask for less at once, or start a new "
    "conversation",
    "too large": "An answer of the {model} is too large for Dify",
    "content filter": "The content filter of the {model} refused the request. Ask in other words, or check what the "
    "tools returned",
    "nothing returned": "The {model} returned nothing. A content filter may have stopped it: ask in other words",
    "invalid request": "The {model} refused the request: {said}",
    "not found": "The {model} was not found: {said}",
    "unknown error": "The {model} failed: {said}",
}
SEE_THE_LOG = "the log of the run has the details"
INTERNAL_ERROR = "internal error: {name}"

# Advice for the developer, in parentheses after the sentence.
SWITCH_THINKING_OFF = "switch thinking off in the model's settings"
CHOOSE_RESPONSES = "choose the Responses protocol in the model's settings"
