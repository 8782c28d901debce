"""The generator of answers: the agent, run through devhost with the documents as the node's context.

In: a context. Out: the answer's content. What the agent is told is in `prompt`; nothing else of it leaves this module.
"""

from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass

from answering.domain.errors import AnswerSystemError, SystemCode
from answering.domain.retrieval import RetrievalContext
from answering.domain.values import PromptTemplate

from devhost import Host, HostError, ModelBackend, Run, RunError
from devhost.node.outputs.run import MODEL_ERRORS

from .prompt import INSTRUCTION, parameters, variables

STRATEGIES = ("gpt5_function_calling", "gpt5_react", "gpt5_plan_and_reflect")


@dataclass(frozen=True)
class AgentGenerator:
    open_host: Callable[[], AbstractContextManager[Host]]
    """Called once for each answer, so that a question without documents starts nothing."""
    choose_model: Callable[[RetrievalContext], ModelBackend]
    strategy: str = STRATEGIES[0]
    prompt: PromptTemplate = INSTRUCTION
    ended: Callable[[Run], None] = lambda _: None
    """Is told of each run."""

    def generate(self, context: RetrievalContext) -> str:
        try:
            with self.open_host() as host:
                run = host.run(
                    self.strategy,
                    parameters(context, self.prompt),
                    model=self.choose_model(context),
                    tools=(),
                    variables=variables(context),
                )
        except HostError as error:
            raise AnswerSystemError(SystemCode.GENERATION_FAILED, str(error)) from error
        self.ended(run)
        if run.error is not None:
            raise _failure(run.error)
        return run.outputs.text


def _failure(error: RunError) -> AnswerSystemError:
    is_of_model = error.kind in MODEL_ERRORS
    code = SystemCode.LLM_API_ERROR if is_of_model else SystemCode.GENERATION_FAILED
    return AnswerSystemError(code, error.message.strip().partition("\n")[0])
