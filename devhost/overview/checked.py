"""What a static check found, in lines.

In: a `Checked`. Out: texts: for each problem where it is, why, by which rule, and below it the daemon's own words.
"""

from collections.abc import Iterator, Mapping

from rich.text import Text

from devhost.plugin.check import Checked
from devhost.plugin.rules.listed import Level
from devhost.terminal.tables.text import printable
from devhost.text.counted import counted

HEADINGS: Mapping[Level, str] = {"marketplace": "for the marketplace: ", "notice": "notice: ", "refused": ""}
STYLES: Mapping[Level, str] = {"marketplace": "yellow", "notice": "yellow", "refused": "bold"}


def check_lines(checked: Checked, *, marketplace: bool = False) -> Iterator[Text]:
    """With `marketplace`, what only the marketplace refuses counts as refused."""
    refused = checked.of("refused", *(("marketplace",) if marketplace else ()))
    for problem in checked.problems:
        where = f"{problem.file}: {problem.key}" if problem.key else problem.file
        level: Level = "refused" if problem in refused else problem.level
        style = STYLES[level]
        found = Text.assemble(HEADINGS[level], (printable(where), style), f": {printable(problem.sentence)}")
        yield found.append(f" ({problem.rule})", "dim")
        if problem.words:
            yield Text(f"    {printable(problem.words)}", "dim")
    if checked.unchecked:
        kinds = ", ".join(checked.unchecked)
        yield Text(f"not checked: {kinds} (devhost has rules for the manifest, tools and strategies only)", "yellow")
    files = f"{checked.declarations} declarations and {len(checked.contents.paths)} files"
    if not refused:
        yield Text(f"{files}, as Dify takes them", "green")
    else:
        count = len(refused)
        yield Text(f"{counted(count, 'refusal')} in {files}", "red")
