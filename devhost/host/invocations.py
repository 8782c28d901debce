"""The kinds of backwards call: what the manifest must permit for each, and the daemon's words when it fails."""

from collections.abc import Mapping
from dataclasses import dataclass

from devhost.errors import RefusedCallError
from devhost.plugin.keys.manifest import Permission
from devhost.protocol.failures import API, CLOSED, ApiCallError


@dataclass(frozen=True)
class Invocation:
    access: str
    """The key of the manifest's resource.permission that must be enabled; empty for calls that are always allowed."""
    starting: str
    reading: str
    path: str
    """Of the API."""

    def failed(self, error: ApiCallError) -> str:
        match error.stage:
            case "unanswered":
                return f'{self.starting} failed: Post "{API}/{self.path}": {error.words}'
            case "refused":
                return f"{self.starting} failed: {error.words}"
            case "broken":
                return f"{self.reading} failed: {error.words}"

    @property
    def stalled(self) -> str:
        return self.failed(ApiCallError("broken", CLOSED))


def _model(name: str, access: str, path: str) -> Invocation:
    return Invocation(access, f"invoke {name} model", f"read {name} model", path)


INVOCATIONS: Mapping[str, Invocation] = {
    "llm": _model("llm", "llm", "llm"),
    "llm_structured_output": _model("llm with structured output", "llm", "llm/structured-output"),
    "text_embedding": _model("text-embedding", "text_embedding", "text-embedding"),
    "multimodal_embedding": _model("multimodal-embedding", "text_embedding", "multimodal-embedding"),
    "rerank": _model("rerank", "rerank", "rerank"),
    "multimodal_rerank": _model("multimodal-rerank", "rerank", "multimodal-rerank"),
    "tts": _model("tts", "tts", "tts"),
    "speech2text": _model("speech2text", "speech2text", "speech2text"),
    "moderation": _model("moderation", "moderation", "moderation"),
    "tool": Invocation("tool", "invoke tool", "read tool response", "tool"),
    "node_parameter_extractor": Invocation(
        "node", "invoke parameter extractor", "read parameter extractor", "parameter-extractor"
    ),
    "node_question_classifier": Invocation(
        "node", "invoke question classifier", "read question classifier", "question-classifier"
    ),
    "app": Invocation("app", "invoke app", "read app", "app"),
    "fetch_app": Invocation("app", "fetch app", "fetch app", "fetch/app/info"),
    "storage": Invocation("storage", "invoke storage", "invoke storage", "storage"),
    "system_summary": Invocation("llm", "invoke summary", "invoke summary", "summary"),
    "upload_file": Invocation("", "upload file", "upload file", "upload/file/request"),
}


def find_invocation(kind: str, permission: Permission) -> Invocation:
    """RefusedCallError for a kind that does not exist, and for one that the manifest does not permit."""
    invocation = INVOCATIONS.get(kind)
    if invocation is None:
        raise RefusedCallError(f"unsupported invoke type: {kind}")
    if not permission.allows(invocation.access):
        access = invocation.access.replace("_", "-")
        raise RefusedCallError(f"permission denied, you need to enable {access} access in plugin manifest")
    return invocation
