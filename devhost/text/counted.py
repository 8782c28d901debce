"""How many there are of something, in words."""


def counted(number: int, noun: str, plural: str = "") -> str:
    """`1 case`, `26 cases`. `plural`: of a noun that does not just get an s."""
    return f"{number:,} {noun if number == 1 else plural or f'{noun}s'}"
