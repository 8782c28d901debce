"""How well a passage fits a question: 0 for not at all, 1 for the best that is possible."""


def checked_score(score: float) -> float:
    if not 0 <= score <= 1:
        raise ValueError(f"A score is between 0 and 1, not {score}.")
    return score
