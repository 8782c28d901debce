"""`python -m benchmarks`: three tables of ratios; `python -m benchmarks pauses`: how long one run keeps others waiting.

Nothing here judges a time; README.md says how to read them.
"""

import argparse
import math
import sys
from collections.abc import Callable, Iterator, Sequence
from functools import partial

from benchmarks import given_cases, model_cases
from benchmarks.floor import run_floor
from benchmarks.host import Delays, a_plan_of, all_calls_at_once, one_call_a_round, run_once
from benchmarks.pauses import table
from benchmarks.table import Row, medians, written
from internal.plan_and_reflect.strategy import PLAN_AND_REFLECT

PAUSE_CASES = [*model_cases.CASES, *given_cases.CASES]
MOST_MEGABYTES = 100
LARGEST_PLAN = 8
MOST_ROUNDS = 99  # one more round answers, and `maximum_iterations` ends at 100


def sizes(most: int) -> list[int]:
    """1, 2, 4 and so on."""
    return [size for size in (1, 2, 4, 8) if size <= most]


def subtasks_side_by_side(delays: Delays, most: int, runs: int) -> Iterator[Row]:
    """N subtasks cost about one, since they overlap."""

    def planned(count: int, at_once: int) -> Callable[[], None]:
        params = {"maximum_subtasks": LARGEST_PLAN, "parallel_tool_calls": at_once}
        return partial(run_once, a_plan_of(count), delays, PLAN_AND_REFLECT, params)

    actions = [planned(count, LARGEST_PLAN) for count in sizes(most)]
    one, *_ = times = medians(actions, runs)
    for count, seconds in zip(sizes(most), times, strict=True):
        yield Row(f"subtasks: {count}", seconds, "one subtask", one)
    (queued,) = medians([planned(most, 1)], runs)
    yield Row(f"subtasks: {most}, one tool call at a time", queued, "one subtask", one)


def calls_side_by_side(delays: Delays, most: int, runs: int) -> Iterator[Row]:
    """N tool calls of one turn cost about one."""
    actions = [partial(run_once, all_calls_at_once(count), delays) for count in sizes(most)]
    one, *_ = times = medians(actions, runs)
    for count, seconds in zip(sizes(most), times, strict=True):
        yield Row(f"calls of one turn: {count}", seconds, "one call", one)
    in_turn = partial(run_once, all_calls_at_once(most), delays, params={"parallel_tool_calls": 1})
    (queued,) = medians([in_turn], runs)
    yield Row(f"calls of one turn: {most}, one at a time", queued, "one call", one)


def rounds_against_the_floor(delays: Delays, rounds: int, runs: int) -> Iterator[Row]:
    """What the agent adds to a round, first bare of any waiting, then beside a provider that takes its time."""
    for name, waits in (("no waiting", Delays()), ("a slow host", delays)):
        for count in (0, rounds):
            answers = one_call_a_round(count)
            agent, floor = medians(
                [
                    partial(run_once, answers, waits, params={"maximum_iterations": count + 1}),
                    partial(run_floor, answers, waits),
                ],
                runs,
            )
            added = (agent - floor) / (count + 1) * 1_000
            yield Row(f"tool rounds: {count}, {name}", agent, "bare SDK loop", floor, f"{added:+.2f} ms a model call")


def main(arguments: Sequence[str] | None = None) -> None:
    options = read_options(arguments)
    if options.command == "pauses":
        print_pauses(options)
    else:
        print_ratios(options)


def print_pauses(options: argparse.Namespace) -> None:
    wanted = [case for case in PAUSE_CASES if options.only in case.name]
    if not wanted:
        names = "\n".join(f"  {case.name}" for case in PAUSE_CASES)
        raise SystemExit(
            f"python -m benchmarks pauses: no case has {options.only!r} in its name; the cases are:\n{names}"
        )
    for line in table(wanted, round(options.megabytes * 1_000_000)):
        sys.stdout.write(f"{line}\n")
        sys.stdout.flush()


def print_ratios(options: argparse.Namespace) -> None:
    delays = Delays(model=options.model_delay, tool=options.tool_delay)
    waits = f"model {delays.model * 1_000:g} ms a call, tool {delays.tool * 1_000:g} ms, median of {options.runs} runs"
    tables = {
        f"Subtasks side by side ({waits})": subtasks_side_by_side(delays, options.most, options.runs),
        f"Tool calls side by side ({waits})": calls_side_by_side(delays, options.most, options.runs),
        f"Rounds against the SDK's floor ({waits})": rounds_against_the_floor(delays, options.rounds, options.runs),
    }
    for title, rows in tables.items():
        sys.stdout.write(f"{written(title, list(rows))}\n\n")
        sys.stdout.flush()


def whole_number(most: int | None = None) -> Callable[[str], int]:
    """A reader of an option; its error is what argparse adds to the option's name."""
    allowed = "1 or more" if most is None else f"1 to {most}"

    def read(given: str) -> int:
        try:
            number = int(given)
        except ValueError:
            number = 0
        if number < 1 or (most is not None and number > most):
            raise argparse.ArgumentTypeError(f"{given!r} is not allowed; give a whole number, {allowed}")
        return number

    return read


def seconds(given: str) -> float:
    try:
        number = float(given)
    except ValueError:
        number = math.nan
    if not 0 <= number < math.inf:
        raise argparse.ArgumentTypeError(f"{given!r} is not allowed; give a number of seconds, 0 or more")
    return number


def megabytes(given: str) -> float:
    try:
        number = float(given)
    except ValueError:
        number = math.nan
    if not 0 < number <= MOST_MEGABYTES:
        raise argparse.ArgumentTypeError(
            f"{given!r} is not allowed; give a size in MB, above 0, up to {MOST_MEGABYTES}"
        )
    return number


def read_options(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description="What the agent costs, as ratios.")
    parser.add_argument("--runs", type=whole_number(), default=5, help="how often each case is timed (default 5)")
    parser.add_argument("--most", type=int, default=8, choices=(1, 2, 4, 8), help="most subtasks and calls (default 8)")
    parser.add_argument(
        "--rounds", type=whole_number(MOST_ROUNDS), default=20, help="tool rounds against the floor (default 20)"
    )
    parser.add_argument("--model-delay", type=seconds, default=0.02, help="seconds of a model call (default 0.02)")
    parser.add_argument("--tool-delay", type=seconds, default=0.1, help="seconds of a tool call (default 0.1)")
    commands = parser.add_subparsers(dest="command", title="commands")
    pauses = commands.add_parser("pauses", help="how long one run keeps the others waiting, by what it takes in")
    pauses.add_argument("--megabytes", type=megabytes, default=2, help="what a run takes in (default 2)")
    pauses.add_argument("--only", default="", metavar="TEXT", help="only the cases whose name contains this text")
    return parser.parse_args(arguments)


if __name__ == "__main__":
    main()
