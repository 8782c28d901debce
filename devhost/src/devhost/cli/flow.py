"""`devhost flow`: plays a whole chatflow or workflow on Dify's own engine."""

from typing import Any

import click

from devhost.case_options import CaseOptions
from devhost.cli.run import CHAT_GROUPS, RUN_GROUPS, play, talk
from devhost.options import command
from devhost.words import examples


class FlowGroup(click.Group):
    """A group in which `devhost flow FILE` means `devhost flow run FILE`. Options may precede the command's name."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        if args and args[0] not in {*self.commands, *ctx.help_option_names}:
            behind = (at for at, name in enumerate(args) if name in self.commands and args[at - 1][:1] != "-")
            # A word after an option may be the option's value. No command follows the file of a flow.
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
    """Play a chatflow or workflow on Dify's own engine, without Dify. The default command is `run`."""


@command(*RUN_GROUPS, of=flow)
def run(asked: CaseOptions, *options: Any) -> int:  # noqa: ANN401 - one argument per group of options
    """Play a flow, and show what its nodes do.

    A chatflow plays the script's whole conversation. A script that names its flow is a case and needs no FILE.
    The exit code is 1 if a turn does not meet the script's expectations or, without expectations, fails.

    For example:
      devhost flow --script examples/workflows/cases/approval.yaml
      devhost flow examples/workflows/approval.yml --example injection --script examples/workflows/cases/approval.yaml
    """
    asked.refuse_strategy()
    return play(asked, *options)


@command(*CHAT_GROUPS, of=flow)
def chat(asked: CaseOptions, *options: Any) -> int:  # noqa: ANN401 - one argument per group of options
    """Have a conversation with a chatflow, one message per line.

    For example:
      devhost flow chat --script examples/workflows/cases/approval.yaml
    """
    asked.refuse_strategy()
    return talk(asked, *options)
