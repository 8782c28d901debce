from helpdesk_search.chunks import CHUNK_SIZE, OVERLAP, chunk_document, chunk_spans
from helpdesk_search.manual import Document, Page
from hypothesis import given
from hypothesis import strategies as st

# Every kind of border, blank lines, headings, and stretches without any border that are longer than a chunk.
pieces = st.sampled_from(
    ["word ", "文。", "End. ", "\n", "\n\n", "\n \n", "## Heading\n\n", "x" * 120, "字" * 310, " " * 40]
)
texts = st.one_of(st.text(max_size=1000), st.lists(pieces, max_size=40).map("".join))


def document(*pages: str) -> Document:
    return Document("en", "en/a.md", "Title", tuple(Page(number, text) for number, text in enumerate(pages, start=1)))


@given(texts)
def test_spans_cover_every_character_and_overlap_by_twenty(text: str) -> None:
    spans = chunk_spans(text)
    covered = 0
    for start, end in spans:
        assert start == max(covered - OVERLAP, 0)
        assert covered < end <= start + CHUNK_SIZE
        covered = end
    assert covered == len(text)


@given(st.lists(texts, max_size=4))
def test_page_and_start_locate_the_text_of_a_chunk(pages: list[str]) -> None:
    covered = [0] * len(pages)
    for chunk in chunk_document(document(*pages)):
        page = pages[chunk.page - 1]
        assert 0 < len(chunk.text) <= CHUNK_SIZE
        assert page[chunk.start : chunk.start + len(chunk.text)] == chunk.text
        assert chunk.start <= covered[chunk.page - 1]
        covered[chunk.page - 1] = chunk.start + len(chunk.text)
    assert covered == [len(page) for page in pages]


def test_a_chunk_ends_at_a_paragraph_rather_than_a_sentence() -> None:
    first = "A sentence. " * 12 + "\n\n"
    second = "Another one. " * 18
    assert chunk_spans(first + second)[0] == (0, len(first))


def test_a_long_paragraph_is_cut_at_a_sentence_and_a_long_sentence_at_a_blank() -> None:
    sentences = "これは文です。" * 60
    assert sentences[: chunk_spans(sentences)[0][1]].endswith("。")
    words = "letters " * 60
    assert words[: chunk_spans(words)[0][1]].endswith("letters ")


def test_a_heading_stays_with_its_paragraph() -> None:
    before = "a" * 200 + "\n\n"
    heading = "## Heading\n\n"
    after = "b" * 200
    assert chunk_spans(before + heading + after)[0] == (0, len(before))


def test_chunks_have_the_headings_above_them_across_pages() -> None:
    section = "# Title\n\n## Backup\n\n### Mail\n\n" + "m" * 290
    headings = {
        chunk.page: chunk.heading for chunk in chunk_document(document(section, "Still about mail.", "## Next\n\nx"))
    }
    assert headings == {1: "Backup › Mail", 2: "Backup › Mail", 3: "Next"}


def test_a_chunk_without_a_heading_has_the_title() -> None:
    assert [chunk.heading for chunk in chunk_document(document("Without any heading."))] == ["Title"]
