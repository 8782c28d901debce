"""What the marketplace asks of a manifest beyond the daemon.

In: the manifest as JSON without nulls. Out: problems of the rule `marketplace`, which refuse a package only for the
marketplace (the pre-check of langgenius/dify-plugins).
"""

import re
from collections.abc import Iterator

from devhost.plugin.rules.listed import Problem
from devhost.protocol.wire import JsonObject

HOSTS = ("github.com", "gitlab.com", "bitbucket.org", "gitee.com", "codeberg.org", "git.sr.ht", "sr.ht")
TAKEN = re.compile("langgenius|dify")


def marketplace_problems(manifest: JsonObject) -> Iterator[Problem]:
    repo, contact = manifest.get("repo"), manifest.get("contact")
    if not isinstance(repo, str) or not re.match(rf"https://(?:www\.)?(?:{'|'.join(map(re.escape, HOSTS))})/\S", repo):
        yield _problem("repo", f"give the address of the source code, on one of {', '.join(HOSTS)}")
    if not isinstance(contact, str) or not re.fullmatch(r"[^@\s]+@[^@\s]+\.[A-Za-z]+", contact):
        yield _problem("contact", "give an e-mail address")
    if not isinstance(manifest.get("privacy"), str) or not manifest["privacy"]:
        yield _problem("privacy", "name the privacy policy, such as PRIVACY.md")
    author = manifest.get("author")
    if isinstance(author, str) and (taken := TAKEN.search(author)):
        yield _problem("author", f"{author!r} contains {taken[0]!r}, which stands for Dify's own plugins")


def _problem(key: str, sentence: str) -> Problem:
    return Problem("marketplace", "manifest.yaml", key, sentence, level="marketplace")
