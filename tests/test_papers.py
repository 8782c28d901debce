"""The papers of the project say what is so: protections have tests, folders exist, what a person fills in is enough."""

import ast
import re
import shutil
import subprocess
import textwrap
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import yaml

from devhost.package import packed, unknown_files
from devhost.plugin.check import check_plugin
from devhost.plugin.contents import Contents
from scripts import publisher, release_notes

ROOT = Path(__file__).parent.parent
SECURITY = (ROOT / "SECURITY.md").read_text(encoding="utf-8")
AGENTS = (ROOT / "AGENTS.md").read_text(encoding="utf-8")
SHOWN_BY = re.compile(r"`((?:devhost/)?tests/[\w/]+\.py)::(test_\w+)`")

# --- SECURITY.md and PRIVACY.md ---------------------------------------------------------------------------------------

PROTECTIONS = [
    row for row in re.findall(r"^\| (.+) \|$", SECURITY, re.MULTILINE) if not row.startswith(("Against |", "Promise |"))
]


@pytest.mark.parametrize("row", PROTECTIONS, ids=lambda row: row.partition(" | ")[0])
def test_every_protection_is_shown_by_tests_that_exist(row: str) -> None:
    tests = SHOWN_BY.findall(row)

    assert len(tests) == row.count("::") > 0
    for file, name in tests:
        assert re.search(rf"^def {name}\(", (ROOT / file).read_text(encoding="utf-8"), re.MULTILINE), f"{file}::{name}"


NETWORK = {"aiohttp", "ftplib", "http", "httpx", "requests", "smtplib", "socket", "urllib3"}
FILES = {
    "open",
    "fdopen",
    "read_bytes",
    "read_text",
    "write_bytes",
    "write_text",
    "mkdir",
    "unlink",
    "NamedTemporaryFile",
}
REACH_OUTSIDE = {
    "internal/host/files.py": {"httpx", "os.open", "urllib.request"},
    "internal/host/failures.py": {"_FILE.read_text"},
}
"""PRIVACY.md, "What it opens itself": files of the turn over HTTP, local files of tools, and a file of the package.

`urllib.request` only tells which proxies the environment names.
"""


def reached(path: Path) -> set[str]:
    """The modules of the network that a file imports, the calls that open files, and uses of Dify's storage."""
    found = set[str]()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        match node:
            case ast.Import(names=names):
                found |= {alias.name for alias in names if alias.name.partition(".")[0] in NETWORK}
            case ast.ImportFrom(module=str(module)) if (
                module.partition(".")[0] in NETWORK or module == "urllib.request"
            ):
                found.add(module)
            case ast.Call(func=ast.Name(id=name)) if name in FILES:
                found.add(name)
            case ast.Call(func=ast.Attribute(attr=name) as called) if name in FILES:
                found.add(ast.unparse(called))
            case ast.Attribute(attr="storage"):
                found.add("storage")
    return found


def test_only_the_modules_that_the_privacy_policy_means_reach_outside() -> None:
    modules = [ROOT / path for path in Contents.of(ROOT).paths if path.endswith(".py")]

    outside = {str(path.relative_to(ROOT)): reached(path) for path in modules}
    assert {path: found for path, found in outside.items() if found} == REACH_OUTSIDE


# --- AGENTS.md ------------------------------------------------------------------------------------------------------


def test_the_page_for_agents_names_every_folder_of_code_and_only_folders_that_exist() -> None:
    named = re.findall(r"^\| `([\w-]+)/` \|", AGENTS, re.MULTILINE)
    modules = {path.relative_to(ROOT).parts[0] for path in ROOT.glob("*/*.py")}

    assert [folder for folder in named if not (ROOT / folder).is_dir()] == []
    assert modules - {"dist"} <= set(named)


def test_the_commands_on_the_page_for_agents_exist() -> None:
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    (targets,) = re.findall(r"^\.PHONY: (.+)$", makefile, re.MULTILINE)
    used = set(re.findall(r"\bmake (\w+)", AGENTS + (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")))

    assert used - set(targets.split()) == set()


# --- CHANGELOG.md -----------------------------------------------------------------------------------------------------

GROUPS = ["Added", "Changed", "Deprecated", "Removed", "Fixed", "Security"]
"""How lines are collected under Unreleased."""
TOPICS = [
    "Upgrading: what to do",
    "Upgrading: what behaves differently or is gone",
    "In Dify's Agent node",
    "Models, tools and files",
    "Security and speed",
    "devhost and examples",
]
"""How they are written for the readers of a release (docs/releasing.md)."""
MAX_SECTION = 90
"""Lines of a release, which people read before they upgrade."""
VERSIONS = re.split(r"^## ", (ROOT / "CHANGELOG.md").read_text(encoding="utf-8"), flags=re.MULTILINE)[1:]


def test_the_changelog_begins_with_what_is_unreleased_and_dates_the_others() -> None:
    first, *others = (version.splitlines()[0] for version in VERSIONS)

    assert first == "[Unreleased]"
    assert [heading for heading in others if not re.fullmatch(r"\[\d+\.\d+\.\d+\] - \d{4}-\d\d-\d\d", heading)] == []


@pytest.mark.parametrize("version", VERSIONS, ids=lambda version: version.splitlines()[0])
def test_each_version_has_each_group_once_in_order_and_nothing_but_entries(version: str) -> None:
    """Two branches that are merged line by line could leave a group twice, or half an entry."""
    groups = re.findall(r"^### (.+)$", version, re.MULTILINE)
    lines = [line for line in version.splitlines()[1:] if line and not line.startswith("### ")]

    assert groups in [[group for group in order if group in groups] for order in (GROUPS, TOPICS)]
    assert groups or version.startswith("[Unreleased]")
    assert [line for line in lines if not line.startswith(("- ", "  "))] == []
    assert re.findall(r"^### .+\n++(?!- )", version, re.MULTILINE) == []


@pytest.mark.parametrize("version", VERSIONS[1:], ids=lambda version: version.splitlines()[0])
def test_a_release_is_short_enough_to_read(version: str) -> None:
    assert len(version.strip().splitlines()) <= MAX_SECTION


# --- what a person fills in once --------------------------------------------------------------------------------------

FIELDS = {"repo": "https://github.com/somebody/strategies", "contact": "somebody@example.org"}


@pytest.fixture
def copy(tmp_path: Path) -> Path:
    """The packaged files, with a manifest that names neither repository nor contact."""
    for path in [*Contents.of(ROOT).paths, "SECURITY.md", ".difyignore"]:
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / path, tmp_path / path)
    return with_fields(tmp_path, {})


def with_fields(plugin: Path, fields: dict[str, str]) -> Path:
    manifest: dict[str, Any] = yaml.safe_load((plugin / "manifest.yaml").read_text(encoding="utf-8"))
    kept = {key: value for key, value in manifest.items() if key not in FIELDS}
    (plugin / "manifest.yaml").write_text(yaml.safe_dump(kept | fields, allow_unicode=True), encoding="utf-8")
    for page, text in publisher.stale_pages(plugin).items():
        page.write_text(text, encoding="utf-8")
    return plugin


def test_the_pages_show_repository_and_contact_of_the_manifest() -> None:
    assert [str(page) for page in publisher.stale_pages()] == [], "run `make docs`"


def test_without_repository_and_contact_only_the_marketplace_refuses(copy: Path) -> None:
    problems = check_plugin(copy).problems

    assert {(problem.file, problem.key) for problem in problems} == {("manifest.yaml", field) for field in FIELDS}
    assert {problem.level for problem in problems} == {"marketplace"}


def test_both_filled_in_in_the_manifest_are_all_that_the_marketplace_asks_for(copy: Path) -> None:
    filled = with_fields(copy, FIELDS)

    assert check_plugin(filled).problems == ()
    assert f"<{FIELDS['repo']}>" in (filled / "README.md").read_text(encoding="utf-8")
    for page in publisher.CONTACT_PAGES:
        assert f"<{FIELDS['contact']}>" in (filled / page).read_text(encoding="utf-8")


# --- signatures -------------------------------------------------------------------------------------------------------


def test_both_ways_around_the_check_of_signatures_are_commands_to_paste() -> None:
    page = (ROOT / "docs" / "install.md").read_text(encoding="utf-8").partition("\n## Signatures\n")[2]
    blocks = [textwrap.dedent(block) for block in re.findall(r"^ *```sh\n(.*?)^ *```", page, re.DOTALL | re.MULTILINE)]
    commands = "".join(blocks)

    for command in ("signature generate", "signature sign", "signature verify"):
        assert f"\ndify {command} " in f"\n{commands}"
    for setting in ("FORCE_VERIFYING_SIGNATURE=false", "_ENABLED: ", "_PUBLIC_KEYS: "):
        assert setting in commands
    shell = shutil.which("bash") or "/bin/sh"
    for block in blocks:
        assert subprocess.run([shell, "-n"], input=block, capture_output=True, text=True, check=False).stderr == ""
    (given,) = re.findall(r"<<'END'\n(.*?)^END$", commands, re.DOTALL | re.MULTILINE)
    daemon = yaml.safe_load(given)["services"]["plugin_daemon"]["environment"]
    (copied,) = re.findall(r"^cp \S+/(\S+) volumes/plugin_daemon/(\S+)/$", commands, re.MULTILINE)
    assert daemon["THIRD_PARTY_SIGNATURE_VERIFICATION_PUBLIC_KEYS"] == f"/app/storage/{copied[1]}/{copied[0]}"


# --- a release --------------------------------------------------------------------------------------------------------


def test_the_notes_of_a_release_are_its_section_of_the_changelog(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "manifest.yaml").write_text("version: 1.2.3\n", encoding="utf-8")
    changelog = (
        "# Changelog\n\n## [1.2.3] - 2026-01-02\n\n### Added\n\n- a line\n\n## [1.2.2] - 2026-01-01\n\n- older\n"
    )
    (tmp_path / "CHANGELOG.md").write_text(changelog, encoding="utf-8")

    assert release_notes.notes("v1.2.3", tmp_path) == "### Added\n\n- a line"
    with pytest.raises(ValueError, match=r"the tag is 1\.2\.3, .* the tag must be v1\.2\.3"):
        release_notes.notes("1.2.3", tmp_path)
    (tmp_path / "CHANGELOG.md").write_text("## [1.2.3] - 2026-01-02\n\n## [1.2.2] - 2026-01-01\n", encoding="utf-8")
    with pytest.raises(ValueError, match=r"says nothing under '## \[1\.2\.3\] - DATE'"):
        release_notes.notes("v1.2.3", tmp_path)
    assert release_notes.main(["v0.0.0"]) == 1
    assert "release_notes: the tag is v0.0.0" in capsys.readouterr().err


def test_the_links_of_the_notes_lead_to_the_repository(tmp_path: Path) -> None:
    (tmp_path / "manifest.yaml").write_text("version: 1.2.3\nrepo: https://github.com/a/b\n", encoding="utf-8")
    changelog = "## [1.2.3] - 2026-01-02\n\n- a line ([more](docs/limits.md#time), [else](https://example.org))\n"
    (tmp_path / "CHANGELOG.md").write_text(changelog, encoding="utf-8")

    link = "https://github.com/a/b/blob/v1.2.3/docs/limits.md#time"
    assert release_notes.notes("v1.2.3", tmp_path) == f"- a line ([more]({link}), [else](https://example.org))"


MOST_FILES = 175
MOST_BYTES = 330_000
"""Dify's own limits are far away (docs/releasing.md, "The package"): these only make growth visible."""


def test_the_package_stays_small() -> None:
    whole = Contents.of(ROOT)
    left_here = set(unknown_files(whole))  # by a person who tried something; `make package` refuses it
    contents = replace(whole, paths=tuple(path for path in whole.paths if path not in left_here))

    assert len(contents.paths) <= MOST_FILES
    assert len(packed(contents)) <= MOST_BYTES
    page = (ROOT / "docs" / "releasing.md").read_text(encoding="utf-8")
    assert f"A test fails above {MOST_FILES} files or {MOST_BYTES // 1000} kB" in page
