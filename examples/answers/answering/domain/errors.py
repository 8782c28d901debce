"""What can go wrong on the way to an answer, each with its code.

A *business error* is a normal outcome: its sentence is for the person who asks. A *system error* is a failure: it is
logged for the operator, and the person reads only that it did not work.
"""

from enum import StrEnum


class BusinessCode(StrEnum):
    EMPTY_QUESTION = "ANSWER_EMPTY_QUESTION"
    EMPTY_CONTENT = "ANSWER_EMPTY_CONTENT"
    NO_RELEVANT_DOCUMENTS = "ANSWER_NO_RELEVANT_DOCUMENTS"
    INDEX_NOT_AVAILABLE = "ANSWER_INDEX_NOT_AVAILABLE"


class SystemCode(StrEnum):
    CONTEXT_RETRIEVAL_FAILED = "ANSWER_CONTEXT_RETRIEVAL_FAILED"
    GENERATION_FAILED = "ANSWER_GENERATION_FAILED"
    LLM_API_ERROR = "ANSWER_LLM_API_ERROR"
    SAVE_FAILED = "ANSWER_SAVE_FAILED"


type Code = BusinessCode | SystemCode


class _AnswerError[C: Code](Exception):
    def __init__(self, code: C, sentence: str) -> None:
        super().__init__(f"{code}: {sentence}")
        self.code = code
        self.sentence = sentence


class AnswerBusinessError(_AnswerError[BusinessCode]):
    pass


class AnswerSystemError(_AnswerError[SystemCode]):
    pass
