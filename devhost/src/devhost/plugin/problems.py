"""The names of the rules that `devhost check` applies and whose violations `devhost package` refuses to pack."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

LANGUAGES = ("en_US", "ja_JP", "zh_Hans", "pt_BR")
"""The languages in which a declaration may give a text. The daemon drops all others."""
type Level = Literal["refused", "marketplace", "notice"]

RULES: Mapping[str, str] = {
    "declaration": "each declaration is YAML that is packaged, with the daemon's fields, types, patterns and lengths",
    "kinds": "the plugin declares something, and strategies only apart from other kinds",
    "icon": "icons are packaged, and are not the template's",
    "source": "the Python files that declarations name are packaged, and their classes have a base",
    "yield": "`_invoke` of a tool or a strategy yields its messages",
    "entrypoint": "the module that Dify starts is packaged",
    "ignore-file": "no line of `.difyignore` begins with `!`: Dify's packager has no exceptions",
    "size": "the files have at most 50 MB in all, and there are at most 5,000",
    "forbidden-file": "no environments, caches, logs, keys, binaries, links or files of an editor",
    "data": "databases, dumps, keystores and environments are reported before they are packed",
    "secret": "no file contains a private key, or a key of a known service",
    "readme": "README.md is there, and has no Chinese characters outside code",
    "privacy": "the privacy policy is packaged and not empty",
    "dependency": "dependencies have versions, come from a registry, and include dify-plugin 0.9.0 or newer",
    "compile": "every Python file compiles",
    "marketplace": "the manifest names the repository, the contact and the privacy policy; the author is not Dify",
}
"""The requirement of each rule, by the rule's name. `devhost check --help` lists them."""


@dataclass(frozen=True)
class Problem:
    rule: str
    """A key of `RULES`."""
    file: str
    """The path of the file, relative to the plugin."""
    key: str
    sentence: str
    level: Level = "refused"
    """Severity of the problem. "refused": the daemon refuses the plugin. "marketplace": only the marketplace refuses
    the plugin. "notice": the problem does not cause a refusal, but something is ignored or doubtful."""
