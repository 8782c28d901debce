"""The system prompt: the task's instruction, then the policy blocks, then extra policy, separated by blank lines."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, fields, replace

from internal.clock import in_turns_if_many
from internal.errors import Note, OurWords, Quoting
from internal.text.texts import looks_like_selector, missing_variable, parse_pasted, read_pasted
from prompt import template

_TAGS = {
    "persistence_policy": "persistence",
    "context_gathering_policy": "context_gathering",
    "tool_results_policy": "tool_results",
    "uncertainty_policy": "uncertainty_and_ambiguity",
    "tool_preamble_policy": "tool_preamble",
}
_EXTRA = "extra_policy"
_PLACEHOLDERS = {"plan_policy": "most", "retry_policy": "advice"}
"""What the agent fills into a text, by its key."""
_PLACEHOLDER = re.compile(r"\{([a-z_]{1,40})\}")


@dataclass(frozen=True)
class PolicyTexts:
    """The text of each policy block. The defaults apply to all strategies, but a strategy may have its own texts."""

    persistence_policy: str = template.PERSISTENCE_POLICY
    context_gathering_policy: str = template.CONTEXT_GATHERING_POLICY
    tool_results_policy: str = template.TOOL_RESULTS_POLICY
    uncertainty_policy: str = template.UNCERTAINTY_POLICY
    tool_preamble_policy: str = template.TOOL_PREAMBLE_POLICY
    plan_policy: str = ""
    """The end of the request for a plan. It is blank, like the next four, if a strategy makes no plan."""
    subtask_policy: str = ""
    reflection_policy: str = ""
    retry_policy: str = ""
    """Asks for another attempt at a subtask."""
    answer_policy: str = ""
    extra_policy: str = ""
    """The end of the system prompt, without a tag."""


DEFAULT_POLICY = PolicyTexts()


def read_policy(
    prompt_policy_overrides: str | None, defaults: PolicyTexts = DEFAULT_POLICY, note: Note = lambda _: None
) -> PolicyTexts:
    """The overrides are blank, a JSON object, or free text, which is extra policy; a block switched off is blank."""
    if not (prompt_policy_overrides or "").strip():
        return defaults
    known = [field.name for field in fields(defaults) if getattr(defaults, field.name) or field.name == _EXTRA]
    overrides = dict[str, str]()
    given_texts = _parsed(read_pasted(prompt_policy_overrides or ""), note)
    for name, given in in_turns_if_many(given_texts.items()):
        if name not in known:
            keys = ", ".join(known)
            note(Quoting(f"prompt_policy_overrides: unknown key {name!r} is ignored; the keys are {keys}"))
        elif given is False:
            overrides[name] = ""
        elif not isinstance(given, str):
            note(OurWords(f"prompt_policy_overrides: {name!r} is neither text nor false and is ignored"))
        elif given.strip():
            overrides[name] = _with_placeholders(name, given, note)
    return replace(defaults, **overrides)


def _with_placeholders(name: str, given: str, note: Note) -> str:
    """The text with a placeholder for the advice. Placeholders without a meaning here are noted in the log."""
    filled = _PLACEHOLDERS.get(name)
    for unknown in dict.fromkeys(_PLACEHOLDER.findall(given)):
        if unknown != filled:
            note(Quoting(f"prompt_policy_overrides: {name!r} has no placeholder {{{unknown}}}; it stays as text"))
    if name == "retry_policy" and "{advice}" not in given:
        note(OurWords("prompt_policy_overrides: 'retry_policy' has no {advice}; the advice follows it"))
        return given + template.ADVICE_BEHIND
    return given


def build_system_instruction(
    base_instruction: str,
    prompt_policy_overrides: str | PolicyTexts | None = None,
    *,
    defaults: PolicyTexts = DEFAULT_POLICY,
    note: Note = lambda _: None,
    skills: str = "",
) -> str:
    """Compose the system prompt of an instruction, the policy, and skills.

    The policy is the defaults with these overrides, or what was read of them already.
    """
    policy = prompt_policy_overrides
    if not isinstance(policy, PolicyTexts):
        policy = read_policy(policy, defaults, note)
    blocks = [_wrap(tag, getattr(policy, name)) for name, tag in _TAGS.items()]
    texts = (base_instruction.strip(), *blocks, skills, policy.extra_policy)
    return "\n\n".join(text for text in texts if text.strip())


def _parsed(text: str, note: Note) -> Mapping[str, object]:
    """The JSON object that was written; any other text is extra policy."""
    value = None
    try:
        value = parse_pasted(text)
    except (ValueError, RecursionError) as problem:
        if text.lstrip().startswith(("{", "[")):  # json names a place, and quotes nothing
            why = f"starts like JSON but is not valid ({problem}); used as extra policy text"
            note(OurWords(f"prompt_policy_overrides: {why}"))
        elif looks_like_selector(text):
            note(Quoting(f"prompt_policy_overrides: {missing_variable(text)}"))
    if isinstance(value, dict):
        return value
    return {_EXTRA: text}


def _wrap(tag: str, text: str) -> str:
    stripped = text.strip()
    if not stripped or (stripped.startswith(f"<{tag}>") and stripped.endswith(f"</{tag}>")):
        return stripped
    return f"<{tag}>\n{stripped}\n</{tag}>"
