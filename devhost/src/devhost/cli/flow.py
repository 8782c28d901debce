"""`devhost flow`: a whole chatflow or workflow, on Dify's own engine."""

from typing import Any

import click

from devhost.case_options import CaseOptions
from devhost.cli.run import CHAT_GROUPS, RUN_GROUPS, play, talk
from devhost.options import command
from devhost.words import examples


class FlowGroup(click.Group):
    """`devhost flow FILE` is short for `devhost flow run FILE`; the command's name may stand after options."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        if args and args[0] not in {*self.commands, *ctx.help_option_names}:
            behind = (at for at, name in enumerate(args) if name in self.commands and args[at - 1][:1] != "-")
            # What stands after an option may be its value; after a flow's file comes no command.
            at = None
            if args[0].startswith("-"):
                at = next(behind, None)
            if at is None:
                args = ["run", *args]
            else:
                args = [args[at], *args[:at], *args[at + 1 :]]
        return super().parse_args(ctx, args)


@click.group(
    cls=FlowGroup,
    epilog=examples(
        "devhost flow --script examples/workflows/cases/approval.yaml",
        "devhost flow chat --script examples/workflows/cases/approval.yaml",
    ),
)
def flow() -> None:
    """Play a chatflow or workflow on Dify's own engine, without Dify. Without a command's name, the flow is run."""


@command(*RUN_GROUPS, of=flow)
def run(asked: CaseOptions, *options: Any) -> int:  # noqa: ANN401 - as devhost run and chat
    """Play a flow, and show what its nodes do.

    Of a chatflow, the script's whole conversation is played. A script that names its flow is a case and needs no FILE.
    The exit code is 1 if a turn is not as the script expects it; without expectations, a turn has to succeed.

    For example:
      devhost flow --script examples/workflows/cases/approval.yaml
      devhost flow examples/workflows/approval.yml --example injection --script examples/workflows/cases/approval.yaml
    """
    asked.refuse_strategy()
    return play(asked, *options)


@command(*CHAT_GROUPS, of=flow)
def chat(asked: CaseOptions, *options: Any) -> int:  # noqa: ANN401 - as devhost run and chat
    """Keep a conversation with a chatflow, one message a line.

    For example:
      devhost flow chat --script examples/workflows/cases/approval.yaml
    """
    asked.refuse_strategy()
    return talk(asked, *options)
