import shutil
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path

import pytest
from helpdesk_search import index as index_module
from helpdesk_search.errors import IndexUnavailableError, ManualError
from helpdesk_search.index import FILE_NAME, open_index
from helpdesk_search.location import index_directory
from helpdesk_search.manual import fingerprint, read_manual, split_pages
from helpdesk_search.search import find
from helpdesk_search.terms import parse_terms


@pytest.fixture
def manual(helpdesk: Path, tmp_path: Path) -> Path:
    return shutil.copytree(helpdesk / "manual", tmp_path / "manual")


@pytest.fixture
def directory(tmp_path: Path) -> Path:
    directory = tmp_path / "index"
    directory.mkdir()
    return directory


def found(manual: Path, directory: Path, typed: str) -> int:
    with closing(open_index(manual, directory)) as index:
        return len(find(index, parse_terms(typed)))


def test_an_index_is_built_once_and_anew_when_the_manual_changes(manual: Path, directory: Path) -> None:
    assert found(manual, directory, "zyzzyva") == 0
    built = (directory / FILE_NAME).stat()
    assert found(manual, directory, "backup") == 3
    assert (directory / FILE_NAME).stat().st_ino == built.st_ino
    with (manual / "en" / "user-guide.md").open("a", encoding="utf-8") as guide:
        guide.write("\nA zyzzyva is a weevil.\n")
    assert found(manual, directory, "zyzzyva") == 1
    (manual / "en" / "user-guide.md").rename(manual / "en" / "guide.md")
    with closing(open_index(manual, directory)) as index:
        assert find(index, parse_terms("zyzzyva"))[0].file == "en/guide.md"


@pytest.mark.parametrize("content", [b"", b"no database at all, but longer than a header" * 90])
def test_a_damaged_index_is_built_anew(manual: Path, directory: Path, content: bytes) -> None:
    (directory / FILE_NAME).write_bytes(content)
    assert found(manual, directory, "backup") == 3


def test_threads_that_meet_a_missing_index_build_it_once(
    manual: Path, directory: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    builds: list[Path] = []
    make = index_module._make

    def counted_make(new: Path, manual_folder: Path, made_from: str) -> None:
        builds.append(new)
        make(new, manual_folder, made_from)

    monkeypatch.setattr(index_module, "_make", counted_make)
    with ThreadPoolExecutor(8) as pool:
        counts = list(pool.map(lambda _: found(manual, directory, "backup"), range(8)))
    assert counts == [3] * 8
    assert len(builds) == 1


def test_processes_that_meet_a_missing_index_do_not_collide(helpdesk: Path, directory: Path) -> None:
    program = (
        "import sys; from pathlib import Path; from helpdesk_search.index import open_index;"
        "index = open_index(Path('manual'), Path(sys.argv[1]));"
        "sys.exit(index.execute('SELECT count(*) FROM folded').fetchone()[0] < 100)"
    )
    command = [sys.executable, "-c", program, str(directory)]
    processes = [subprocess.Popen(command, cwd=helpdesk) for _ in range(4)]
    assert [process.wait(timeout=60) for process in processes] == [0] * 4
    assert [file.name for file in directory.iterdir()] == [FILE_NAME]


def test_an_index_that_cannot_be_kept_is_a_clear_error(manual: Path, tmp_path: Path) -> None:
    with pytest.raises(IndexUnavailableError, match="could not be built in"):
        open_index(manual, tmp_path / "missing")


def test_a_failed_build_leaves_nothing_behind(manual: Path, directory: Path) -> None:
    (manual / "en" / "user-guide.md").write_bytes(b"caf\xe9")
    with pytest.raises(ManualError, match=r"en/user-guide\.md: byte 3 is not UTF-8"):
        open_index(manual, directory)
    assert list(directory.iterdir()) == []


def test_a_missing_manual_is_named(tmp_path: Path) -> None:
    with pytest.raises(ManualError, match=r"folder 'empty' holds no ja/\*\.md or en/\*\.md"):
        fingerprint(tmp_path / "empty")


def test_pages_are_read_by_their_marks() -> None:
    pages = split_pages("front\n<!-- page 3 -->\nthree\n\n<!-- page 7 -->\nseven\n", "a.md")
    assert [(page.number, page.text) for page in pages] == [(1, "front"), (3, "three"), (7, "seven")]
    with pytest.raises(ManualError, match=r"a\.md: page 2 follows page 2"):
        split_pages("<!-- page 2 -->\nx\n<!-- page 2 -->\ny", "a.md")


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


def test_a_folder_that_cannot_be_written_gives_a_private_temporary_one(tmp_path: Path) -> None:
    folder = tmp_path / "file"
    folder.write_text("not a folder")
    directory = index_directory(folder, {}, {})
    assert directory == index_directory(folder, {}, {})
    assert directory.stat().st_mode & 0o777 == 0o700
    directory.rmdir()


@pytest.mark.parametrize("wish", ["relative/path", "{file}/below"])
def test_a_directory_that_was_chosen_and_cannot_be_used_is_named(tmp_path: Path, wish: str) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(IndexUnavailableError, match="index_directory is '"):
        index_directory(tmp_path, {"index_directory": wish.format(file=tmp_path / "file")}, {})
