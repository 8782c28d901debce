"""The commands of `devhost`: run, chat, flow, tool, check, list, record, fork, replay and report.

In: command-line arguments and the environment. Out: text on stdout and stderr, and an exit code. `commands` has `main`;
`cli.options` has the options that several commands share.
"""
