"""Each rule of `devhost check` by its name: a plugin that breaks it, and where the problem is said to be."""

import json
from pathlib import Path
from typing import Any

import pytest
import yaml

from devhost.cli.commands import main
from devhost.plugin.check import check_plugin
from devhost.plugin.contents import Contents, size_problems
from devhost.plugin.problems import RULES, Problem
from devhost.process.plugin_process import PluginProcess
from support.breaches import BREACHES, DRAW, KEY, MANIFEST, Breach, complete, replaced
from support.plugins import CHARTS, FIXTURES, PUPPET


def problem_of(plugin: Path, rule: str) -> Problem:
    return next(problem for problem in check_plugin(plugin).problems if problem.rule == rule)


@pytest.mark.parametrize("source", [CHARTS, PUPPET], ids=lambda path: path.name)
def test_a_complete_plugin_breaks_no_rule(source: Path, tmp_path: Path) -> None:
    assert check_plugin(complete(tmp_path, source)).problems == ()


@pytest.mark.parametrize("breach", BREACHES, ids=str)
def test_a_rule_finds_what_breaks_it(breach: Breach, tmp_path: Path) -> None:
    plugin = complete(tmp_path, breach.source)
    breach.break_it(plugin)

    problem = problem_of(plugin, breach.rule)
    assert (problem.file, problem.key, problem.level) == (breach.file, breach.key, breach.level)
    assert breach.level == "refused" or check_plugin(plugin).refusals == ()


@pytest.mark.parametrize(
    ("file", "old", "new", "sentence"),
    [
        (MANIFEST, "version: 0.0.3\n", "version: 0.3\n", "Input should be a valid string: write it in quotes"),
        (DRAW, "default: 40", "enum: [40]", "Dify drops it: there is no key 'enum', and texts are in en_US, "),
        (
            MANIFEST,
            "created_at:",
            "provider: x\ncreated_at:",
            "Dify drops it: the key 'provider' has its place elsewhere",
        ),
        (DRAW, "  author:", " author:", "is not valid YAML: line 3, column 7: mapping values are not"),
        (DRAW, "default: blue", "default: [blue]", "it is a list exactly where multiple is true (Dify since 1.16)"),
    ],
)
def test_a_sentence_says_what_would_be_right(file: str, old: str, new: str, sentence: str, tmp_path: Path) -> None:
    plugin = complete(tmp_path)
    replaced(file, old, new)(plugin)

    assert any(problem.sentence.startswith(sentence) for problem in check_plugin(plugin).problems)


def test_the_size_has_a_limit_in_bytes_and_in_files(tmp_path: Path) -> None:
    contents = Contents.of(complete(tmp_path))
    total = sum((contents.directory / path).stat().st_size for path in contents.paths)

    assert list(size_problems(contents, total, len(contents.paths))) == []
    assert [problem.rule for problem in size_problems(contents, total - 1)] == ["size"]
    assert [problem.rule for problem in size_problems(contents, most_files=len(contents.paths) - 1)] == ["size"]


def test_every_rule_of_the_list_is_broken_by_a_test() -> None:
    assert {breach.rule for breach in BREACHES} | {"size"} == set(RULES)


@pytest.mark.parametrize(
    ("file", "harmless"),
    [
        ("README.md", "https://github.com/chartmakers/charts\n\n```text\n图表\n```\n"),
        ("tools/key.py", 'key = "sk-..."\ntoken = "the-name-of-an-environment-variable"\n'),
        (
            "tools/draw_chart.py",
            "class Draw(Tool):\n def _invoke(self, values):\n  def each():\n   yield 'a'\n  return self._of(each())\n",
        ),
        (".env.example", "API_KEY=\n"),
        ("requirements.txt", "# SDK\ndify-plugin>=0.9.0,<1.0.0  # bounded\nhttpx==0.28.1 \\\n  --hash=sha256:0\n"),
    ],
)
def test_what_only_looks_like_a_breach_is_none(file: str, harmless: str, tmp_path: Path) -> None:
    plugin = complete(tmp_path)
    (plugin / ".difyignore").write_text("__pycache__/\n", encoding="utf-8")
    (plugin / file).write_text(harmless, encoding="utf-8")

    assert check_plugin(plugin).problems == ()


def test_gitignore_counts_without_a_difyignore_and_not_beside_one(tmp_path: Path) -> None:
    plugin = complete(tmp_path)
    (plugin / ".gitignore").write_text("*.log\n.gitignore\n", encoding="utf-8")
    (plugin / "run.log").touch()
    assert {problem.file for problem in check_plugin(plugin).refusals} == {"run.log"}

    (plugin / ".difyignore").unlink()
    assert check_plugin(plugin).refusals == ()

    (plugin / ".git").mkdir()
    assert {problem.file for problem in check_plugin(plugin).refusals} == {".git/"}, "Dify's packager would take it"

    (plugin / ".gitignore").unlink()
    assert {problem.file for problem in check_plugin(plugin).refusals} == {"run.log", ".git/"}


def recorded() -> tuple[list[str], list[dict[str, Any]]]:
    """Which files of a folder Dify's own packager took, in order, and which each ignore file left out."""
    lines = (FIXTURES / "dify" / "packager.jsonl").read_text(encoding="utf-8").splitlines()
    head, *cases = map(json.loads, lines)
    return head["packed"], cases


def test_the_package_has_the_files_that_difys_packager_takes_in_its_order(tmp_path: Path) -> None:
    packed, cases = recorded()
    for path in packed:
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / path).touch()
    for case in cases:
        (tmp_path / case["file"]).write_text(case["text"], encoding="utf-8", newline="")
        taken = Contents.of(tmp_path).paths
        wanted = {*packed, case["file"]} - set(case["left_out"])
        assert list(taken) == sorted(wanted), case["text"]
        (tmp_path / case["file"]).unlink()
    assert list(Contents.of(tmp_path).paths) == packed
    assert len(cases) > 40


def test_a_secret_is_not_shown(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    plugin = complete(tmp_path)
    (plugin / "tools" / "key.py").write_text(f"KEY = 'sk-{KEY}'\n", encoding="utf-8")

    assert main(["check", str(plugin), "--no-color"]) == 1
    said = capsys.readouterr().out
    assert "tools/key.py: line 1: it seems to contain a key; a package is public (secret)" in said
    assert KEY not in said


def test_a_finding_that_is_meant_is_accepted_by_its_name(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    plugin = complete(tmp_path)
    (plugin / "tools" / "key.py").write_text(f"KEY = 'sk-{KEY}'\n", encoding="utf-8")
    (plugin / "tools" / "fast.so").touch()
    check = ["check", str(plugin), "--no-color"]

    assert main([*check, "--accept", "secret:tools/key.py"]) == 1
    assert main([*check, "--accept", "secret:tools/key.py", "--accept", "forbidden-file:tools/fast.so"]) == 0
    said = capsys.readouterr().out
    assert "notice: tools/key.py: line 1: accepted: it seems to contain a key" in said
    assert main([*check, "--accept", "declaration:manifest.yaml"]) == 2
    assert "--accept declaration:manifest.yaml: there is no such finding" in capsys.readouterr().err


def test_what_uv_takes_is_taken(tmp_path: Path) -> None:
    """A byte order mark, a continued line, hashes, options, another file, a comment behind a requirement."""
    plugin = complete(tmp_path)
    lines = [
        "\ufeff# what the plugin needs",
        "--index-url https://packages.example/simple",
        "httpx[http2]==0.28.1 ; python_version > '3'  # for the API",
        "pillow==12.0.0 \\",
        "  --hash=sha256:1234",
        "-r of_dify.txt",
    ]
    (plugin / "requirements.txt").write_text("\n".join(lines), encoding="utf-8")
    (plugin / "of_dify.txt").write_text("dify_plugin==0.10.2\n", encoding="utf-8")

    assert [problem for problem in check_plugin(plugin).problems if problem.rule == "dependency"] == []


def test_a_module_that_no_requirement_brings_is_named_where_the_plugin_has_its_own_environment(tmp_path: Path) -> None:
    plugin = complete(tmp_path)
    code = ["import json", "import brought.part, by_hand", "from nowhere import x", "import tools"]
    guarded = ["try:", "    import perhaps", "except ImportError:", "    perhaps = None"]
    (plugin / "tools" / "more.py").write_text("\n".join([*code, *guarded]), encoding="utf-8")
    assert [problem for problem in check_plugin(plugin).problems if problem.file == "tools/more.py"] == []

    packages = plugin / ".venv" / "lib" / "python3.12" / "site-packages"
    for name, requires, module in [
        ("dify_plugin", "Requires-Dist: brings", "dify_plugin"),
        ("brings", "", "brought"),
        ("by-hand", "", "by_hand"),
    ]:
        information = packages / f"{name}-1.0.dist-info"
        information.mkdir(parents=True)
        (information / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n{requires}\n")
        (packages / module).mkdir()
        (packages / module / "__init__.py").touch()
        (information / "RECORD").write_text(f"{module}/__init__.py,,\n")
    (plugin / ".difyignore").write_text(".venv/\n", encoding="utf-8")

    found = [problem for problem in check_plugin(plugin).problems if problem.rule == "dependency"]
    assert [(problem.key, problem.sentence, problem.level) for problem in found] == [
        ("line 2", "no requirement brings the module by_hand", "notice"),
        ("line 3", "no package in the plugin's .venv has the module nowhere", "notice"),
    ]


def test_the_provider_of_strategies_needs_no_code(tmp_path: Path) -> None:
    """The SDK loads none for it."""
    plugin = complete(tmp_path, PUPPET)
    provider = plugin / "provider" / "puppet.yaml"
    declared = yaml.safe_load(provider.read_text(encoding="utf-8"))
    del declared["extra"]
    provider.write_text(yaml.safe_dump(declared), encoding="utf-8")

    assert check_plugin(plugin).problems == ()
    PluginProcess.start(plugin).stop()


def test_an_indentation_mistake_is_told_once_with_its_line(tmp_path: Path) -> None:
    plugin = complete(tmp_path)
    replaced(DRAW, "  author:", " author:")(plugin)
    said = problem_of(plugin, "declaration").sentence

    assert "draw_chart.yaml" not in said
    assert said.endswith("Check the indentation: keys of one level begin in the same column")
