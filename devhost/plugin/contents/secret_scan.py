"""Keys, tokens and passwords in the files of a package.

In: `Contents`. Out: a problem of the rule `secret` for each line that seems to contain one. The value itself is not
quoted. What has no fixed beginning counts if it is assigned to a name such as api_key and looks random. Placeholders
do not count: words, such as in xoxb-your-access-token, one letter over and over, and a key's first line alone.
"""

import math
import re
from collections import Counter
from collections.abc import Iterator, Mapping
from itertools import pairwise

from devhost.plugin.contents.files import Contents
from devhost.plugin.rules.listed import Problem

PRIVATE_KEY = re.compile(r"-----BEGIN (?:[A-Z]+ )*PRIVATE KEY-----")
KEY_BODY = re.compile(r"(?<![A-Za-z0-9+/])[A-Za-z0-9+/]{40,}")
"""A line of the key itself; its first lines may be headers."""
KEY_LINES = 6
KINDS: Mapping[str, re.Pattern[str]] = {
    "a key of a model's API": re.compile(r"\bsk-(?:[a-z]+-)*[A-Za-z0-9_]{20,}"),
    "a token of GitHub": re.compile(r"\b(?:gh[opsur]_[A-Za-z0-9]{30,}|github_pat_[A-Za-z0-9_]{30,})"),
    "a key of AWS": re.compile(r"\b(?:AKIA|ASIA)[0-9A-Z]{16}\b"),
    "a key of Google": re.compile(r"\bAIza[0-9A-Za-z_-]{35}"),
    "a token of Slack": re.compile(r"\bxox[abprs]-[0-9A-Za-z-]{10,}"),
    "a JSON Web Token": re.compile(r"\beyJ[A-Za-z0-9_-]{10,}\.eyJ[A-Za-z0-9_-]{10,}\.[A-Za-z0-9_-]{10,}"),
}
PREFIX = re.compile(r"sk-(?:(?:proj|ant|live|test|or)-)*|[a-z]+_(?:pat_)?|A[A-Z]IA|AIza|xox[abprs]-")
"""What tokens of these kinds begin with."""
WORDS = re.compile(r"(?i)[a-z]{2,}(?:[-_][a-z]+)+$|.*(?:example|placeholder|your|dummy|change_?me)")
ASSIGNED = re.compile(
    r"(?i)(?:api_?key|secret|token|passw(?:or)?d|credential)\w*[\"']?\s*[:=]\s*[\"']?([A-Za-z0-9+/_=-]{20,})"
)
BEGINNING = 8000
"""Bytes; a NUL in them means, as for git, that the file is not a text."""
RANDOM_BITS = 4.0
"""Of entropy a character: words of a language have fewer, random letters and digits more."""


def secret_problems(contents: Contents) -> Iterator[Problem]:
    for path in contents.paths:
        if b"\0" in contents.read(path)[:BEGINNING]:
            continue
        lines = contents.text(path).splitlines()
        for number, line in enumerate(lines, start=1):
            if kind := _kind(line, lines[number : number + KEY_LINES]):
                yield Problem("secret", path, f"line {number}", f"it seems to contain {kind}; a package is public")


def _kind(line: str, following: list[str]) -> str:
    if found := PRIVATE_KEY.search(line):
        body = (line[found.end() :].replace("\\n", "\n"), *following)
        return "a private key" if any(KEY_BODY.search(part) for part in body) else ""
    for kind, pattern in KINDS.items():
        if any(not _is_placeholder(found[0]) for found in pattern.finditer(line)):
            return kind
    return next(("a secret value" for found in ASSIGNED.finditer(line) if _looks_random(found[1])), "")


def _is_placeholder(token: str) -> bool:
    value = PREFIX.sub("", token, count=1)
    steps = [abs(ord(after) - ord(before)) for before, after in pairwise(value)]
    return bool(WORDS.match(value)) or sum(step <= 1 for step in steps) > len(steps) / 2


def _looks_random(text: str) -> bool:
    """Letters and digits mixed, few of them twice."""
    shares = [count / len(text) for count in Counter(text).values()]
    entropy = -sum(share * math.log2(share) for share in shares)
    return entropy >= RANDOM_BITS and bool(re.search(r"\d", text)) and bool(re.search(r"[A-Za-z]", text))
