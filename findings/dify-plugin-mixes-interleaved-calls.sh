#!/bin/sh
# dify-plugin 0.10.2 (0.9.0 is the same), tried on 2026-11-29 with Python 3.12.
#
# Guess: the SDK's class for servers like OpenAI's puts the fragments of a streamed tool call together by their `index`,
# which is what the index is for: two calls whose fragments come side by side are two calls.
#
# Seen: the index is not read. A fragment without an id belongs to the last call that had one, so that the first call
# has no arguments, and the second has both: two JSON objects, one behind the other.
set -eu

folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
export NO_PROXY=127.0.0.1 no_proxy=127.0.0.1
python3=$(command -v python3.12 || command -v python3)
cat > "$folder/script.py" <<'PYTHON'
import json

import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


def served(body, content_type, status=200, headers=()):
    """The address of a server that always answers this, and the list of the requests that it got."""
    got = []

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self):
            got.append(self.rfile.read(int(self.headers["Content-Length"])))
            self.send_response(status)
            for name, value in [("Content-Type", content_type), ("Content-Length", str(len(body))), *headers]:
                self.send_header(name, value)
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_):
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    return f"http://127.0.0.1:{server.server_port}", got


def chunk(delta, finish_reason=None):
    choice = {"index": 0, "delta": delta, "finish_reason": finish_reason}
    usage = {"prompt_tokens": 5, "completion_tokens": 5, "total_tokens": 10}
    common = {"id": "1", "object": "chat.completion.chunk", "created": 1, "model": "m", "usage": usage}
    return json.dumps({**common, "choices": [choice]})


def answered(body, content_type="text/event-stream"):
    """What the SDK's class for servers like OpenAI's makes of an answer."""
    from dify_plugin import OAICompatLargeLanguageModel
    from dify_plugin.entities.model.message import PromptMessageTool, UserPromptMessage

    class Model(OAICompatLargeLanguageModel):
        def _get_num_tokens_by_gpt2(self, text):
            return 0  # it would download a vocabulary

    url, _ = served(body.encode(), content_type)
    credentials = {"endpoint_url": url, "api_key": "key", "mode": "chat", "context_size": "4000"}
    credentials |= {"function_calling_type": "tool_call", "stream_function_calling": "supported"}
    parts = Model([]).invoke(
        model="m",
        credentials=credentials,
        prompt_messages=[UserPromptMessage(content="Hi")],
        model_parameters={},
        tools=[PromptMessageTool(name="pay", description="Pays.", parameters={"type": "object", "properties": {}})],
        stop=[],
        stream=True,
        user="1",
    )
    return [part.delta for part in parts]


def fragment(index, arguments, **more):
    return {"index": index, "function": {"arguments": arguments, **more.pop("function", {})}, **more}


def begins(index):
    return fragment(index, "", id=f"call_{index}", type="function", function={"name": "pay"})


one = [[begins(0)], [fragment(0, '{"amount": 1}')], [begins(1)], [fragment(1, '{"amount": 2}')]]
beside = [[begins(0), begins(1)], [fragment(0, '{"amount": 1}')], [fragment(1, '{"amount": 2}')]]
for name, pieces in {"one behind the other": one, "side by side": beside}.items():
    chunks = [chunk({"tool_calls": piece}) for piece in pieces] + [chunk({}, "tool_calls")]
    deltas = answered("".join(f"data: {text}\n\n" for text in chunks))
    for call in (call for delta in deltas for call in delta.message.tool_calls):
        print(f"{name}: {call.id} has {call.function.arguments or 'nothing'}")
PYTHON
"$python3" -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --disable-pip-version-check dify-plugin==0.10.2
seen=$("$folder/venv/bin/python" "$folder/script.py" 2>/dev/null)
expected='one behind the other: call_0 has {"amount": 1}
one behind the other: call_1 has {"amount": 2}
side by side: call_0 has nothing
side by side: call_1 has {"amount": 1}{"amount": 2}'

echo "$seen"
[ "$seen" = "$expected" ] || { echo "this has changed; it was:"; echo "$expected"; exit 1; }
