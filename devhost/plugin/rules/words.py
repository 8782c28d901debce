"""A fault in a declaration as the daemon words it.

In: the name of the daemon's struct, and a fault. Out: a sentence of its validator, or one of its decoder for a value of
the wrong type. Worded after the daemon's source: refusals of declarations were not recorded.
"""

from collections.abc import Mapping

from devhost.plugin.rules.fields import NOT_THE_DAEMONS, Fault

MANIFEST = "PluginDeclaration.PluginDeclarationWithoutAdvancedFields"
TOOL_PROVIDER = "ToolProviderDeclaration"
STRATEGY_PROVIDER = "AgentStrategyProviderDeclaration"
_NAMES: Mapping[str, str] = {
    "en_US": "EnUS",
    "ja_JP": "JaJp",
    "zh_Hans": "ZhHans",
    "pt_BR": "PtBr",
    "llm": "LLM",
    "llm_description": "LLMDescription",
    "url": "URL",
    "credentials_for_provider": "CredentialsSchema",
}
_GO_TYPES: Mapping[str, str] = {
    "string_type": "string",
    "bool_type": "bool",
    "int_type": "int",
    "int_from_float": "int",
    "float_type": "float64",
    "dict_type": "map[string]interface {}",
    "list_type": "[]",
    "tuple_type": "[]",
    "model_type": "struct",
}
_NUMBERS: Mapping[str, str] = {"min": "float64", "max": "float64", "memory": "int64", "size": "int64"}
_ENUMS: Mapping[tuple[str, str], str] = {
    (MANIFEST, "type"): "eq",
    (MANIFEST, "arch"): "is_available_arch",
    (MANIFEST, "language"): "is_available_language",
    (TOOL_PROVIDER, "type"): "tool_parameter_type",
    (TOOL_PROVIDER, "form"): "tool_parameter_form",
    (STRATEGY_PROVIDER, "type"): "agent_strategy_parameter_type",
}
_TAGS: Mapping[str, str] = {
    "missing": "required",
    "string_too_short": "required",
    "too_short": "required",
    "greater_than": "required",
    "greater_than_equal": "min",
    "less_than_equal": "max",
    "tag": "plugin_tag",
    "scope": "is_scope",
    "basic": "is_basic_type",
}
_SHORT = frozenset({"scope", "features"})
"""Fields whose length has the tag `max`, as all of the manifest have; the others have `lt`."""


def in_the_daemons_words(struct: str, fault: Fault) -> str:
    """Empty for a fault that the daemon does not see."""
    if fault.rule in NOT_THE_DAEMONS:
        return ""
    key = _last_key(fault)
    if fault.rule in _GO_TYPES:
        keys = ".".join(part for part in fault.path if isinstance(part, str))
        wanted = _NUMBERS.get(key, _GO_TYPES[fault.rule])
        owner = struct.partition(".")[0]
        return f"json: cannot unmarshal {fault.kind} into Go struct field {owner}.{keys} of type {wanted}"
    if fault.rule == "rfc3339":
        text = fault.value
        return f'parsing time "{text}" as "2006-01-02T15:04:05Z07:00": cannot parse "{text}" as "2006"'
    where = f"{struct}{_go_path(fault.path)}"
    return f"Key: '{where}' Error:Field validation for '{_go_name(key)}' failed on the '{_tag(struct, fault, key)}' tag"


def _last_key(fault: Fault) -> str:
    return next((part for part in reversed(fault.path) if isinstance(part, str)), "")


def _tag(struct: str, fault: Fault, key: str) -> str:
    match fault.rule:
        case "string_too_long":
            return "max" if struct == MANIFEST or key in _SHORT else "lt"
        case "string_pattern_mismatch":
            if struct == MANIFEST:
                return "max"
            return (
                "tool_identity_name" if len(fault.path) > len(("identity", "name")) else "tool_provider_identity_name"
            )
        case "literal_error":
            if "credentials_for_provider" in fault.path:
                return "credential_type"
            if "auto_generate" in fault.path:
                return "parameter_auto_generate_type"
            return _ENUMS.get((struct, key), key)
        case other:
            return _TAGS.get(other, other)


def _go_path(path: tuple[str | int, ...]) -> str:
    return "".join(f"[{part}]" if isinstance(part, int) else f".{_go_name(part)}" for part in path)


def _go_name(key: str) -> str:
    return _NAMES.get(key) or "".join(part[:1].upper() + part[1:] for part in key.split("_"))
