"""The commands of `devhost`: run, chat, tool, check, list, replay and report.

In: command-line arguments and the environment. Out: text on stdout and stderr, and an exit code. `commands` has `main`;
each `…_options` module declares options that belong together and reads them into one value.
"""
