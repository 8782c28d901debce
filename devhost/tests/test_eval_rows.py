"""Cases from CSV and JSON Lines: what a row becomes, and what its mistakes are called."""

import json
from pathlib import Path
from typing import Any

import pytest
import yaml

from devhost.evaluation.suite import Suite, SuiteCase
from devhost.expected import Expected
from support.evaluating import case, evaluate, result_lines

ASKS = json.dumps([{"ask": "hello"}])


def write_rows(folder: Path, text: str, name: str = "questions.csv", **keys: object) -> Path:
    """A file of cases whose only entry is this file of rows."""
    (folder / name).write_bytes(text.encode())
    entry = {"rows": name, **keys} if keys else name
    file = folder / "cases.yaml"
    file.write_text(yaml.safe_dump({"example": "toolbox", "cases": [entry]}))
    return file


def cases(folder: Path, text: str, name: str = "questions.csv", **keys: object) -> tuple[SuiteCase, ...]:
    return Suite.read(write_rows(folder, text, name, **keys)).cases


def expected(**values: object) -> Expected:
    return Expected.model_validate(values)


def test_each_row_is_a_case_whose_columns_are_named_as_its_keys(tmp_path: Path) -> None:
    text = 'name,query,expect.text.contains\none,"What, then?\nSay it.",yes\n,Why?,no\n'
    one, other = cases(tmp_path, text)
    assert (one.name, one.query, one.expect) == ("one", "What, then?\nSay it.", expected(text={"contains": "yes"}))
    assert other.name == "questions 3"


def test_columns_of_other_names_are_mapped_and_the_others_left_out(tmp_path: Path) -> None:
    columns = {"Question": "query", "Answer": "expect.similar.to", "City": "variables.start.city", "File": "files"}
    (tmp_path / "a.png").write_bytes(b"")
    (row,) = cases(
        tmp_path, "Question,Answer,Note,City,File\nWhy?,[so],x,Kyoto,a.png\n", columns=columns, repeats=3, reference="r"
    )
    assert (row.query, row.expect, row.variables) == ("Why?", expected(similar="[so]"), {"start.city": "Kyoto"})
    assert (row.files, row.repeats, row.reference) == ((tmp_path / "a.png",), 3, "r")


def test_an_empty_field_is_one_that_is_not_given_and_an_empty_row_is_none(tmp_path: Path) -> None:
    text = "query,expect.text.contains,expect.rounds\nWhy?,, \n,,\n\nHow?,yes\n"
    first, last = cases(tmp_path, text, expect={"text": {"lacks": "no"}})
    assert first.expect == expected(text={"lacks": "no"})
    assert last.expect == expected(text={"lacks": "no", "contains": "yes"})
    assert [first.name, last.name] == ["questions 2", "questions 5"]


@pytest.mark.parametrize("separator", [",", ";", "\t"])
def test_a_byte_order_mark_other_line_ends_and_other_separators_are_those_of_spreadsheets(
    tmp_path: Path, separator: str
) -> None:
    rows = [["query", "expect.text.contains"], ["Dürfen Hunde\u2028mit?", '["ja", "nein"]']]
    quoted = [separator.join('"' + field.replace('"', '""') + '"' for field in row) for row in rows]
    (row,) = cases(tmp_path, "\ufeff" + "\r\n".join(quoted))
    assert (row.query, row.expect) == ("Dürfen Hunde\u2028mit?", expected(text={"contains": ["ja", "nein"]}))


def test_json_lines_are_cases_as_they_are_and_columns_name_their_keys(tmp_path: Path) -> None:
    lines = ['{"question": "Why?", "expect": {"rounds": 2}, "gold": "so"}', "", '{"question": "How?", "gold": null}']
    columns = {"question": "query", "gold": "reference", "expect": "expect"}
    first, last = cases(tmp_path, "\n".join(lines), "gold.jsonl", columns=columns)
    assert (first.query, first.expect, first.reference) == ("Why?", expected(rounds=2), "so")
    assert (last.name, last.expect, last.reference) == ("gold 3", None, "")


@pytest.mark.parametrize(
    ("text", "keys", "sentence"),
    [
        ("query,expect.rounds\na,1\nb,many\n", {}, "questions.csv, row 3, expect.rounds"),
        ("query,expct\na,1\n", {}, "questions.csv, row 2: unknown key 'expct'"),
        ("query\na,b\n", {}, "questions.csv, row 2: 2 fields, but 1 columns"),
        ('query\n"a\n', {}, "questions.csv, row 2: not valid CSV: unexpected end of data"),
        ("query,query\na,b\n", {}, "questions.csv: several columns are named query"),
        ("query\na\n", {"columns": {"Frage": "query"}}, "questions.csv has no column 'Frage'; there are: query"),
        ("query\na\n", {"columns": ["query"]}, "rows questions.csv: columns: Input should be keys with values"),
        ("name,query\nx,a\nx,b\n", {}, "2 cases are named 'x'"),
        ("query\n", {}, "cases: Input should have an entry"),
    ],
)
def test_a_mistake_names_the_file_and_the_row(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], text: str, keys: dict[str, Any], sentence: str
) -> None:
    assert evaluate(write_rows(tmp_path, text, **keys)) == 2
    (line,) = capsys.readouterr().err.strip().splitlines()
    assert sentence in line


@pytest.mark.parametrize(
    ("line", "sentence"),
    [
        ("{", "row 2: not JSON"),
        ("[1]", "row 2: should be an object"),
        ('{"query": 1}', "row 2, query: should be a text"),
    ],
)
def test_a_mistake_in_json_lines_names_the_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], line: str, sentence: str
) -> None:
    assert evaluate(write_rows(tmp_path, f'{{"query": "a"}}\n{line}\n', "rows.jsonl")) == 2
    assert f"rows.jsonl, {sentence}" in capsys.readouterr().err


def test_rows_in_another_encoding_say_so(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = write_rows(tmp_path, "")
    (tmp_path / "questions.csv").write_bytes("query\nDürfen".encode("latin-1"))
    assert evaluate(file) == 2
    assert "is not UTF-8, as its byte 8 shows: save it as UTF-8" in capsys.readouterr().err


def test_a_file_of_rows_lies_in_the_folder_of_the_cases(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "other").mkdir()
    (tmp_path / "secret.csv").write_text("query\na\n")
    file = tmp_path / "other" / "cases.yaml"
    file.write_text("cases: [../secret.csv]")
    assert evaluate(file) == 2
    assert "allow it with --allow-files" in capsys.readouterr().err


def test_thousands_of_the_same_mistake_are_told_ten_times(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    text = "query,expect.rounds\n" + "a,many\n" * 500
    assert evaluate(write_rows(tmp_path, text)) == 2
    shown = capsys.readouterr().err
    assert shown.count("questions.csv, row") == 10
    assert "and 490 more" in shown


@pytest.mark.usefixtures("lent_plugins")
def test_rows_run_beside_other_cases(tmp_path: Path) -> None:
    (tmp_path / "questions.csv").write_text(
        f'query,turns,expect.text.equals\n"{ASKS.replace(chr(34), chr(34) * 2)}",Hi,Hi\n'
    )
    file = tmp_path / "cases.yaml"
    file.write_text(yaml.safe_dump({"example": "toolbox", "cases": [case("own", {"ask": "x"}), "questions.csv"]}))
    assert evaluate(file) == 0
    assert {line["case"] for line in result_lines(tmp_path / "cases.results.jsonl")} == {"own", "questions 2"}


def test_a_script_of_many_rows_needs_no_question_of_its_own(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    script = tmp_path / "answers.yaml"
    script.write_text("otherwise: [{text: Hello.}]")
    row = json.dumps({"name": "one", "query": ASKS, "expect": {"text": {"contains": "Hello"}}})
    file = write_rows(tmp_path, row, "questions.jsonl", script="answers.yaml")
    assert evaluate(file) == 0

    script.write_text("turns: [{text: Hello.}]")
    assert evaluate(file) == 2
    assert "has no turns for the question" in capsys.readouterr().err
