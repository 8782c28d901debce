import re
from pathlib import Path

import pytest
from helpdesk_search.answers import answer_files, read_answers
from helpdesk_search.errors import AnswersError
from helpdesk_search.manual import read_manual

HEAD = "id,answered_on,topic,question,answer\n"
MENU = re.compile(r'(?:Admin|Settings|Share|Preferences|Help) (?:> [^,.:;"()]+)+|(?:管理|設定|共有) (?:> [^」）]+)+')


@pytest.fixture
def manual_text(helpdesk: Path) -> str:
    return "\n".join(page.text for document in read_manual(helpdesk / "manual") for page in document.pages)


def test_there_are_enough_questions_in_both_languages(helpdesk: Path) -> None:
    answers = read_answers(helpdesk / "qa")
    for language in ("en", "ja"):
        mine = [answered for answered in answers if answered.language == language]
        assert 40 <= len(mine) <= 60
        assert len({answered.question for answered in mine}) == len(mine)
        assert len({answered.topic for answered in mine}) >= 9
    assert all(re.fullmatch(r"2026-\d\d-\d\d", answered.answered_on) for answered in answers)


def test_the_answers_name_only_menus_of_the_manual(helpdesk: Path, manual_text: str) -> None:
    known = {path.strip() for path in MENU.findall(manual_text)}
    named = [path for answered in read_answers(helpdesk / "qa") for path in MENU.findall(answered.answer)]
    assert len(named) > 30
    for path in named:
        places = path.split(" > ")
        starts = {" > ".join(places[:length]) for length in range(2, len(places) + 1)}
        # In English the sentence goes on after the name of the menu.
        assert any(start in known or any(path.startswith(menu) for menu in known) for start in starts), path


def test_the_answers_name_only_addresses_and_amounts_of_the_manual(helpdesk: Path, manual_text: str) -> None:
    for answered in read_answers(helpdesk / "qa"):
        for address in re.findall(r"[\w.]+@[\w.]+\w", answered.answer):
            assert address in manual_text, answered.id
        for amount in re.findall(r"\d[\d,]*(?= ?(?:MB|GB|TB|days?|minutes?|hours|日間|文字|分間|件))", answered.answer):
            assert amount in manual_text, (answered.id, amount)


@pytest.mark.parametrize(
    ("content", "said"),
    [
        ("", "en.csv: the first line lacks the column id, answered_on, topic, question, answer"),
        ("id,topic\n1,x\n", "en.csv: the first line lacks the column answered_on, question, answer"),
        (HEAD, "en.csv: the file contains no questions"),
        (HEAD + "1,2026-01-01,t,q,a\n2,2026-01-01,t,,\n", "en.csv, line 3: question, answer must not be empty"),
        (HEAD + "1,2026-01-01,t\n", "en.csv, line 2: question, answer must not be empty"),
        (HEAD + "1,2026-01-01,t,q,a\n1,2026-01-01,t,q,a\n", "en.csv, line 3: the id 1 is used twice"),
        (HEAD + '1,2026-01-01,t,q,"a\n', "en.csv: not valid CSV"),
    ],
)
def test_errors_in_a_csv_are_explained(tmp_path: Path, content: str, said: str) -> None:
    (tmp_path / "en.csv").write_text(content, encoding="utf-8")
    with pytest.raises(AnswersError, match=re.escape(said)):
        read_answers(tmp_path)


def test_a_csv_in_another_encoding_is_named(tmp_path: Path) -> None:
    (tmp_path / "ja.csv").write_bytes(HEAD.encode() + "1,2026-01-01,t,質問,a\n".encode("shift_jis"))
    with pytest.raises(AnswersError, match=r"ja\.csv: byte \d+ is not UTF-8"):
        read_answers(tmp_path)


def test_a_csv_from_a_spreadsheet_is_read(tmp_path: Path) -> None:
    row = '7,2026-01-01,t,"with ""quotes"", and\r\na break",a,a column more\r\n'
    (tmp_path / "en.csv").write_bytes(b"\xef\xbb\xbf" + HEAD.replace("\n", ",note\r\n").encode() + row.encode())
    (answered,) = read_answers(tmp_path)
    assert answered.question == 'with "quotes", and\r\na break'


def test_missing_questions_are_named(tmp_path: Path) -> None:
    with pytest.raises(AnswersError, match=r"contains neither ja\.csv nor en\.csv"):
        answer_files(tmp_path)
