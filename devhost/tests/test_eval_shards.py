"""Shards of an evaluation, and their results as those of one machine."""

import json
import re
from pathlib import Path

import pytest

from devhost.cli.commands import main
from devhost.evaluation.results import PREVIOUS, kept_beside
from support.evaluating import call, case, evaluate, result_lines, write

CASES = [
    case("greets", {"ask": "hello"}, said="Good day", expect={"text": {"contains": "Good"}}, repeats=3),
    case("fails", {"ask": "hello"}, said="Good day", expect={"text": {"contains": "Good night"}}, repeats=2, rate=0.5),
    case("draws", call("draw", size=10), expect={"calls": {"exactly": ["draw"]}}),
    case("tries", call("draw"), expect={"failed_calls": 0}),
]
COLUMNS = [{"name": "calm", "params": {"mood": "calm"}}, {"name": "wild", "params": {"mood": "wild"}}]
TIMES = re.compile(
    r'(time=")[\d.]+(?=")'  # of JUnit's XML
    r"|(tokens and )[\d.]+(?: ± [\d.]+)?(?= s a run)"  # of a page
    r"|(seconds <b>)[^<]+"
)


def masked(text: str) -> str:
    """A page or XML with the same in place of all times."""
    return TIMES.sub(lambda found: f"{''.join(filter(None, found.groups()))}TIME", text)


def masked_json(text: str) -> str:
    """JSON as `devhost eval` writes it, with the same in place of all times."""

    def without_times(value: object) -> object:
        if isinstance(value, list):
            return list(map(without_times, value))
        if isinstance(value, dict):
            times = {name: "TIME" for name in value if name in {"seconds", "began"}}
            return {name: without_times(each) for name, each in value.items()} | times
        return value

    return json.dumps(without_times(json.loads(text)))


def reported(*arguments: str, folder: Path, capsys: pytest.CaptureFixture[str]) -> tuple[int, list[str]]:
    """The exit code, and the report as JSON, as a page and as JUnit's XML; without times."""
    page = folder / "page.html"
    junit = folder / "junit.xml"
    capsys.readouterr()
    code = main(["eval", *arguments, "--json", "--report", str(page), "--junit", str(junit)])
    return code, [masked_json(capsys.readouterr().out), masked(page.read_text()), masked(junit.read_text())]


def test_masking_changes_nothing_but_times() -> None:
    said = "passed 3/3 (44 to 100 %) <b>21</b> seconds <b>0.02</b> 18 tokens and 0.02 s a run"
    kept = "passed 3/3 (44 to 100 %) <b>21</b> seconds <b>TIME</b> 18 tokens and TIME s a run"
    assert masked(said) == kept
    assert masked_json('[{"seconds": {"mean": 1}, "tokens": 2}]') == '[{"seconds": "TIME", "tokens": 2}]'


@pytest.fixture
def shards(tmp_path: Path) -> list[Path]:
    """The results of all three."""
    file = write(tmp_path, *CASES, columns=COLUMNS)
    assert [evaluate(file, "--shard", f"{number}/3") for number in (1, 2, 3)] == [0, 0, 0], "only all can say it"
    return [tmp_path / f"cases.{number}-of-3.results.jsonl" for number in (1, 2, 3)]


@pytest.mark.usefixtures("lent_plugins")
def test_merged_shards_are_reported_as_the_evaluation_of_one_machine(
    tmp_path: Path, shards: list[Path], capsys: pytest.CaptureFixture[str]
) -> None:
    assert [len(result_lines(shard)) for shard in shards] == [5, 5, 4]
    assert evaluate(tmp_path / "cases.yaml") == 1
    whole = tmp_path / "cases.results.jsonl"
    merged = tmp_path / "merged.jsonl"
    names = [str(shard) for shard in reversed(shards)]
    got = reported("merge", *names, "--results", str(merged), folder=tmp_path, capsys=capsys)
    expected = reported(str(tmp_path / "cases.yaml"), "--show", folder=tmp_path, capsys=capsys)
    assert got == expected
    assert got[0] == 1
    ordered = sorted(masked_json(line) for line in whole.read_text().splitlines())
    assert sorted(masked_json(line) for line in merged.read_text().splitlines()) == ordered

    assert main(["eval", "merge", *names, "--results", str(merged), "--against", "last", "--threshold", "0.5"]) == 0
    assert kept_beside(merged, PREVIOUS).is_file()
    assert "0 of 4 cases got better, 0 got worse" in capsys.readouterr().out


@pytest.mark.usefixtures("lent_plugins")
def test_shards_that_do_not_make_a_whole_are_refused(
    tmp_path: Path, shards: list[Path], capsys: pytest.CaptureFixture[str]
) -> None:
    def refused(*files: Path) -> str:
        capsys.readouterr()
        assert main(["eval", "merge", *map(str, files), "--results", str(tmp_path / "merged.jsonl")]) == 2
        assert not (tmp_path / "merged.jsonl").exists()
        return capsys.readouterr().err

    first, second, third = shards
    copy = tmp_path / "copy.jsonl"
    copy.write_bytes(second.read_bytes())
    assert "the 2 shards 1/3, 3/3 of 3 are missing" in refused(second)
    assert f"shard 2/3 is given twice: {second} and {copy}" in refused(first, second, copy)
    header, *lines = second.read_bytes().splitlines(keepends=True)
    copy.write_bytes(b"".join((header, *lines[:-1])))
    assert f"{copy} is not finished: 4 of 5 runs have a result" in refused(first, copy, third)
    copy.write_bytes(header.replace(b'"digest": "', b'"digest": "0') + b"".join(lines))
    assert f"{copy} and {first} belong to different evaluations: cases, scripts" in refused(first, copy, third)
    copy.write_bytes(header.replace(b'"2/3"', b'"2/4"') + b"".join(lines))
    assert f"{copy} is shard 2/4, and {first} is 1/3" in refused(first, copy, third)
    copy.write_bytes(header.replace(b'"2/3"', b'""') + b"".join(lines))
    assert f"{copy} is not a shard" in refused(copy, first)
    assert main(["eval", "merge", *map(str, shards), "--results", str(first)]) == 2


@pytest.mark.usefixtures("lent_plugins")
def test_an_interrupted_shard_goes_on(tmp_path: Path, shards: list[Path], capsys: pytest.CaptureFixture[str]) -> None:
    finished = shards[1].read_bytes()
    shards[1].write_bytes(b"".join(finished.splitlines(keepends=True)[:3]))
    assert evaluate(tmp_path / "cases.yaml", "--shard", "2/3") == 0
    assert "continuing: 2 of 5 runs have a result" in capsys.readouterr().out
    assert len(result_lines(shards[1])) == 5


@pytest.mark.parametrize("shard", ["0/3", "4/3", "2", "a/b", "1/99999"])
def test_a_shard_that_there_is_not_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str], shard: str) -> None:
    assert evaluate(write(tmp_path, *CASES), "--shard", shard) == 2
    assert f"--shard {shard!r}: " in capsys.readouterr().err


@pytest.mark.usefixtures("lent_plugins")
def test_more_shards_than_runs_leave_some_without_any(tmp_path: Path) -> None:
    file = write(tmp_path, CASES[2])
    assert [evaluate(file, "--shard", f"{number}/2") for number in (1, 2)] == [0, 0]
    files = [str(tmp_path / f"cases.{number}-of-2.results.jsonl") for number in (1, 2)]
    assert main(["eval", "merge", *files, "--results", str(tmp_path / "merged.jsonl")]) == 0
    assert json.loads(Path(files[1]).read_text())["shard"] == "2/2"
