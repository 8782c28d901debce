#!/bin/sh
# openai 3.3.0 (2.38.0 is the same), tried on 2026-11-29 with Python 3.12.
#
# Guess: a request with stream=True whose answer is no stream (a server that ignores `stream` and sends the whole
# completion as JSON, a proxy that sends a page) raises an error, because there is not one event in it.
#
# Seen: the stream is empty and raises nothing, for Chat Completions and for Responses. Without stream=True, the page is
# returned as a str in place of a ChatCompletion. A caller cannot tell such an answer from a model that said nothing.
set -eu

folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
export NO_PROXY=127.0.0.1 no_proxy=127.0.0.1
python3=$(command -v python3.12 || command -v python3)
cat > "$folder/script.py" <<'PYTHON'
import json

import openai

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


message = {"role": "assistant", "content": "Hello"}
whole = {"id": "1", "object": "chat.completion", "created": 1, "model": "m"}
whole["choices"] = [{"index": 0, "message": message, "finish_reason": "stop"}]
completion = (json.dumps(whole).encode(), "application/json")
page = (b"<html>Please log in.</html>", "text/html")
asked = {"model": "m", "messages": [{"role": "user", "content": "Hi"}]}
for name, answer in {"a completion": completion, "a page": page}.items():
    url, _ = served(*answer)
    client = openai.OpenAI(api_key="key", base_url=url)
    print(f"{name} for a stream of Chat Completions:", list(client.chat.completions.create(**asked, stream=True)))
    print(f"{name} for a stream of Responses:", list(client.responses.create(model="m", input="Hi", stream=True)))
    print(f"{name} without a stream:", type(client.chat.completions.create(**asked)).__name__)
PYTHON
"$python3" -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --disable-pip-version-check openai==3.3.0
seen=$("$folder/venv/bin/python" "$folder/script.py" 2>/dev/null)
expected='a completion for a stream of Chat Completions: []
a completion for a stream of Responses: []
a completion without a stream: ChatCompletion
a page for a stream of Chat Completions: []
a page for a stream of Responses: []
a page without a stream: str'

echo "$seen"
[ "$seen" = "$expected" ] || { echo "this has changed; it was:"; echo "$expected"; exit 1; }
