"""Installs packages in Dify's plugin daemon, and runs many sessions at once.

The scenarios import the SDK, which makes sockets cooperative, so that all sessions run in this process.
"""

import argparse
import sys
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from os import getloadavg
from pathlib import Path
from time import perf_counter, process_time

from gevent.pywsgi import WSGIServer

from benchmarks.scale.daemon import STRATEGIES, Daemon
from benchmarks.scale.inner_api import InnerApi, Pace, text_of
from benchmarks.scale.load import Ended, asking, at_once, percentile, timed
from benchmarks.scale.processes import Watched, watching

INNER_API_PORT = 5001
HIGH = 0.95


@dataclass(frozen=True)
class Round:
    """A number of simultaneous sessions of one strategy, and their results."""

    strategy: str
    ended: Sequence[Ended]
    answer: str
    """The text that a user should read."""
    ran: Counter[str]
    """The number of times that the tool ran, by question."""
    watched: Watched = field(default_factory=Watched)

    @property
    def whole(self) -> list[Ended]:
        """The runs whose user received the complete answer."""
        return [run for run in self.ended if not run.error and self.answer.strip() in run.text]

    def lines(self) -> Iterable[str]:
        """Yield the lines of a report on the round."""
        sessions = len(self.ended)
        words = [run.first_word for run in self.whole if run.first_word is not None]
        took = [run.whole for run in self.whole]
        twice = sum(count > 1 for count in self.ran.values())
        yield f"{self.strategy}, {sessions} at once: {len(took)} whole, {twice} ran the tool twice"
        if words:
            yield f"  first word {percentile(words, 0.5):.2f} s, at 95 % {percentile(words, HIGH):.2f} s"
            yield f"  whole run {percentile(took, 0.5):.2f} s, at 95 % {percentile(took, HIGH):.2f} s"
        if processes := self.watched.line(sessions):
            yield f"  {processes}"
        for error, count in Counter(run.error for run in self.ended if run.error).items():
            yield f"  {count} ended with: {error}"


def sessions(options: argparse.Namespace, api: InnerApi, daemons: Sequence[Daemon]) -> None:
    """Run each number of sessions with each strategy in turn."""
    answer = text_of(api.pace)
    for repeat in range(options.repeats):
        for count in options.at_once:
            for name in options.strategy:
                api.ran.clear()
                questions = [f"question {repeat}.{count}.{number}" for number in range(count)]
                began = perf_counter()
                cpu = process_time()
                with watching(options.pid) as watched:
                    ended = at_once(daemons, STRATEGIES[name], questions, options.spread)
                driver = (process_time() - cpu) / (perf_counter() - began)
                report(Round(name, ended, answer, Counter(api.ran), watched).lines())
                report([f"  this program took {driver:.0%} of a core; load {getloadavg()[0]:.1f}"])


def approval(_options: argparse.Namespace, api: InnerApi, daemons: Sequence[Daemon]) -> None:
    """Ask the question at the first daemon, and approve the call at the last one."""
    setup = {"approval_required": "search", "extra_outputs": "state"}
    question = timed(daemons[0], STRATEGIES["ours"], asking("book the hall", **setup))
    report([question.text, f"the tool ran {api.ran.total()} times"])
    answer = timed(daemons[-1], STRATEGIES["ours"], asking("yes", approval="yes", state=question.state, **setup))
    report([answer.text or answer.error, f"the tool ran {api.ran.total()} times"])


def install(options: argparse.Namespace, _api: InnerApi, daemons: Sequence[Daemon]) -> None:
    """Install packages, or replace an older version with one."""
    if options.upgrade:
        daemons[0].upgrade(options.package[0])
    else:
        daemons[0].install(options.package)


def report(lines: Iterable[str]) -> None:
    sys.stdout.writelines(f"{line}\n" for line in lines)
    sys.stdout.flush()


def read_options(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.scale", description=__doc__)
    parser.add_argument("--daemon", action="append", required=True, metavar="URL", help="repeat it for several")
    parser.add_argument("--key", required=True, help="SERVER_KEY of the daemons")
    parser.add_argument("--port", type=int, default=INNER_API_PORT, help="where DIFY_INNER_API_URL points (5001)")
    parser.add_argument("--wait", type=float, default=Pace.before_text, help="seconds before an answer begins (0.2)")
    parser.add_argument("--between", type=float, default=Pace.between_chunks, help="seconds between chunks (0.02)")
    commands = parser.add_subparsers(required=True)
    command = commands.add_parser("install", help="install packages")
    command.add_argument("package", type=Path, nargs="+")
    command.add_argument("--upgrade", action="store_true", help="in the place of an older version")
    command.set_defaults(run=install)
    command = commands.add_parser("sessions", help="run many sessions at once")
    command.add_argument("--strategy", nargs="+", choices=STRATEGIES, default=list(STRATEGIES))
    command.add_argument("--at-once", type=int, nargs="+", default=[1, 10, 50, 100], metavar="N")
    command.add_argument("--repeats", type=int, default=1)
    command.add_argument("--spread", type=float, default=1.0, help="seconds over which the runs begin (1)")
    command.add_argument("--pid", type=int, action="append", default=[], help="of a daemon: shows what it takes")
    command.set_defaults(run=sessions)
    command = commands.add_parser("approval", help="ask at the first daemon, approve at the last")
    command.set_defaults(run=approval)
    return parser.parse_args(arguments)


def main(arguments: Sequence[str] | None = None) -> None:
    options = read_options(arguments)
    api = InnerApi(Pace(before_text=options.wait, between_chunks=options.between))
    server = WSGIServer(("127.0.0.1", options.port), api, log=None)
    server.start()
    options.run(options, api, [Daemon(url, options.key) for url in options.daemon])
    server.stop()


if __name__ == "__main__":
    main()
