"""Tests whether a model plugin sends tools, with a listener on loopback in place of the provider.

The user's keys are not sent to the listener. Dify shows what a plugin declares about a model, but some plugins declare
tool calls and leave the tools out of the request.
"""

import contextlib
import re
import threading
from collections.abc import Mapping
from functools import partial
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Self
from urllib.parse import urlsplit

from devhost.errors import HostError
from devhost.limits import HostLimits
from devhost.model_plugin import ModelPlugin
from devhost.models.backend import ModelCallError, ModelRequest, ModelTool, UserMessage
from devhost.plugin.declaration import ModelCredential, ModelProvider, PluginDeclaration
from devhost.process.program import LOOPBACK

TOOL_FEATURES = frozenset({"tool-call", "multi-tool-call"})
QUESTION = "devhost asks whether tools arrive."
TOOL = ModelTool(
    name="devhost_probe",
    description="Tells that tools arrive.",
    parameters={"type": "object", "properties": {"word": {"type": "string"}}, "required": ["word"]},
)
ANOTHER_TOOL = TOOL.model_copy(update={"name": "devhost_probe_again"})
"""A second tool, because one provider refuses a request with a single tool."""

_PLACEHOLDER = "devhost.0123456789abcdef0123456789abcdef"
"""The value of a secret credential. It contains a dot, because one client splits its key there."""
_ADDRESS = re.compile(r"(url|api_base|endpoint|host)$")
_OTHER_ADDRESS = re.compile(r"proxy|file")
_LONGEST_CALL = 30.0


def asked_whether_tools_are_sent(directory: Path, name: str | None, given: Mapping[str, str]) -> str:
    """Return one sentence about the model `name`, or else about the first model that declares tools.

    `given` are the user's credentials. Their keys and addresses are not used. No environment is created for a plugin
    that has none.
    """
    declaration = PluginDeclaration.read(directory)
    provider = declaration.model_providers[0]
    models = declaration.language_models(provider)
    declaring = [each for each, model in models.items() if TOOL_FEATURES.intersection(model.features)]
    chosen = name or next(iter([*declaring, *models]), "devhost")
    declared = "declares no tools"
    if chosen in declaring:
        declared = "declares tools"
    with _Listener() as listener:
        credentials = _credentials(provider, listener, given, of_provider=chosen in models)
        if not any(value.startswith(listener.url) for value in credentials.values()):
            return f"{declared}, not tried: no credential sets its address"
        limits = HostLimits(call_seconds=_LONGEST_CALL)
        why = "it sent no request"
        with ModelPlugin(directory, credentials, validated=False, limits=limits) as plugin:
            try:
                model = plugin.model(chosen)
                described = model.description.entity or {}
                if TOOL_FEATURES.intersection(described.get("features") or ()):
                    declared = "declares tools"
                for _ in model.invoke(_request(chosen)):
                    pass
            except (HostError, ModelCallError) as error:  # the listener refuses each request
                why = str(error).partition("\n")[0]
        if listener.heard(TOOL.name):
            return f"yes, as tried with {chosen}"
        if not listener.heard(QUESTION):
            return f"{declared}, not tried: {why}"
    if declared == "declares tools":
        return f"declared, not sent, as tried with {chosen}"
    return f"no, as tried with {chosen}"


def _request(model: str) -> ModelRequest:
    return ModelRequest(
        provider="",
        model=model,
        mode="chat",
        completion_params={},
        prompt_messages=(UserMessage(role="user", content=QUESTION),),
        tools=(TOOL, ANOTHER_TOOL),
        stream=True,
    )


def _credentials(
    provider: ModelProvider, listener: "_Listener", given: Mapping[str, str], *, of_provider: bool
) -> dict[str, str]:
    """Return credentials with the listener's address and placeholders for secrets.

    A value may reveal further fields.
    """
    values: dict[str, str] = {}
    seen: set[str] = set()
    while further := provider.credentials(values, of_provider=of_provider).keys() - seen:
        fields = provider.credentials(values, of_provider=of_provider)
        for key in further:
            if value := _value(fields[key], listener, given.get(key)):
                values[key] = value
        seen |= further
    return values


def _value(field: ModelCredential, listener: "_Listener", given: str | None) -> str:
    """Return the value for a field. If it is empty, devhost uses the default, or leaves the field out."""
    if field.type == "text-input" and _ADDRESS.search(field.variable) and not _OTHER_ADDRESS.search(field.variable):
        return listener.url + urlsplit(given or str(field.default or "")).path
    if field.is_secret:
        return _PLACEHOLDER
    if given is not None:
        return given
    if not field.required or field.default:
        return ""
    if field.options:
        return field.options[0].value
    return "devhost"


class _Listener:
    """Keeps each request body, and refuses the request in a way that no client retries."""

    def __init__(self) -> None:
        self.bodies: list[bytes] = []
        self._server = ThreadingHTTPServer((LOOPBACK, 0), partial(_Handler, self.bodies))
        self._server.daemon_threads = True
        self.url = f"http://{LOOPBACK}:{self._server.server_port}"

    def __enter__(self) -> Self:
        threading.Thread(target=self._server.serve_forever, args=(0.05,), daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._server.server_close()

    def heard(self, text: str) -> bool:
        return any(text.encode() in body for body in self.bodies)


class _Handler(BaseHTTPRequestHandler):
    def __init__(self, bodies: list[bytes], *more: object) -> None:
        self._bodies = bodies
        super().__init__(*more)  # type: ignore[arg-type] # the server's arguments

    def do_POST(self) -> None:
        self._bodies.append(self.rfile.read(int(self.headers["Content-Length"] or 0)))
        said = b'{"error": {"message": "devhost only listens", "type": "invalid_request_error", "code": 400}}'
        with contextlib.suppress(ConnectionError):
            self.send_response(400)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(said)))
            self.end_headers()
            self.wfile.write(said)

    def do_GET(self) -> None:
        self.do_POST()

    def log_message(self, *_: object) -> None:
        """Log nothing to stderr."""
