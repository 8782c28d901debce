import pytest
from helpdesk_search.errors import TermsError
from helpdesk_search.terms import Terms, parse_terms
from hypothesis import given
from hypothesis import strategies as st


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
