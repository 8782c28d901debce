"""The history: every answer is kept, unless a setting says otherwise."""

import logging
from dataclasses import dataclass

from answering.domain.answer import Answer
from answering.domain.errors import AnswerSystemError
from answering.domain.ports import Answers

_LOG = logging.getLogger(__name__)


@dataclass(frozen=True)
class History:
    answers: Answers
    is_kept: bool = True

    def keep(self, answer: Answer) -> None:
        """Save an answer. The person gets it in any case, so a failure is only logged."""
        if not self.is_kept:
            return
        try:
            self.answers.save(answer)
        except AnswerSystemError as error:
            _LOG.error("%s was not saved. %s", answer.id, error)
