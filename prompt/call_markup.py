"""The markup with which the chat templates of models write tool calls.

docs/model-facts.md, "Calls that arrive as text", lists the models that use each form.
"""

CLOSING_TAGS = {
    "<tool_call>": "</tool_call>",
    "<tool_calls>": "</tool_calls>",
    "<function_calls>": "</function_calls>",
    "<function=": "</function>",
    "<invoke name=": "</invoke>",
    "<minimax:tool_call>": "</minimax:tool_call>",
    "<seed:tool_call>": "</seed:tool_call>",
    "<longcat_tool_call>": "</longcat_tool_call>",
    "<TOOLCALL>": "</TOOLCALL>",
    "<|tool_call|>": "<|/tool_call|>",
    "<|tool_call>": "<tool_call|>",
    "<|tool_calls_section_begin|>": "<|tool_calls_section_end|>",
    "<|tool_call_begin|>": "<|tool_call_end|>",
    "<|tool_call_start|>": "<|tool_call_end|>",
    "<start_function_call>": "<end_function_call>",
    "<|python_tag|>": "<|eom_id|>",
    "<|action_start|>": "<|action_end|>",
    "<|START_ACTION|>": "<|END_ACTION|>",
    "<|channel|>commentary to=": "<|call|>",
    "<｜tool▁calls▁begin｜>": "<｜tool▁calls▁end｜>",
    "<｜tool▁call▁begin｜>": "<｜tool▁call▁end｜>",
    "<｜DSML｜function_calls>": "</｜DSML｜function_calls>",
    "<｜DSML｜tool_calls>": "</｜DSML｜tool_calls>",
    "[TOOL_CALLS]": "</s>",
    "functools[": "<|end|>",
}
"""The tag that closes a call, or the token that ends the turn, by the tag that opens the call."""
NAME_KEYS = r'"(?:(?:tool_)?name|function)"\s*:\s*"|name="|function=|functions\.'
"""A pattern of the text before the name of a tool in a call."""
BEFORE_NAME = r"function<｜tool▁sep｜>|functions\.|call:"
"""A pattern of the text that may appear between an opening tag and the name."""
