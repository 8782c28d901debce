#!/bin/sh
# openai 2.38.0, openai 3.3.0 and anthropic 0.120.0, tried on 2026-11-29 with Python 3.12.
#
# Guess: a client that obeys `retry-after` obeys it whatever it says, or gives up where it asks for too long; two
# clients that one generator writes, and two versions of one client, do the same.
#
# Seen: for up to 60 seconds all wait as long as they are told. Above, openai 2 and anthropic try again after less than
# two seconds, twice, so that a server that asks for two minutes gets three requests at once. openai 3 waits up to 120
# seconds each time (four minutes in a call that nobody can see into), and above that does not try again at all.
set -eu

folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
export NO_PROXY=127.0.0.1 no_proxy=127.0.0.1
python3=$(command -v python3.12 || command -v python3)
cat > "$folder/script.py" <<'PYTHON'
import sys
import time

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


def asked(url):
    ask = {"model": "m", "messages": [{"role": "user", "content": "Hi"}]}
    if sys.argv[1].startswith("openai"):
        import openai

        return openai.OpenAI(api_key="key", base_url=url).chat.completions.create(**ask)
    import anthropic

    return anthropic.Anthropic(api_key="key", base_url=url).messages.create(**ask, max_tokens=9)


waits = []
time.sleep = waits.append
for seconds in ("30", "60", "90", "120", "150"):
    waits.clear()
    url, got = served(b'{"error": {"message": "slow down"}}', "application/json", 429, [("retry-after", seconds)])
    try:
        asked(url)
    except Exception as error:
        failure = type(error).__name__
    shown = "less than 2 s, twice" if len(waits) == 2 and max(waits) < 2 else str(waits)
    print(f"{sys.argv[1]}, retry-after {seconds}: {failure}, requests: {len(got)}, waits: {shown}")
PYTHON
for client in openai==2.38.0 openai==3.3.0 anthropic==0.120.0; do
    "$python3" -m venv "$folder/$client"
    "$folder/$client/bin/pip" install --quiet --disable-pip-version-check "$client"
done
seen=$(for client in openai==2.38.0 openai==3.3.0 anthropic==0.120.0; do
    "$folder/$client/bin/python" "$folder/script.py" "$client" 2>/dev/null
done)
expected='openai==2.38.0, retry-after 30: RateLimitError, requests: 3, waits: [30.0, 30.0]
openai==2.38.0, retry-after 60: RateLimitError, requests: 3, waits: [60.0, 60.0]
openai==2.38.0, retry-after 90: RateLimitError, requests: 3, waits: less than 2 s, twice
openai==2.38.0, retry-after 120: RateLimitError, requests: 3, waits: less than 2 s, twice
openai==2.38.0, retry-after 150: RateLimitError, requests: 3, waits: less than 2 s, twice
openai==3.3.0, retry-after 30: RateLimitError, requests: 3, waits: [30.0, 30.0]
openai==3.3.0, retry-after 60: RateLimitError, requests: 3, waits: [60.0, 60.0]
openai==3.3.0, retry-after 90: RateLimitError, requests: 3, waits: [90.0, 90.0]
openai==3.3.0, retry-after 120: RateLimitError, requests: 3, waits: [120.0, 120.0]
openai==3.3.0, retry-after 150: RateLimitError, requests: 1, waits: []
anthropic==0.120.0, retry-after 30: RateLimitError, requests: 3, waits: [30.0, 30.0]
anthropic==0.120.0, retry-after 60: RateLimitError, requests: 3, waits: [60.0, 60.0]
anthropic==0.120.0, retry-after 90: RateLimitError, requests: 3, waits: less than 2 s, twice
anthropic==0.120.0, retry-after 120: RateLimitError, requests: 3, waits: less than 2 s, twice
anthropic==0.120.0, retry-after 150: RateLimitError, requests: 3, waits: less than 2 s, twice'

echo "$seen"
[ "$seen" = "$expected" ] || { echo "this has changed; it was:"; echo "$expected"; exit 1; }
