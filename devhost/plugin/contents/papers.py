"""The documents of a package: READMEs and the privacy policy.

In: `Contents` and the manifest. Out: problems of the rules `readme`, `readme-language` and `privacy`. Only the
marketplace asks for them: Dify installs a plugin without.
"""

import re
from collections.abc import Iterator

from markdown_it import MarkdownIt

from devhost.plugin.contents.files import Contents
from devhost.plugin.rules.listed import Problem
from devhost.protocol.wire import JsonObject

README = "README.md"
FOLDER = "readme/"
LOCALIZED = re.compile(r"README_[a-z]{2}_[A-Za-z]{2,}\.md")
IDEOGRAPH = re.compile(r"[\u3400-\u4dbf\u4e00-\u9fff]")
TEMPLATE = "please fill in the privacy policy"
"""What Dify's template for a new plugin says in its place."""


def readme_problems(contents: Contents, manifest: JsonObject) -> Iterator[Problem]:
    if README not in contents:
        yield Problem("readme", README, "", f"it {contents.absent(README)}", level="marketplace")
        return
    text = contents.text(README)
    for number, line in _prose(text):
        if found := IDEOGRAPH.search(line):
            sentence = f"{found[0]!r} is a Chinese character outside a code block; READMEs in other languages"
            sentence += " are readme/README_zh_Hans.md and so on"
            yield Problem("readme", README, f"line {number}", sentence, level="marketplace")
    repo = manifest.get("repo")
    if isinstance(repo, str) and repo and repo not in text:
        yield Problem("readme", README, "", f"it does not contain the repository's address {repo}", level="marketplace")


def _prose(text: str) -> Iterator[tuple[int, str]]:
    """The lines outside code blocks, numbered from 1."""
    blocks = [token.map for token in MarkdownIt().parse(text) if token.type in {"fence", "code_block"} and token.map]
    code = {number for first, end in blocks for number in range(first + 1, end + 1)}
    for number, line in enumerate(text.splitlines(), start=1):
        if number not in code:
            yield number, line


def readme_language_problems(contents: Contents) -> Iterator[Problem]:
    for path in contents.paths:
        if path.startswith(FOLDER) and not LOCALIZED.fullmatch(path.removeprefix(FOLDER)):
            sentence = "Dify finds only names such as readme/README_ja_JP.md"
            yield Problem("readme-language", path, "", sentence, level="notice")


def privacy_problems(contents: Contents, manifest: JsonObject) -> Iterator[Problem]:
    path = manifest.get("privacy")
    if not isinstance(path, str) or not path or re.match(r"[a-z]+://", path):
        return
    if reason := contents.absent(path):
        yield Problem("privacy", "manifest.yaml", "privacy", f"{path} {reason}", level="marketplace")
        return
    text = contents.text(path).strip()
    if not text or TEMPLATE in text.lower():
        sentence = "it is empty" if not text else "it is the template's: say which data the plugin handles"
        yield Problem("privacy", path, "", sentence, level="marketplace")
