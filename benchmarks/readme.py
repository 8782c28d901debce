"""The tables of README.md.

In: its text and the measured tables. Out: its text with these between the two markers.
"""

import os
import platform
from collections.abc import Sequence
from datetime import datetime
from importlib.metadata import version

from benchmarks.table import Table

BEGIN = "<!-- tables: written by `python -m benchmarks --write` -->"
END = "<!-- end of the tables -->"


def with_tables(text: str, tables: Sequence[Table], when: datetime, official_version: str) -> str:
    before, _, rest = text.partition(BEGIN)
    _, _, after = rest.partition(END)
    written = "\n\n".join([measured_on(when, official_version), *map(str, tables)])
    return f"{before}{BEGIN}\n\n{written}\n\n{END}{after}"


def measured_on(when: datetime, official_version: str) -> str:
    """Day, machine by its cores, and the versions that matter."""
    versions = f"Python {platform.python_version()}, dify-plugin {version('dify-plugin')}"
    if official_version:
        versions = f"{versions}, cot_agent {official_version}"
    return f"Measured on {when:%Y-%m-%d}, {os.cpu_count()} cores, {versions}."
