"""The system prompt: the task's instruction, then the policy blocks, then extra policy.

In: the node's ``instruction`` and ``prompt_policy_overrides``, and a strategy's default texts. Out: one string, and
notes about what was ignored in the overrides. Blocks are separated by a blank line; empty ones are left out.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType

from internal.errors import OurWords, Quoting, Sentence
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


@dataclass(frozen=True)
class PolicyTexts:
    """The default text of each policy block; a strategy may bring its own."""

    persistence_policy: str = template.PERSISTENCE_POLICY
    context_gathering_policy: str = template.CONTEXT_GATHERING_POLICY
    tool_results_policy: str = template.TOOL_RESULTS_POLICY
    uncertainty_policy: str = template.UNCERTAINTY_POLICY
    tool_preamble_policy: str = template.TOOL_PREAMBLE_POLICY


DEFAULT_POLICY = PolicyTexts()


@dataclass(frozen=True)
class PolicyOverrides:
    """``prompt_policy_overrides``, read."""

    blocks: Mapping[str, str | None] = field(default_factory=lambda: MappingProxyType({}))
    """Override name -> text, or None for a block that is switched off."""
    extra: str = ""
    notes: tuple[Sentence, ...] = ()


def read_policy_overrides(prompt_policy_overrides: str | None) -> PolicyOverrides:
    """Read blank text, free text or a JSON object. No text is an error; the notes name what is ignored."""
    text = read_pasted(prompt_policy_overrides or "")
    if not text.strip():
        return PolicyOverrides()
    try:
        value = parse_pasted(text)
    except (ValueError, RecursionError) as problem:
        if text.lstrip().startswith(("{", "[")):
            note = f"prompt_policy_overrides: starts like JSON but is not valid ({problem}); used as extra policy text"
            return PolicyOverrides(extra=text, notes=(OurWords(note),))  # json names a place, and quotes nothing
        missing = Quoting(f"prompt_policy_overrides: {missing_variable(text)}")
        notes = (missing,) if looks_like_selector(text) else ()
        return PolicyOverrides(extra=text, notes=notes)
    return _read_object(value) if isinstance(value, dict) else PolicyOverrides(extra=text)


def _read_object(value: Mapping[str, object]) -> PolicyOverrides:
    blocks: dict[str, str | None] = {}
    extra = ""
    notes: list[Sentence] = []
    for name, given in value.items():
        if name not in _TAGS and name != _EXTRA:
            known = ", ".join([*_TAGS, _EXTRA])
            notes.append(Quoting(f"prompt_policy_overrides: unknown key {name!r} is ignored; the keys are {known}"))
        elif given is False:
            blocks[name] = None
        elif not isinstance(given, str):
            notes.append(OurWords(f"prompt_policy_overrides: {name!r} is neither text nor false and is ignored"))
        elif given.strip() and name == _EXTRA:
            extra = given
        elif given.strip():
            blocks[name] = given
    return PolicyOverrides(MappingProxyType(blocks), extra, tuple(notes))


def build_system_instruction(
    base_instruction: str,
    prompt_policy_overrides: str | None = None,
    *,
    defaults: PolicyTexts = DEFAULT_POLICY,
) -> str:
    """Compose the system prompt from the parameters as Dify sends them; pure, and never fails."""
    return compose_instruction(base_instruction, read_policy_overrides(prompt_policy_overrides), defaults)


def compose_instruction(base_instruction: str, overrides: PolicyOverrides, defaults: PolicyTexts) -> str:
    """Compose the system prompt. The extra policy is appended exactly as it was written."""
    blocks = [_wrap(tag, overrides.blocks.get(name, getattr(defaults, name)) or "") for name, tag in _TAGS.items()]
    texts = (base_instruction.strip(), *blocks, overrides.extra)
    return "\n\n".join(text for text in texts if text.strip())


def _wrap(tag: str, text: str) -> str:
    stripped = text.strip()
    if not stripped or (stripped.startswith(f"<{tag}>") and stripped.endswith(f"</{tag}>")):
        return stripped
    return f"<{tag}>\n{stripped}\n</{tag}>"
