#!/bin/sh
# boto3 1.43.13, tried on 2026-11-29 with Python 3.12.
#
# Guess: the frames of Bedrock's ConverseStream have lengths and checksums, so an answer that breaks off within a frame
# raises an error, and so does an answer of no bytes.
#
# Seen: the stream just ends, in both cases and in good order: the events so far come, the piece of a frame is dropped.
# Only the absence of `messageStop` tells a broken answer from a whole one.
set -eu

folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
export NO_PROXY=127.0.0.1 no_proxy=127.0.0.1
python3=$(command -v python3.12 || command -v python3)
cat > "$folder/script.py" <<'PYTHON'
import json
import struct
import zlib

import boto3

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


def frame(kind, payload):
    """An event in the encoding of AWS: two lengths, a checksum, headers, the payload, a checksum."""
    named = {":message-type": "event", ":event-type": kind, ":content-type": "application/json"}
    headers = b""
    for name, value in named.items():
        headers += bytes([len(name)]) + name.encode() + b"\x07" + struct.pack(">H", len(value)) + value.encode()
    body = json.dumps(payload).encode()
    prelude = struct.pack(">II", 16 + len(headers) + len(body), len(headers))
    message = prelude + struct.pack(">I", zlib.crc32(prelude)) + headers + body
    return message + struct.pack(">I", zlib.crc32(message))


def text(words):
    return frame("contentBlockDelta", {"contentBlockIndex": 0, "delta": {"text": words}})


begins = frame("messageStart", {"role": "assistant"}) + text("Do not ")
rest = text("pay.") + frame("messageStop", {"stopReason": "end_turn"})
for name, body in {"whole": begins + rest, "cut within a frame": begins + rest[:50], "no bytes": b""}.items():
    url, _ = served(body, "application/vnd.amazon.eventstream")
    keys = {"aws_access_key_id": "key", "aws_secret_access_key": "key", "region_name": "us-east-1"}
    client = boto3.client("bedrock-runtime", endpoint_url=url, **keys)
    answer = client.converse_stream(modelId="m", messages=[{"role": "user", "content": [{"text": "Hi"}]}])
    print(f"{name}:", *(kind for event in answer["stream"] for kind in event))
PYTHON
"$python3" -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --disable-pip-version-check boto3==1.43.13
seen=$("$folder/venv/bin/python" "$folder/script.py" 2>/dev/null)
expected='whole: messageStart contentBlockDelta contentBlockDelta messageStop
cut within a frame: messageStart contentBlockDelta
no bytes:'

echo "$seen"
[ "$seen" = "$expected" ] || { echo "this has changed; it was:"; echo "$expected"; exit 1; }
