"""Numbers and shares in words, the same in the terminal and on the page."""

from devhost.evaluation.summary import Cell, Total
from devhost.text.counted import counted
from devhost.text.price import price_text


def share(part: int, whole: int, noun: str = "") -> str:
    """`3 of 26`, or with a noun `3 of 26 cases`."""
    return f"{part:,} of {counted(whole, noun) if noun else f'{whole:,}'}"


def mark(cell: Cell | None) -> str:
    """`passed`, `failed`, or with repeats how many fitted; a dash where there is no result."""
    if cell is None:
        return "–"
    word = "passed" if cell.passed else "failed"
    return word if len(cell.results) == 1 else f"{word} {cell.fitting}/{len(cell.results)}"


def costs(total: Total) -> str:
    price = f" · {price_text(str(total.price))} {total.currency}" if total.price else ""
    return f"{total.tokens:,.0f} tokens and {total.seconds:.2f} s a run{price}"
