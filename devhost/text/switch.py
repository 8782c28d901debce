"""The words that Dify reads as true and as false, in any letter case."""

TRUE = frozenset({"true", "yes", "y", "1"})
FALSE = frozenset({"false", "no", "n", "0"})


def reads_as_switch(text: str) -> bool:
    return text.lower() in TRUE | FALSE
