"""Puts the measured tables between the two markers of README.md."""

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
    """Return a sentence with the date, the number of cores, and the relevant versions."""
    versions = f"Python {platform.python_version()}, dify-plugin {version('dify-plugin')}"
    if official_version:
        versions = f"{versions}, cot_agent {official_version}"
    return f"Measured on {when:%Y-%m-%d}, {os.cpu_count()} cores, {versions}."
