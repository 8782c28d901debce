"""The help desk's texts as they are read: the manual as Markdown and PDF, past questions as CSV, and what is typed."""

import re
from collections.abc import Callable
from pathlib import Path
from sqlite3 import Connection

import pytest
from helpdesk_search.answers import read_answers
from helpdesk_search.errors import TermsError, TextsError
from helpdesk_search.manual import read_manual, split_pages
from helpdesk_search.pdf import read_pdf
from helpdesk_search.search import find
from helpdesk_search.terms import Terms, parse_terms
from hypothesis import given
from hypothesis import strategies as st
from pypdf import PdfReader, PdfWriter

from .conftest import HELPDESK

HEAD = "id,answered_on,topic,question,answer\n"
GUIDE = "desktop-sync-guide"
MANUAL = HELPDESK / "manual"


def test_pages_are_read_by_their_marks() -> None:
    pages = split_pages("front\n<!-- page 3 -->\nthree\n\n<!-- page 7 -->\nseven\n", "a.md")
    assert [(page.number, page.text) for page in pages] == [(1, "front"), (3, "three"), (7, "seven")]


def test_a_byte_order_mark_is_not_part_of_the_texts(tmp_path: Path) -> None:
    (tmp_path / "en").mkdir()
    (tmp_path / "en" / "a.md").write_text("<!-- page 4 -->\n# A\n\nfour", encoding="utf-8-sig")
    row = '7,2026-01-01,t,"with ""quotes"", and\r\na break",a,a column more\r\n'
    (tmp_path / "en.csv").write_bytes(b"\xef\xbb\xbf" + HEAD.replace("\n", ",note\r\n").encode() + row.encode())

    (document,) = read_manual(tmp_path)
    (answered,) = read_answers(tmp_path)
    assert (document.title, [(page.number, page.text) for page in document.pages]) == ("A", [(4, "# A\n\nfour")])
    assert answered.question == 'with "quotes", and\r\na break'


@pytest.mark.parametrize(
    ("reader", "name", "content", "said"),
    [
        (read_manual, "a.txt", b"", "contains neither ja/*.md nor en/*.md"),
        (read_manual, "en/a.md", b"caf\xe9", "en/a.md: byte 3 is not UTF-8"),
        (read_manual, "en/a.md", b"<!-- page 2 -->\nx\n<!-- page 2 -->\ny", "a.md: page 2 follows page 2"),
        (read_answers, "ja.csv", HEAD.encode() + "1,2,t,質問,a\n".encode("shift_jis"), "ja.csv: byte"),
        (read_answers, "en.csv", f"{HEAD}1,2,t,q,a\n2,2,t,,\n".encode(), "line 3: question, answer must not be empty"),
        (read_answers, "en.csv", f"{HEAD}1,2,t,q,a\n1,2,t,q,a\n".encode(), "en.csv, line 3: the id 1 is used twice"),
        (read_answers, "en.csv", f'{HEAD}1,2,t,q,"a\n'.encode(), "en.csv: not valid CSV"),
    ],
)
def test_texts_that_cannot_be_read_are_named(
    reader: Callable[[Path], object], name: str, content: bytes, said: str, tmp_path: Path
) -> None:
    (tmp_path / name).parent.mkdir(exist_ok=True)
    (tmp_path / name).write_bytes(content)
    with pytest.raises(TextsError, match=re.escape(said)):
        reader(tmp_path)


@pytest.mark.parametrize("language", ["en", "ja"])
def test_the_printed_guide_is_read_with_the_headings_of_its_bookmarks(language: str) -> None:
    written = (HELPDESK / "print" / language / f"{GUIDE}.md").read_text(encoding="utf-8")
    pages = [page for page in re.split(r"<!-- page \d -->", written) if page.strip()]
    printed = read_pdf(MANUAL / language / f"{GUIDE}.pdf", "guide")
    assert [re.sub(r"\s", "", page) for page in printed.pages] == [re.sub(r"\s", "", page) for page in pages]
    assert pages[0].strip().startswith(f"# {printed.title}\n")
    headings = [line for page in pages for line in page.splitlines() if line.startswith("#")]
    assert [line for page in printed.pages for line in page.splitlines() if line.startswith("#")] == headings


@pytest.mark.parametrize(
    ("typed", "language", "page", "heading"),
    [
        ('"sync paused" reasons', "all", 3, "When sync has stopped"),
        ("AUTOUPDATE", "en", 1, "Installing the desktop app › Installing it for many people"),
        ("赤いバツ 200文字", "ja", 3, "同期が止まったとき › 赤いバツが付いたファイル"),
    ],
)
def test_a_pdf_is_found_with_page_and_heading(
    manual_index: Connection, typed: str, language: str, page: int, heading: str
) -> None:
    best = find(manual_index, parse_terms(typed), language)[0]
    assert best.file.endswith(f"{GUIDE}.pdf")
    assert (best.page, best.heading) == (page, heading)


@pytest.mark.filterwarnings("ignore")  # the library may warn of the damage
@pytest.mark.parametrize("length", [0, 8, 3000, 12_000, 19_000])
def test_a_damaged_pdf_is_named(tmp_path: Path, length: int) -> None:
    (tmp_path / "cut.pdf").write_bytes((MANUAL / "en" / f"{GUIDE}.pdf").read_bytes()[:length])
    with pytest.raises(TextsError, match=r"en/cut\.pdf: this PDF (cannot be read|contains no text)"):
        read_pdf(tmp_path / "cut.pdf", "en/cut.pdf")


def test_a_scan_and_a_protected_pdf_are_named(tmp_path: Path) -> None:
    scan = PdfWriter()
    protected = PdfWriter(clone_from=PdfReader(MANUAL / "en" / f"{GUIDE}.pdf"))
    scan.add_blank_page(200, 200)
    protected.encrypt("secret", algorithm="RC4-128")
    for writer, said in ((scan, "a scanned one needs text recognition"), (protected, "may be damaged or protected")):
        writer.write(tmp_path / "a.pdf")
        with pytest.raises(TextsError, match=said):
            read_pdf(tmp_path / "a.pdf", "a.pdf")


@pytest.mark.parametrize(
    ("typed", "indexed", "short"),
    [
        ("backup notification", ("backup", "notification"), ()),
        ("共有　リンク", ("リンク",), ("共有",)),
        ('"two factor" app', ("two factor", "app"), ()),
        ("＂full width＂", ("full width",), ()),
        ("“two-factor login” app", ("two-factor login", "app"), ()),
        ("設定「同期 停止」『再 開』｢一 時｣", ("同期 停止", "再 開", "一 時"), ("設定",)),
        ('"press “Sync now”"', ("press “sync now”",), ()),
        ("left “unbalanced phrase", ("left", "unbalanced", "phrase"), ()),
        ("ＡＰＩ api API", ("api",), ()),
        ("OR NEAR(a b) heading:x ^y -z a*", ("near(a", "heading:x"), ("b", "^y", "-z", "a*")),
        ("How do I restore a deleted file?", ("restore", "deleted", "file"), ()),
        ('What is "how to"?', ("how to",), ()),
        ("削除したファイルを復元するにはどうすればいいですか？", ("ファイル",), ("削除", "復元")),
        ("通知が届かない。 どこで設定", (), ("通知", "設定")),
        ("nul\0led", ("nul", "led"), ()),
        ("lone\ud800surrogate", ("lone?surrogate",), ()),
    ],
)
def test_input_becomes_literal_terms(typed: str, indexed: tuple[str, ...], short: tuple[str, ...]) -> None:
    assert parse_terms(typed) == Terms(indexed, short)


@pytest.mark.parametrize("typed", ["", "   ", "　", '"', '""', "“", "「」", "\n\t\0"])
def test_blank_terms_are_refused(typed: str) -> None:
    with pytest.raises(TermsError, match="blank"):
        parse_terms(typed)


def test_too_many_and_too_long_terms_are_refused() -> None:
    with pytest.raises(TermsError, match="17 search terms; at most 16"):
        parse_terms(" ".join(f"term{number}" for number in range(17)))
    with pytest.raises(TermsError, match="501 characters; at most 500"):
        parse_terms("x" * 501)


@given(st.text())
def test_no_folded_term_contains_the_quote_of_fts5(typed: str) -> None:
    try:
        terms = parse_terms(typed)
    except TermsError:
        return
    assert all('"' not in term and "\0" not in term and term for term in (*terms.indexed, *terms.short))
    assert all(len(term) >= 3 for term in terms.indexed)
    assert all(len(term) < 3 for term in terms.short)
