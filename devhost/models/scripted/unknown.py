"""What the scripted model says to a question that its script has no turns for. In: the script. Out: one answer."""

from devhost.models.scripted.script import Script
from devhost.models.scripted.turn import Turn

MOST_QUESTIONS, LONGEST_QUESTION = 8, 200


def answer_to_the_unknown(script: Script) -> Turn:
    """One answer for every call of the run, because nothing is known of what the strategy asks."""
    known = script.questions
    listed = "\n".join(f"- {_short(question)}" for question in known[:MOST_QUESTIONS])
    more = f"\n- and {len(known) - MOST_QUESTIONS} more" if len(known) > MOST_QUESTIONS else ""
    return Turn(
        text=f"I am a scripted model: I cannot think, I only say what is written in {script.place}. "
        f"There I have answers to:\n\n{listed}{more}\n\nFor any other question, use a real model."
    )


def _short(question: str) -> str:
    return question if len(question) <= LONGEST_QUESTION else f"{question[:LONGEST_QUESTION]}…"
