"""`python -m tests.console.flow_trace FILE`: the trace of two turns of a flow with an agent, an error and a branch.

It is a program of its own, because what it imports imports the SDK.
"""

import sys
from dataclasses import replace
from pathlib import Path

from devhost.trace.flow import FlowEnded
from test_flow_view import AGENT, END, LONG, START, ran, told


def main() -> None:
    agent = replace(AGENT, data={"error_strategy": "fail-branch"})
    failed = [*ran("1", START), *ran("3", agent, status="exception", error="no such key", retries=("slow down",))]
    told(
        [*ran("1", START), *ran("2", AGENT), END],
        [*failed, FlowEnded("partial-succeeded", {"answer": f"# Sorry\n\n{LONG}"})],
        trace=Path(sys.argv[1]),
    )


if __name__ == "__main__":
    main()
