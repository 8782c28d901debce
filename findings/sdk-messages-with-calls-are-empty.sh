#!/bin/sh
# dify-plugin 0.10.2, tried on 2026-11-29 with Python 3.12.
#
# Guess: `is_empty()` of a prompt message is true when the message says nothing, so an assistant's message with text
# and a tool call, and a tool's result with text and the id of its call, are not empty.
#
# Seen: both are "empty", because of the calls and the id. Without them, the same texts are not empty. Code that leaves
# out empty messages loses every tool call and every result.
set -eu

folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3=$(command -v python3.12 || command -v python3)
"$python3" -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --disable-pip-version-check dify-plugin==0.10.2

seen=$("$folder/venv/bin/python" - <<'PYTHON' 2>/dev/null
from dify_plugin.entities.model.message import AssistantPromptMessage, ToolPromptMessage

function = AssistantPromptMessage.ToolCall.ToolCallFunction(name="search", arguments="{}")
call = AssistantPromptMessage.ToolCall(id="call_1", type="function", function=function)
print("text alone:", AssistantPromptMessage(content="I look.").is_empty())
print("text and a call:", AssistantPromptMessage(content="I look.", tool_calls=[call]).is_empty())
print("a call alone:", AssistantPromptMessage(content="", tool_calls=[call]).is_empty())
print("a result with an id:", ToolPromptMessage(content="found", tool_call_id="call_1").is_empty())
print("a result with a blank id:", ToolPromptMessage(content="found", tool_call_id="").is_empty())
PYTHON
)
expected='text alone: False
text and a call: True
a call alone: True
a result with an id: True
a result with a blank id: False'

echo "$seen"
[ "$seen" = "$expected" ] || { echo "this has changed; it was:"; echo "$expected"; exit 1; }
