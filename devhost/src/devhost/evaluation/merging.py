"""Merges the results of the shards of an evaluation into one file."""

from collections.abc import Sequence
from itertools import chain
from pathlib import Path

from devhost.errors import SuiteError
from devhost.evaluation.results import PREVIOUS, ResultsHeader, kept_beside, written
from devhost.evaluation.shard import Shard
from devhost.evaluation.table import Evaluation, read_evaluation
from devhost.text import worded
from devhost.words import counted

OF_A_SHARD = {"shard", "began"}
"""The keys of a header that differ between shards."""


def merge(files: Sequence[Path], into: Path, last: Evaluation | None = None) -> Evaluation:
    """Writes the whole evaluation into a file and returns it.

    Raises SuiteError if a shard is missing, given twice, or of another evaluation. `last` is the earlier evaluation in
    the file `into`, which is kept beside it.
    """
    if any(file.exists() and into.exists() and file.samefile(into) for file in files):
        raise SuiteError(f"--results {into} is one of the shards: name another file")
    parts = [read_evaluation(file) for file in files]
    _refuse(files, parts)
    if last is not None:
        into.replace(kept_beside(into, PREVIOUS))
    first = parts[0].header
    began = min(part.header.began for part in parts)
    header = first.model_copy(update={"shard": "", "began": began})
    runs = {run.key: (part, run) for part in parts for run in part.runs}
    # The results are written in the order of the plan and not in the order in which the runs ended.
    order = {case.name: number for number, case in enumerate(header.cases)}
    columns = {column: number for number, column in enumerate(header.columns)}
    keys = sorted(runs, key=lambda key: (order[key[0]], columns[key[1]], key[2]))
    results = (part.reader.result(run) for part, run in map(runs.__getitem__, keys))
    with worded(lambda why: SuiteError(f"{into} cannot be written: {why}")), into.open("wb") as file:
        file.writelines(map(written, chain((header,), results)))
    return read_evaluation(into)


def _refuse(files: Sequence[Path], parts: Sequence[Evaluation]) -> None:
    found: dict[int, Path] = {}
    first = parts[0].header
    count = 0
    for file, part in zip(files, parts, strict=True):
        if not part.header.shard:
            raise SuiteError(f"{file} is not a shard: it has a whole evaluation, made without --shard")
        shard = Shard.read(part.header.shard)
        count = count or shard.of
        if shard.of != count:
            raise SuiteError(f"{file} is shard {shard}, and {files[0]} is {first.shard}: the totals must be equal")
        if _same(part.header) != _same(first):
            what = "cases, scripts, columns or options differ"
            raise SuiteError(f"{file} and {files[0]} belong to different evaluations: {what}")
        if shard.number in found:
            raise SuiteError(f"shard {shard} is given twice: {found[shard.number]} and {file}")
        if not part.is_finished:
            how_far = f"{len(part.runs)} of {counted(part.header.runs_here, 'run')} have a result"
            raise SuiteError(f"{file} is not finished: {how_far}; to continue, run its command with --shard {shard}")
        found[shard.number] = file
    missing = [f"{number}/{count}" for number in range(1, count + 1) if number not in found]
    if missing:
        raise SuiteError(f"the {counted(len(missing), 'shard')} {', '.join(missing)} of {count} are missing")


def _same(header: ResultsHeader) -> ResultsHeader:
    """Returns the part of a header that is the same in all shards of an evaluation."""
    return header.model_copy(update=dict.fromkeys(OF_A_SHARD, ""))
