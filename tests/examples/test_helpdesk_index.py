import shutil
import sqlite3
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from threading import Barrier

import pytest
from helpdesk_search import index as index_module
from helpdesk_search.errors import IndexUnavailableError, ManualError
from helpdesk_search.index import FILE_NAME, index_of_manual
from helpdesk_search.location import index_directory
from helpdesk_search.manual import fingerprint, read_manual, split_pages
from helpdesk_search.search import find
from helpdesk_search.terms import parse_terms

from .damage import damage_page, pages


@pytest.fixture
def manual(helpdesk: Path, tmp_path: Path) -> Path:
    return shutil.copytree(helpdesk / "manual", tmp_path / "manual")


@pytest.fixture
def directory(tmp_path: Path) -> Path:
    directory = tmp_path / "index"
    directory.mkdir()
    return directory


def found(manual: Path, directory: Path, typed: str) -> int:
    return len(index_of_manual(manual, directory).search(lambda opened: find(opened, parse_terms(typed))))


def test_an_index_is_built_once_and_again_when_the_manual_changes(manual: Path, directory: Path) -> None:
    assert found(manual, directory, "zyzzyva") == 0
    built = (directory / FILE_NAME).stat()
    assert found(manual, directory, "backup") == 3
    assert (directory / FILE_NAME).stat().st_ino == built.st_ino
    with (manual / "en" / "user-guide.md").open("a", encoding="utf-8") as guide:
        guide.write("\nA zyzzyva is a weevil.\n")
    assert found(manual, directory, "zyzzyva") == 1
    (manual / "en" / "user-guide.md").rename(manual / "en" / "guide.md")
    with closing(index_of_manual(manual, directory).open()) as index:
        assert find(index, parse_terms("zyzzyva"))[0].file == "en/guide.md"


@pytest.mark.parametrize("content", [b"", b"no database at all, but longer than a header" * 90])
def test_a_damaged_index_is_rebuilt(manual: Path, directory: Path, content: bytes) -> None:
    (directory / FILE_NAME).write_bytes(content)
    assert found(manual, directory, "backup") == 3


@pytest.fixture
def builds(monkeypatch: pytest.MonkeyPatch) -> list[Path]:
    """The paths of the indexes that were built, one for each build."""
    builds: list[Path] = []
    make = index_module._make

    def counted_make(new: Path, manual_folder: Path, made_from: str) -> None:
        builds.append(new)
        make(new, manual_folder, made_from)

    monkeypatch.setattr(index_module, "_make", counted_make)
    return builds


def test_whichever_page_is_damaged_searches_find_the_same(manual: Path, directory: Path, builds: list[Path]) -> None:
    file = directory / FILE_NAME
    before = found(manual, directory, "backup"), found(manual, directory, "zz")
    whole = file.read_bytes()
    for page in range(0, pages(file), 4):
        file.write_bytes(whole)
        damage_page(file, page)
        for _ in range(2):
            assert (found(manual, directory, "backup"), found(manual, directory, "zz")) == before
    assert 5 < len(builds) <= 1 + len(range(0, pages(file), 4))  # one rebuild for each damage that a search found
    assert [file.name for file in directory.iterdir()] == [FILE_NAME]


def test_an_index_with_damaged_text_is_rebuilt(manual: Path, directory: Path) -> None:
    assert found(manual, directory, "authenticator") == 3
    content = (directory / FILE_NAME).read_bytes()
    (directory / FILE_NAME).write_bytes(content.replace(b"authenticator", b"\xffuthenticator"))
    assert found(manual, directory, "authenticator") == 3


def test_an_index_that_fails_after_a_rebuild_is_a_clear_error(
    manual: Path, directory: Path, builds: list[Path]
) -> None:
    index = index_of_manual(manual, directory)
    index.open().close()
    with pytest.raises(IndexUnavailableError, match="was rebuilt and still cannot be searched: no such column: x"):
        index.search(lambda opened: opened.execute("SELECT x"))
    assert len(builds) == 2


def test_a_damaged_index_that_cannot_be_replaced_is_a_clear_error(
    manual: Path, directory: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    index = index_of_manual(manual, directory)
    index.open().close()
    damage_page(index.path, 2)  # the first page with a chunk

    def refuse(**_: object) -> None:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr("tempfile.mkstemp", refuse)
    with pytest.raises(IndexUnavailableError, match=r"could not be built in .* It needs a writable directory"):
        index.search(lambda opened: opened.execute("SELECT * FROM chunk").fetchall())
    assert index.path.is_file()


@pytest.mark.parametrize("when", ["before it is opened", "while it is searched"])
def test_a_locked_index_is_not_rebuilt(manual: Path, directory: Path, builds: list[Path], when: str) -> None:
    index = index_of_manual(manual, directory)
    index.open().close()
    impatient = replace(index, connect=lambda path: sqlite3.connect(path, timeout=0))
    with closing(sqlite3.connect(index.path, isolation_level=None)) as other:

        def locked(opened: sqlite3.Connection) -> int:
            other.execute("BEGIN EXCLUSIVE")
            return len(find(opened, parse_terms("backup")))

        if when == "before it is opened":
            other.execute("BEGIN EXCLUSIVE")
        with pytest.raises(IndexUnavailableError, match="cannot be searched now"):
            impatient.search(locked)
        other.execute("ROLLBACK")
    assert found(manual, directory, "backup") == 3
    assert len(builds) == 1


def test_threads_that_find_the_index_missing_build_it_once(manual: Path, directory: Path, builds: list[Path]) -> None:
    with ThreadPoolExecutor(8) as pool:
        counts = list(pool.map(lambda _: found(manual, directory, "backup"), range(8)))
    assert counts == [3] * 8
    assert len(builds) == 1


def test_threads_that_find_the_index_damaged_build_it_once(manual: Path, directory: Path, builds: list[Path]) -> None:
    index = index_of_manual(manual, directory)
    index.open().close()
    damage_page(index.path, 2)
    all_opened = Barrier(8)

    def search(_: int) -> int:
        waited: list[int] = []

        def once_all_have_opened(opened: sqlite3.Connection) -> int:
            if not waited:
                waited.append(all_opened.wait(timeout=300))
            return len(opened.execute("SELECT * FROM chunk").fetchall())

        return index.search(once_all_have_opened)

    with ThreadPoolExecutor(8) as pool:
        counts = list(pool.map(search, range(8)))
    assert len(set(counts)) == 1
    assert len(builds) == 2


def test_processes_that_find_the_index_missing_do_not_collide(helpdesk: Path, directory: Path) -> None:
    program = (
        "import sys; from pathlib import Path; from helpdesk_search.index import index_of_manual;"
        "index = index_of_manual(Path('manual'), Path(sys.argv[1])).open();"
        "sys.exit(index.execute('SELECT count(*) FROM folded').fetchone()[0] < 100)"
    )
    command = [sys.executable, "-c", program, str(directory)]
    processes = [subprocess.Popen(command, cwd=helpdesk) for _ in range(4)]
    assert [process.wait(timeout=300) for process in processes] == [0] * 4
    assert [file.name for file in directory.iterdir()] == [FILE_NAME]


def test_an_index_that_cannot_be_stored_is_a_clear_error(manual: Path, tmp_path: Path) -> None:
    with pytest.raises(IndexUnavailableError, match="could not be built in"):
        index_of_manual(manual, tmp_path / "missing").open()


def test_a_failed_build_leaves_nothing_behind(manual: Path, directory: Path) -> None:
    (manual / "en" / "user-guide.md").write_bytes(b"caf\xe9")
    with pytest.raises(ManualError, match=r"en/user-guide\.md: byte 3 is not UTF-8"):
        index_of_manual(manual, directory).open()
    assert list(directory.iterdir()) == []


def test_a_missing_manual_is_named(tmp_path: Path) -> None:
    with pytest.raises(ManualError, match=r"folder 'empty' contains neither ja/\*\.md nor en/\*\.md"):
        fingerprint(tmp_path / "empty")


def test_pages_are_read_by_their_marks() -> None:
    pages = split_pages("front\n<!-- page 3 -->\nthree\n\n<!-- page 7 -->\nseven\n", "a.md")
    assert [(page.number, page.text) for page in pages] == [(1, "front"), (3, "three"), (7, "seven")]
    with pytest.raises(ManualError, match=r"a\.md: page 2 follows page 2"):
        split_pages("<!-- page 2 -->\nx\n<!-- page 2 -->\ny", "a.md")


def test_a_byte_order_mark_is_not_part_of_the_manual(tmp_path: Path) -> None:
    (tmp_path / "en").mkdir()
    (tmp_path / "en" / "a.md").write_text("<!-- page 4 -->\n# A\n\nfour", encoding="utf-8-sig")
    (tmp_path / "en" / "b.md").write_text("# B\n\none", encoding="utf-8-sig")
    first, second = read_manual(tmp_path)
    assert (first.title, [(page.number, page.text) for page in first.pages]) == ("A", [(4, "# A\n\nfour")])
    assert (second.title, [(page.number, page.text) for page in second.pages]) == ("B", [(1, "# B\n\none")])


def test_both_languages_have_the_same_files_and_pages(helpdesk: Path) -> None:
    pages = {document.file: [page.number for page in document.pages] for document in read_manual(helpdesk / "manual")}
    assert "en/desktop-sync-guide.pdf" in pages
    english = {file.removeprefix("en/"): numbers for file, numbers in pages.items() if file.startswith("en/")}
    japanese = {file.removeprefix("ja/"): numbers for file, numbers in pages.items() if file.startswith("ja/")}
    assert english == japanese
    assert sum(len(numbers) for numbers in english.values()) == 17


def test_the_credential_wins_over_the_environment_and_both_over_the_plugins_folder(tmp_path: Path) -> None:
    named, from_environment = tmp_path / "named", tmp_path / "environment"
    environment = {"HELPDESK_INDEX_DIRECTORY": str(from_environment)}
    assert index_directory(tmp_path, {"index_directory": str(named)}, environment) == named
    assert index_directory(tmp_path, {"index_directory": " "}, environment) == from_environment
    assert index_directory(tmp_path, {}, {}) == tmp_path / "data"
    assert all(directory.is_dir() for directory in (named, from_environment, tmp_path / "data"))


def test_without_a_writable_folder_the_index_is_in_a_private_temporary_one(tmp_path: Path) -> None:
    folder = tmp_path / "file"
    folder.write_text("not a folder")
    directory = index_directory(folder, {}, {})
    assert directory == index_directory(folder, {}, {})
    assert directory.stat().st_mode & 0o777 == 0o700
    directory.rmdir()


@pytest.mark.parametrize("wish", ["relative/path", "{file}/below"])
def test_a_chosen_directory_that_cannot_be_used_is_named(tmp_path: Path, wish: str) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(IndexUnavailableError, match="index_directory is '"):
        index_directory(tmp_path, {"index_directory": wish.format(file=tmp_path / "file")}, {})
