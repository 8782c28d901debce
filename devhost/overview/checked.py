"""What a static check found, in lines.

In: a `Checked`. Out: texts: for each refusal where it is and why, and below it the daemon's own words.
"""

from collections.abc import Iterator

from rich.text import Text

from devhost.plugin.check import Checked
from devhost.terminal.tables import printable


def check_lines(checked: Checked) -> Iterator[Text]:
    for refusal in checked.refusals:
        where = f"{refusal.file}: {refusal.key}" if refusal.key else refusal.file
        yield Text.assemble((printable(where), "bold"), f": {printable(refusal.sentence)}")
        if refusal.words:
            yield Text(f"    {printable(refusal.words)}", "dim")
    if checked.unchecked:
        kinds = ", ".join(checked.unchecked)
        yield Text(f"not checked: {kinds} (devhost has rules for the manifest, tools and strategies only)", "yellow")
    if not checked.refusals:
        yield Text(f"{checked.files} files, as the daemon takes them", "green")
    else:
        count = len(checked.refusals)
        yield Text(f"{count} refusal{'s' if count > 1 else ''} in {checked.files} files", "red")
