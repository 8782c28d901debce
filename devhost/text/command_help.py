"""Examples at the end of a command's help."""

UNWRAPPED = "\b\n"
"""With this, click leaves the lines of a paragraph as they are."""


def examples(*lines: str) -> str:
    """For `epilog=` of a command."""
    return UNWRAPPED + "\n".join(("For example:", *(f"  {line}" for line in lines)))
