from pathlib import Path
from sqlite3 import Connection

import pytest
from helpdesk_search.errors import TermsError
from helpdesk_search.index import index_of_manual
from helpdesk_search.search import checked_language, find
from helpdesk_search.terms import parse_terms
from hypothesis import given
from hypothesis import strategies as st
from meaning.folding import fold

# Words of the manual, everything that FTS5 or LIKE would take as syntax, and anything else.
typed_terms = st.lists(
    st.one_of(
        st.sampled_from(["backup", "共有", "二段階認証", "API", "log", "リ", "of"]),
        st.sampled_from(
            ['"', "*", "NEAR(", ")", "OR", "AND NOT", "heading:", "^", "%", "_", "\\", "'", "{", "-", "+", "\0"]
        ),
        st.text(max_size=8),
    ),
    max_size=5,
)


@pytest.fixture
def small_index(tmp_path: Path) -> Connection:
    folder = tmp_path / "manual" / "en"
    folder.mkdir(parents=True)
    (folder / "a.md").write_text(
        "# A\n\n<!-- page 2 -->\n\n100% sure, snake_case, C:\\temp\n\n<!-- page 3 -->\n\nNo signs. zz zz zz\n\n"
        '<!-- page 5 -->\n\nzz once, and\nbroken over lines; quote " and NEAR(here)\n',
        encoding="utf-8",
    )
    return index_of_manual(tmp_path / "manual")


@pytest.mark.parametrize(
    ("typed", "pages"),
    [
        ("0%", [2]),
        ("_", [2]),
        ("zz", [3, 5]),
        ("zz once", [5, 3]),
        ('"broken over lines"', [5]),
        ("100*", []),
        ("sure OR zz", [3, 5, 2]),
        ("sure nowhere once, never", [2, 5]),
    ],
)
def test_special_characters_are_literal_and_pages_are_right(
    small_index: Connection, typed: str, pages: list[int]
) -> None:
    hits = find(small_index, parse_terms(typed))
    assert [hit.page for hit in hits] == pages
    assert {hit.file for hit in hits} <= {"en/a.md"}


@given(typed_terms)
def test_any_input_finds_only_chunks_with_a_term(manual_index: Connection, words: list[str]) -> None:
    try:
        terms = parse_terms(" ".join(words))
    except TermsError:
        return
    hits = find(manual_index, terms)
    assert len(hits) <= 3
    assert [hit.score for hit in hits] == sorted((hit.score for hit in hits), reverse=True)
    for hit in hits:
        assert 0 < hit.score < 1
        held = f"{fold(hit.heading)}\n{fold(hit.text)}"
        assert any(term in held for term in terms.all)


@given(st.data())
def test_any_text_of_a_chunk_is_found(manual_index: Connection, data: st.DataObject) -> None:
    texts = [fold(text) for (text,) in manual_index.execute("SELECT text FROM chunk")]
    text = data.draw(st.sampled_from(texts))
    start = data.draw(st.integers(0, len(text) - 1))
    phrase = text[start : start + data.draw(st.integers(1, 40))].replace('"', " ").strip()
    if not phrase or '"' in text[start : start + len(phrase) + 1]:
        return
    assert find(manual_index, parse_terms(f'"{phrase}"'), best=len(texts))


@pytest.mark.parametrize(
    ("typed", "language", "file", "page"),
    [
        ("authenticator two-factor", "all", "en/security-guide.md", 1),
        ("バックアップ通知 届かない", "ja", "ja/admin-guide.md", 4),
        ("Retry-After", "ja", "ja/admin-guide.md", 5),
        ("How do I restore a deleted file?", "all", "en/user-guide.md", 3),
        ("バックアップ通知が届かないのはなぜですか？", "all", "ja/admin-guide.md", 4),
    ],
)
def test_the_manual_answers_on_the_right_page(
    manual_index: Connection, typed: str, language: str, file: str, page: int
) -> None:
    best = find(manual_index, parse_terms(typed), language)[0]
    assert (best.file, best.page) == (file, page)


def test_passages_with_most_terms_come_first_and_those_with_few_are_left_out(small_index: Connection) -> None:
    assert [hit.page for hit in find(small_index, parse_terms("once lines quote snake_case"))] == [5]


def test_a_language_is_searched_alone(manual_index: Connection) -> None:
    terms = parse_terms("Retry-After")
    assert {hit.language for hit in find(manual_index, terms)} == {"ja", "en"}
    assert {hit.language for hit in find(manual_index, terms, "en")} == {"en"}


def test_an_unknown_language_is_refused() -> None:
    assert [checked_language(given) for given in (None, "", " ", "all", "ja")] == ["all", "all", "all", "all", "ja"]
    with pytest.raises(TermsError, match="'fr' is unknown; use one of all, ja, en"):
        checked_language("fr")
