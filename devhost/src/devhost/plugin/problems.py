"""The rules by name: what `devhost check` looks at, and `devhost package` refuses to pack."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

LANGUAGES = ("en_US", "ja_JP", "zh_Hans", "pt_BR")
"""Of a text; the daemon drops every other."""
type Level = Literal["refused", "marketplace", "notice"]

RULES: Mapping[str, str] = {
    "yaml": "each declaration is a YAML file that exists, is packaged and can be read",
    "kinds": "the plugin declares something, and strategies only apart from other kinds",
    "field": "a field that is required is there, and each has the type of the daemon's",
    "pattern": "names, authors and versions follow the daemon's patterns; a version also PEP 440",
    "length": "texts, names and paths are neither empty nor too long",
    "language": "a text has English, and no language that Dify drops",
    "unknown-key": "every key is one that Dify or the SDK reads",
    "tag": "tags are those of the marketplace",
    "time": "the time of creation is one as in RFC 3339",
    "resource": "memory and storage are asked for within the daemon's bounds",
    "choice": "forms, architectures, kinds of credentials and other words are those that the daemon knows",
    "parameter-type": "the type of a parameter is one that the daemon knows",
    "scope": "a scope belongs to the type of its parameter",
    "default": "a default is one that the parameter takes: for tools, where the developer fills it",
    "selector": "a selector of a model or an app is required: Dify has no empty one",
    "output-schema": "an output schema is an object, without the names that Dify uses itself",
    "for-the-model": "what the model fills has an `llm_description`, and its shape is described there",
    "feature": "a strategy has no feature but history-messages",
    "icon": "icons are packaged, and are not the template's",
    "source": "the Python files that declarations name are packaged",
    "entrypoint": "the module that Dify starts is packaged",
    "ignore-file": "no line of `.difyignore` begins with `!`: Dify's packager has no exceptions",
    "size": "the files have at most 50 MB in all, and there are at most 5,000",
    "forbidden-file": "no environments, caches, logs, keys, binaries, links or files of an editor",
    "secret": "no file contains a key, a token or a password",
    "readme": "README.md is there, and has no Chinese characters outside code",
    "readme-language": "READMEs in other languages have the names under which Dify finds them",
    "privacy": "the privacy policy is packaged, and says something",
    "dependency": "dependencies have versions, come from a registry, and include dify-plugin 0.9.0 or newer",
    "compile": "every Python file compiles",
    "marketplace": "the manifest names the repository, the contact and the privacy policy; the author is not Dify",
}
"""What each rule asks for, by its name; `devhost check --help` lists them."""

_BY_KIND: Mapping[str, str] = {
    "string_pattern_mismatch": "pattern",
    "version": "pattern",
    "pep440": "pattern",
    "uuid": "pattern",
    "string_too_short": "length",
    "string_too_long": "length",
    "tag": "tag",
    "rfc3339": "time",
    "scope": "scope",
    "basic": "default",
    "default_fits": "default",
    "node_outputs": "output-schema",
    "unknown_key": "unknown-key",
    "unknown_language": "language",
    "llm_description": "for-the-model",
    "input_schema": "for-the-model",
    "feature": "feature",
    "selector": "selector",
}


@dataclass(frozen=True)
class Fault:
    """A field of a declaration that breaks a rule."""

    path: tuple[str | int, ...]
    rule: str
    """Pydantic's name for it, or one of `devhost.plugin.rules`."""
    sentence: str


@dataclass(frozen=True)
class Problem:
    rule: str
    """A key of `RULES`."""
    file: str
    """Relative to the plugin."""
    key: str
    sentence: str
    level: Level = "refused"
    """`marketplace`: only the marketplace refuses it. `notice`: it is lost or doubtful, and is not refused."""


def rule_of(fault: Fault) -> str:
    keys = [part for part in fault.path if isinstance(part, str)]
    key = keys[-1] if keys else ""
    if fault.rule in _BY_KIND:
        return _BY_KIND[fault.rule]
    if key in LANGUAGES:
        return "language"
    if key == "output_schema":
        return "output-schema"
    if key in {"memory", "size"}:
        return "resource"
    if fault.rule == "literal_error":
        return "parameter-type" if key == "type" and "parameters" in keys else "choice"
    return "field"
