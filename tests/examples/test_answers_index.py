"""Documents as the index of examples/answers knows them: passages, terms and scores."""

from pathlib import Path

import pytest
from answering.index.folder import UnreadableError, markdown_files
from answering.index.markdown import SIZE, read_markdown
from answering.index.scoring import Posting, scores
from answering.index.terms import terms
from hypothesis import given
from hypothesis import strategies as st


def test_a_document_is_cut_at_its_sections() -> None:
    blocks = ["# Tools", "Intro.", "## Loans", "- 7 days", "Once more.", "### Late", "A fee.", "# Other", "End."]

    document = read_markdown("---\ntitle: x\n---\n" + "\n\n".join(blocks), "name")

    assert document.title == "Tools"
    assert document.passages == (
        "Tools\n\nIntro.",
        "Tools › Loans\n\n- 7 days\n\nOnce more.",
        "Tools › Loans › Late\n\nA fee.",
        "Other\n\nEnd.",
    )


def test_a_long_section_is_cut_between_its_paragraphs_and_then_between_sentences() -> None:
    paragraph = "It is so. " * 50
    long = "これは長い文です。" * 200

    passages = read_markdown(f"# A\n\n{paragraph}\n\n{paragraph}\n\n{long}", "name").passages

    assert [passage.startswith("A\n\n") for passage in passages] == [True] * len(passages)
    assert passages[0] == f"A\n\n{paragraph.strip()}"
    assert all(passage.endswith(("so.", "です。")) for passage in passages)
    assert all(len(passage) <= SIZE + len("A\n\n") for passage in passages)
    assert "".join(passages[2:]).replace("A\n\n", "") == long


@given(st.text(st.sampled_from("a。.\n`>|日* ")))
def test_no_text_below_a_heading_is_lost(text: str) -> None:
    passages = read_markdown(f"# A\n\n{text}", "name").passages

    assert sum(passage.count("日") for passage in passages) == text.count("日")


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("Drill", "drills"),
        ("ＤＲＩＬＬ", "drill"),
        ("ﾄﾞﾘﾙ", "ドリル"),
        ("tool library", "library_tool"),
        ("延滞料金", "延滞料"),
    ],
)
def test_other_spellings_share_terms(one: str, other: str) -> None:
    assert terms(one).keys() & terms(other).keys()


@pytest.mark.parametrize("text", ["", " ", "…!?", "What is the for you", "🔧"])
def test_texts_without_meaning_have_no_terms(text: str) -> None:
    assert terms(text) == {}


def scored(question: str, *texts: str) -> dict[str, float]:
    counted = {str(number): terms(text) for number, text in enumerate(texts)}
    wanted = terms(question)
    postings = [
        Posting(term, passage, count[term], count.total())
        for term in sorted(wanted)
        for passage, count in counted.items()
        if term in count
    ]
    average = sum(count.total() for count in counted.values()) / len(texts)
    return scores(wanted, postings, passages=len(texts), average_length=average)


def test_a_passage_with_the_rare_words_is_the_best() -> None:
    found = scored("drill loan", "a loan of a drill", "a loan of a saw", "a loan of a lathe", "opening hours")

    assert sorted(found, key=lambda passage: -found[passage]) == ["0", "1", "2"]
    assert found["0"] > 2 * found["1"] > 0


words = st.lists(st.sampled_from(["drill", "saw", "loan", "料金", "工具", "です", "ドリル", "x"]), min_size=1).map(
    " ".join
)


@given(words, st.lists(words, min_size=1))
def test_every_score_is_between_0_and_1(question: str, texts: list[str]) -> None:
    assert all(0 < score <= 1 for score in scored(question, *texts).values())


def test_a_folder_is_read_with_its_subfolders(tmp_path: Path) -> None:
    (tmp_path / "ja").mkdir()
    (tmp_path / ".git").mkdir()
    (tmp_path / "b.md").write_text("\ufeff# B\0", encoding="utf-8")
    (tmp_path / "ja" / "a.md").write_text("# 工具", encoding="utf-8")
    (tmp_path / ".git" / "c.md").write_text("# C")
    (tmp_path / "d.txt").write_text("D")

    files = list(markdown_files(tmp_path))

    assert [(file.id, file.text) for file in files] == [("b.md", "# B"), ("ja/a.md", "# 工具")]
    assert files[0].digest != files[1].digest


def test_what_cannot_be_read_is_named(tmp_path: Path) -> None:
    (tmp_path / "old.md").write_bytes("é".encode("latin-1"))

    with pytest.raises(UnreadableError, match=r"old\.md is not text in UTF-8"):
        list(markdown_files(tmp_path))
    with pytest.raises(UnreadableError, match="nowhere is not a folder"):
        list(markdown_files(tmp_path / "nowhere"))
