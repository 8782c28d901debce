"""An evaluation as JUnit's XML, which CI systems read. In: a summary. Out: bytes.

A column is a test suite, a case a test case; a case that failed has a `failure` with its checks. The standard library
writes it: the format is three elements, and a library would be one more to keep.
"""

from xml.etree import ElementTree as ET

from devhost.evaluation.reports.wording import mark
from devhost.evaluation.summary import Cell, Summary, Total

_ALLOWED = ((0x20, 0xD7FF), (0xE000, 0xFFFD), (0x10000, 0x10FFFF))


def junit_xml(summary: Summary) -> bytes:
    name = summary.evaluation.header.file
    root = ET.Element("testsuites", name=_clean(name))
    for total in summary.totals:
        cells = [cell for cell in summary.cells if cell.column == total.column]
        root.append(_suite(total, cells))
    ET.indent(root)
    text: bytes = ET.tostring(root, encoding="utf-8", xml_declaration=True)
    return text + b"\n"


def _suite(total: Total, cells: list[Cell]) -> ET.Element:
    suite = ET.Element(
        "testsuite",
        name=_clean(total.column),
        tests=str(total.cases),
        failures=str(total.cases - total.passed),
        errors="0",
        skipped="0",
        time=f"{sum(map(_seconds, cells)):.3f}",
    )
    suite.extend(_case(cell) for cell in cells)
    return suite


def _case(cell: Cell) -> ET.Element:
    case = ET.Element(
        "testcase", classname=_clean(cell.column), name=_clean(cell.case.name), time=f"{_seconds(cell):.3f}"
    )
    if not cell.passed:
        sentences = [check.sentence for check in cell.failures]
        message = f"{mark(cell)}: {sentences[0]}" if sentences else mark(cell)
        failure = ET.SubElement(case, "failure", message=_clean(message.splitlines()[0]))
        failure.text = _clean("\n".join(sentences))
    return case


def _seconds(cell: Cell) -> float:
    return sum(result.observed.seconds for result in cell.results)


def _clean(text: str) -> str:
    """XML 1.0 allows no other control characters, not even escaped."""
    return "".join(
        letter if letter in "\t\n\r" or any(first <= ord(letter) <= last for first, last in _ALLOWED) else "�"
        for letter in text
    )
