"""What providers of models refuse, read over one request: Dify's users choose any model, so a prompt has to suit all.

In: a request for a model call as JSON, as Dify's entities are serialised. Out: the rules that it breaks. `RULES` has
the evidence for each rule, one line a provider: *run* (a stand-in for the provider, with its documented rules, refused
what Dify's official model plugin made of our request), *documented* (by the provider), *reported* (in public, in the
words of the provider) or *read* (in Dify's official model plugins).
"""

import json
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Literal

from tests.support import request_faults as faults
from tests.support.model_requests import Json, ModelRequest

type Provider = Literal[
    "Anthropic",
    "Bedrock Converse",
    "Cohere",
    "DashScope",
    "DeepSeek",
    "Gemini 2.5",
    "Gemini 3",
    "Mistral",
    "Moonshot",
    "Ollama",
    "OpenAI Chat",
    "OpenAI Responses",
    "vLLM",
]

LONGEST_VALUE = 200
"""Characters of a value that a message shows."""


@dataclass(frozen=True)
class Rule:
    """Something that providers refuse."""

    name: str
    demand: str
    """What a sound request does."""
    find: faults.Find
    sources: Mapping[Provider, str]
    """Evidence, date and source by the provider that enforces the rule."""


@dataclass(frozen=True)
class BrokenRule:
    """A place where a request breaks a rule."""

    providers: tuple[Provider, ...]
    rule: str
    demand: str
    where: str
    value: str
    """As JSON, cut to `LONGEST_VALUE`."""

    def __str__(self) -> str:
        return f"{', '.join(self.providers)}: {self.rule}: {self.demand}; but {self.where} is {self.value}"


def broken_rules(request: Json, given_ids: Collection[str] = ()) -> list[BrokenRule]:
    """All places where a request breaks a rule. `given_ids`: the call ids that its model gave itself."""
    read = ModelRequest.read(request, given_ids)
    return [
        BrokenRule(tuple(rule.sources), rule.name, rule.demand, place.where, _shown(place.value))
        for rule in RULES
        for place in rule.find(read)
    ]


def _shown(value: object) -> str:
    written = json.dumps(value, ensure_ascii=False, default=str)
    if len(written) > LONGEST_VALUE:
        return f"{written[:LONGEST_VALUE]}…"
    return written


# Reports are issues and pull requests on GitHub, where no other place is named. mistral-common's validator is its
# protocol/instruct/validator.py at commit 039465d.

RULES = (
    Rule(
        "known-role",
        "a role is system, user, assistant or tool",
        faults.unknown_roles,
        {
            "Anthropic": "read 2026-08, plugin anthropic 0.3.27",
            "Mistral": "documented, mistral-common's validator",
        },
    ),
    Rule(
        "blank-text",
        "no text is empty or white space",
        faults.blank_texts,
        {
            "Anthropic": "run 2026-11; reported 2026-02, anthropics/claude-code 23369",
            "Bedrock Converse": "reported 2026-07, NousResearch/hermes-agent 63983",
            "Moonshot": "reported 2026-04, MoonshotAI/kimi-cli 2035",
        },
    ),
    Rule(
        "message-with-content",
        "a message has content, or is the assistant's and has calls",
        faults.empty_messages,
        {
            "Bedrock Converse": "reported 2024-09, langchain-ai/langchain 26968",
            "Mistral": "reported 2025-06, solbrowse/extension 16; documented, mistral-common's validator",
            "Moonshot": "reported 2026-07, MoonshotAI/kimi-code 1985",
        },
    ),
    Rule(
        "assistant-text",
        "an assistant's texts are one text, not a list of parts",
        faults.texts_in_parts,
        {"OpenAI Responses": "run 2026-11: the plugin makes input_text; reported 2026-01, jeremychone/rust-genai 119"},
    ),
    Rule(
        "system-first",
        "there is at most one system message, and it is the first message",
        faults.late_systems,
        {
            "DashScope": "reported 2026-05, can1357/oh-my-pi 958",
            "Mistral": "documented, mistral-common's validator: none behind an assistant's or a result",
            "vLLM": "reported 2026-04, vllm-project/vllm 41114: the templates of Qwen 3.5 and 3.6",
        },
    ),
    Rule(
        "user-first",
        "the first message behind the system message is the user's",
        faults.another_speaker_first,
        {"Bedrock Converse": "reported 2025-01, langgenius/dify 12340; 2026-03, strands-agents/sdk-typescript 727"},
    ),
    Rule(
        "assistant-not-last",
        "the last message is not the assistant's",
        faults.assistant_last,
        {
            "Anthropic": "reported 2026-03, agenticloops-ai/agentic-ai-engineering 43: from Claude 4.6 on",
            "Bedrock Converse": "reported 2025-03, microsoft/semantic-kernel 10281",
            "Mistral": "reported 2026-02, QuantumNous/new-api 2858; documented, mistral-common's validator",
        },
    ),
    Rule(
        "user-after-tool",
        "no message of the user's stands directly behind a result",
        faults.one_behind_another("tool", "user"),
        {
            "Cohere": "reported 2025-08, oracle/langchain-oracle 9: version 1 of the API",
            "Mistral": "run 2026-11; reported 2026-06, aliou/pi-neuralwatt 12; documented, mistral-common's validator",
        },
    ),
    # Anthropic joins two messages of one role (documented 2024-10), OpenAI and Mistral take them as they are.
    Rule(
        "user-after-user",
        "no message of the user's stands directly behind another",
        faults.one_behind_another("user", "user"),
        {
            "Bedrock Converse": "reported 2024-11, Portkey-AI/gateway 748; no later report",
            "DeepSeek": "reported 2025-04, xerrors/Yuxi 126: deepseek-reasoner; no later report",
            "vLLM": "reported 2025-06, google/adk-python 1373: the template of Gemma 3",
        },
    ),
    Rule(
        "assistant-after-assistant",
        "no message of the assistant's stands directly behind another",
        faults.one_behind_another("assistant", "assistant"),
        {
            "Bedrock Converse": "reported 2025-01, microsoft/semantic-kernel 10277; no later report",
            "DeepSeek": "reported 2025-04, xerrors/Yuxi 126: deepseek-reasoner; no later report",
            "Gemini 2.5": "reported 2026-05, google-gemini/gemini-cli 26486: when the second one has calls",
            "Gemini 3": "reported 2026-05, google-gemini/gemini-cli 26486: when the second one has calls",
            "vLLM": "reported 2025-06, google/adk-python 1373: the template of Gemma 3",
        },
    ),
    Rule(
        "call-answered",
        "every call has a result directly behind its message",
        faults.unanswered_calls,
        {
            "Anthropic": "run 2026-11; reported 2025-09, anthropics/claude-code 8210",
            "DeepSeek": "reported 2026-02, langgenius/dify 32222",
            "Gemini 2.5": "run 2026-11; reported 2025-08, google-gemini/gemini-cli 6379",
            "Gemini 3": "reported 2026-01, google-gemini/gemini-cli 16543",
            "Mistral": "documented, mistral-common's validator",
            "Moonshot": "reported 2026-05, bytedance/deer-flow 2706",
            "OpenAI Chat": "run 2026-11",
        },
    ),
    Rule(
        "result-of-a-call",
        "every result answers a call of the message that it stands behind, once",
        faults.stray_results,
        {
            "Anthropic": "run 2026-11; reported 2025-12, anthropics/claude-code 13460",
            "DeepSeek": "reported 2025-03, FoundationAgents/OpenManus 23",
            "Mistral": "documented, mistral-common's validator",
            "OpenAI Chat": "run 2026-11; reported 2025-05, simonw/llm 937",
        },
    ),
    Rule(
        "results-in-order",
        "results stand in the order of their calls",
        faults.misplaced_results,
        {
            "Cohere": "read 2026-08, plugin cohere 0.0.17: a call's id is its function's name, even twice",
            "DashScope": "read 2026-08, plugin tongyi: a call's id is its function's name, even twice",
        },
    ),
    Rule(
        "result-named",
        "a result has the name of its call's function",
        faults.misnamed_results,
        {
            "Gemini 2.5": "reported 2026-03, openclaw/openclaw 47857",
            "Gemini 3": "reported 2026-02, ollama/ollama 14214",
        },
    ),
    Rule(
        "tools-beside-calls",
        "a request with calls offers tools",
        faults.calls_without_tools,
        {"Bedrock Converse": "reported 2025-04, langgenius/dify 17545; 2026-03, vxcontrol/pentagi 196"},
    ),
    Rule(
        "call-id-characters",
        "an id that the model did not give has letters, digits, _ and - only",
        faults.unlike(r"[a-zA-Z0-9_-]+", ModelRequest.other_ids),
        {
            "Anthropic": "read 2026-08",
            "Bedrock Converse": "documented, ToolUseBlock; the page of 2026 also allows . and :",
        },
    ),
    Rule(
        "call-id-of-40",
        "an id that the model did not give has at most 40 characters",
        faults.unlike(r"(?s).{0,40}", ModelRequest.other_ids),
        {"OpenAI Chat": "reported 2025-12, BerriAI/litellm 17343; but 51 were taken in 2026-07, vercel/ai 17233"},
    ),
    Rule(
        "call-id-of-64",
        "an id that the model did not give has at most 64 characters",
        faults.unlike(r"(?s).{0,64}", ModelRequest.other_ids),
        {
            "Bedrock Converse": "documented, ToolUseBlock, 2026",
            "OpenAI Responses": "reported 2026-06, AnswerDotAI/fastllm 45",
        },
    ),
    Rule(
        "call-id-of-nine",
        "an id that the model did not give has nine letters and digits",
        faults.unlike(r"[a-zA-Z0-9]{9}", ModelRequest.other_ids),
        {"Mistral": "run 2026-11; reported 2026-03, nearai/ironclaw 1241; documented, mistral-common's validator"},
    ),
    Rule(
        "call-id-once",
        "an id that the model did not give belongs to one call",
        faults.repeated(ModelRequest.other_ids),
        {
            "Anthropic": "reported 2026-03, BerriAI/litellm 23510",
            "Mistral": "documented, mistral-common's validator for tokenizer 13: within one message",
        },
    ),
    Rule(
        "call-id-once-in-turn",
        "the calls of one message have different ids; an id that is the function's name may repeat",
        faults.shared_ids,
        {"Mistral": "documented, mistral-common's validator for tokenizer 13"},
    ),
    Rule(
        "called-name",
        "the name of a called function has 1 to 64 letters, digits, _ and -",
        faults.unlike(r"[a-zA-Z0-9_-]{1,64}", faults.called_names),
        {
            "Bedrock Converse": "documented, ToolUseBlock, 2026",
            "Mistral": "documented, mistral-common's validator",
            "OpenAI Chat": "reported, undated, portkey.ai's error library 10046: multi_tool_use.parallel",
        },
    ),
    Rule(
        "arguments-object",
        "arguments are the text of a JSON object",
        faults.odd_arguments,
        {
            "Anthropic": "read 2026-08: the plugin parses them",
            "Bedrock Converse": "read 2026-08: the plugin parses them",
            "DashScope": "reported 2026-03, HKUDS/nanobot 2469",
            "Gemini 2.5": "read 2026-08: the plugin parses them",
            "Gemini 3": "read 2026-08: the plugin parses them",
            "Ollama": "reported 2025-10, ollama/ollama 12794",
        },
    ),
    Rule(
        "tool-name",
        "a tool's name has 1 to 64 letters, digits, _ and -, and begins with a letter or _",
        faults.unlike(r"[a-zA-Z_][a-zA-Z0-9_-]{0,63}", faults.tool_names),
        {
            "Anthropic": "documented 2025, implement-tool-use: set and length",
            "Bedrock Converse": "documented, ToolSpecification, 2026: set and length",
            "Gemini 2.5": "run 2026-11; reported 2025-04, microsoft/vscode-copilot-release 7928: first character",
            "Gemini 3": "run 2026-11; reported 2025-12, kaitranntt/ccs 219: first character",
            "Mistral": "documented, mistral-common's validator: set and length",
            "OpenAI Chat": "reported 2025-07, Lucassssss/eechat 52: set",
        },
    ),
    Rule(
        "tool-name-letter",
        "a tool's name begins with a letter",
        faults.unlike(r"(?s)[a-zA-Z].*", faults.tool_names),
        {"Moonshot": "reported 2026-04, MoonshotAI/kimi-cli 1773"},
    ),
    Rule(
        "tool-name-once",
        "no two tools have one name",
        faults.repeated(faults.tool_names),
        {"Anthropic": "reported 2025-11, microsoft/vscode 278073"},
    ),
    Rule(
        "tool-description",
        "a tool's description has at least one character",
        faults.empty_descriptions,
        {"Bedrock Converse": "run 2026-11; documented, ToolSpecification, 2026"},
    ),
    Rule(
        "tools-up-to-128",
        f"there are at most {faults.MOST_TOOLS} tools",
        faults.too_many_tools,
        {"OpenAI Chat": "reported 2025-11, zed-industries/zed 42393"},
    ),
    Rule(
        "property-name",
        "a parameter's name has 1 to 64 letters, digits, _, . and -",
        faults.unlike(r"[a-zA-Z0-9_.-]{1,64}", faults.property_names),
        {"Anthropic": "run 2026-11; reported 2026-07, anthropics/claude-code 79418"},
    ),
    Rule(
        "parameters-object",
        "a tool's parameters are an object with properties",
        faults.other_than_objects,
        {"OpenAI Chat": "reported 2026-03, github/copilot-cli 2223"},
    ),
    Rule(
        "parameters-no-union",
        "a tool's parameters are no union at the top",
        faults.unions_at_the_top,
        {"Anthropic": "reported 2026-03, anthropics/claude-code 40075"},
    ),
    Rule(
        "array-items",
        "an array has items, at any depth",
        faults.arrays_without_items,
        {
            "Gemini 2.5": "reported 2026-08, TokenRhythm/opensquilla 1263",
            "Gemini 3": "reported 2026-05, Lapis0x0/obsidian-yolo 293",
            "OpenAI Chat": "run 2026-11; reported 2025-05, gumloop/guMCP 136",
        },
    ),
    Rule(
        "enum-of-texts",
        "the members of an enum are texts, at any depth",
        faults.odd_enums,
        {
            "DashScope": "run 2026-11: plugin tongyi joins them",
            "Gemini 2.5": "run 2026-11, plugin gemini; reported 2025-07, microsoft/azure-devops-mcp 139",
            "Gemini 3": "run 2026-11, plugin gemini; reported 2026-09, chrisdoc/hevy-mcp 1161",
        },
    ),
)
