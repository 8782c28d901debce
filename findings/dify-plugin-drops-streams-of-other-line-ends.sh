#!/bin/sh
# dify-plugin 0.10.2 (0.9.0 too, without the odd finish reason), tried on 2026-11-29 with Python 3.12.
#
# Guess: the SDK's class for servers like OpenAI's, on which most model plugins are built, reads any valid stream of
# server-sent events: lines may end in CRLF, and an event may have a name (`event: message`). An answer that is no
# stream is an error or an answer.
#
# Seen: it reads events that are separated by two line feeds and begin with `data:`. Any other stream, and an answer
# that is one JSON object, brings an answer without a word and without an error, although it has cost tokens.
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


texts = [chunk({"role": "assistant", "content": "Hello"}), chunk({}, "stop")]
message = {"role": "assistant", "content": "Hello"}
whole = {"id": "1", "object": "chat.completion", "choices": [{"index": 0, "message": message, "finish_reason": "stop"}]}
bodies = {
    "line feeds": "".join(f"data: {text}\n\n" for text in texts),
    "comments": ": wait\n\n" + "".join(f"data: {text}\n\n" for text in texts),
    "CRLF": "".join(f"data: {text}\r\n\r\n" for text in texts),
    "named events": "".join(f"event: message\ndata: {text}\n\n" for text in texts),
    "no stream": json.dumps(whole),
}
for name, body in bodies.items():
    deltas = answered(body, "application/json" if name == "no stream" else "text/event-stream")
    text = "".join(delta.message.content for delta in deltas)
    print(f"{name}: {json.dumps(text)}, finish reason {json.dumps(deltas[-1].finish_reason)}")
PYTHON
"$python3" -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --disable-pip-version-check dify-plugin==0.10.2
seen=$("$folder/venv/bin/python" "$folder/script.py" 2>/dev/null)
expected='line feeds: "Hello", finish reason "stop"
comments: "Hello", finish reason "stop"
CRLF: "", finish reason "Non-JSON encountered."
named events: "", finish reason "Non-JSON encountered."
no stream: "", finish reason "stop"'

echo "$seen"
[ "$seen" = "$expected" ] || { echo "this has changed; it was:"; echo "$expected"; exit 1; }
