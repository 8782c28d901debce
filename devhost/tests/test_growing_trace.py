"""A trace that is read while it is written is, at each moment, what a reader of the whole file would see."""

from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import given
from hypothesis import strategies as st

from devhost.errors import TraceError
from devhost.trace.lines import GrowingTrace, read_trace
from support.tracing import tracing


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    file = tmp_path_factory.mktemp("growing") / "run.jsonl"
    with tracing(file) as writer:
        for number in range(3):
            writer.notice(f"Line {number}: ü — 日本語")
            writer.remark("It costs nothing.")
    return file.read_bytes()


@given(data=st.data())
def test_it_reads_what_is_there_wherever_it_is_cut(whole: bytes, data: st.DataObject) -> None:
    cuts = sorted(data.draw(st.lists(st.integers(0, len(whole)), max_size=6)))
    with TemporaryDirectory() as folder:
        file = Path(folder) / "run.jsonl"
        growing = GrowingTrace(file)
        for cut in [*cuts, len(whole)]:
            file.write_bytes(whole[:cut])
            trace = growing.read()
            complete = whole[:cut].rpartition(b"\n")[0]
            if not complete:
                assert trace is None
            else:
                reference = file.with_name("complete.jsonl")
                reference.write_bytes(complete + b"\n")
                assert trace is not None
                assert (trace.header, trace.lines) == (read_trace(reference).header, read_trace(reference).lines)
        assert growing.read() is growing.read()


def test_a_shorter_file_is_another_trace(whole: bytes, tmp_path: Path) -> None:
    file = tmp_path / "run.jsonl"
    file.write_bytes(whole)
    growing = GrowingTrace(file)
    assert growing.read() is not None

    file.write_bytes(whole[: whole.index(b"\n") + 1])

    trace = growing.read()
    assert trace is not None
    assert trace.lines == ()
    file.unlink()
    assert growing.read() is None


def test_a_line_that_no_trace_has_is_named(whole: bytes, tmp_path: Path) -> None:
    file = tmp_path / "run.jsonl"
    file.write_bytes(whole + b'{"at": 1, "event": "unheard"}\n')

    with pytest.raises(TraceError, match="line 8"):
        GrowingTrace(file).read()
