#!/bin/sh
# anthropic 0.120.0, tried on 2026-11-29 with Python 3.12.
#
# Guess: when a stream ends in the middle of a tool call's arguments, `get_final_message()` raises an error, or the call
# has no input, because its JSON is not complete and its content block was never closed.
#
# Seen: it raises nothing, and the call has an input that looks whole: the JSON so far is completed, in the middle of a
# number too. Of `{"account": "DE12", "amount": 1250}`, cut after `12`, comes an amount of 12. Only `stop_reason` tells:
# None where the stream just ends, "max_tokens" where the model came to its limit.
set -eu

folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
export NO_PROXY=127.0.0.1 no_proxy=127.0.0.1
python3=$(command -v python3.12 || command -v python3)
cat > "$folder/script.py" <<'PYTHON'
import json

import anthropic

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


def event(kind, **fields):
    return f"event: {kind}\ndata: {json.dumps({'type': kind, **fields})}\n\n"


def arguments(text):
    return event("content_block_delta", index=0, delta={"type": "input_json_delta", "partial_json": text})


def stops(reason):
    closed = event("content_block_stop", index=0)
    delta = {"stop_reason": reason, "stop_sequence": None}
    return closed + event("message_delta", delta=delta, usage={"output_tokens": 9}) + event("message_stop")


message = {"id": "1", "type": "message", "role": "assistant", "model": "m", "content": [], "stop_reason": None}
message |= {"stop_sequence": None, "usage": {"input_tokens": 1, "output_tokens": 1}}
begins = event("message_start", message=message)
call = {"type": "tool_use", "id": "1", "name": "pay", "input": {}}
begins += event("content_block_start", index=0, content_block=call)
begins += arguments('{"account": "DE12", "amount": 12')
streams = {"whole": arguments("50}") + stops("tool_use"), "ends": "", "at its limit": stops("max_tokens")}
for name, rest in streams.items():
    url, _ = served((begins + rest).encode(), "text/event-stream")
    client = anthropic.Anthropic(api_key="key", base_url=url)
    with client.messages.stream(model="m", max_tokens=9, messages=[{"role": "user", "content": "Pay."}]) as stream:
        final = stream.get_final_message()
    print(f"{name}: {final.stop_reason}, {json.dumps(final.content[0].input)}")
PYTHON
"$python3" -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --disable-pip-version-check anthropic==0.120.0
seen=$("$folder/venv/bin/python" "$folder/script.py" 2>/dev/null)
expected='whole: tool_use, {"account": "DE12", "amount": 1250}
ends: None, {"account": "DE12", "amount": 12}
at its limit: max_tokens, {"account": "DE12", "amount": 12}'

echo "$seen"
[ "$seen" = "$expected" ] || { echo "this has changed; it was:"; echo "$expected"; exit 1; }
