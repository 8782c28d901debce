"""Where a thought that contains tags ends.

In: the tokens after its first tag. Out: its words, and whether it has ended: a tag inside it opens or closes a level.
"""

from internal.thoughts.markdown_tokens import Kind, Token


class Thought:
    """A thought whose end is not certain yet.

    After a closing tag that leaves a level open, what follows is this thought's if another closing tag comes, and
    otherwise it is the answer; it is kept until that is known.
    """

    def __init__(self) -> None:
        self._levels: list[bool] = []  # of the tags inside: whether each is among words, and so one of the words
        self._follows_tag = True
        self.after_close: list[Token] | None = None
        self._words_after_close: list[str] = []

    def take(self, token: Token) -> tuple[str, bool]:
        """What is certainly a thought by now, and whether the thought has ended."""
        if token.kind is Kind.CLOSE:
            return self._close(token.text)
        is_word = True
        if token.kind is Kind.OPEN:
            is_word = not self._follows_tag
            self._levels.append(is_word)
        self._follows_tag = token.kind is Kind.OPEN or (self._follows_tag and token.text.isspace())
        words = token.text if is_word else ""
        if self.after_close is None:
            return words, False
        self.after_close.append(token)
        self._words_after_close.append(words)
        return "", False

    def _close(self, tag: str) -> tuple[str, bool]:
        words = self.rest()
        if not self._levels:
            return words, True
        self._words_after_close = [tag] if self._levels.pop() else []
        self.after_close, self._follows_tag = [], True
        return words, False

    def rest(self) -> str:
        """What was kept, as a part of the thought."""
        return "".join(self._words_after_close)
