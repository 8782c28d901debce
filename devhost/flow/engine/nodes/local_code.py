"""Code nodes on the engine: the program that Dify sends to its sandbox runs in a process of this machine."""

from collections.abc import Mapping
from typing import Any, override

from graphon.dsl.code_runtime import SandboxCodeExecutionError, _transformer_for
from graphon.nodes.code.entities import CodeLanguage
from graphon.nodes.code.protocols import CodeExecutorProtocol

from devhost.flow.outside.code_process import CodeError, run_program
from devhost.limits import HostLimits


class LocalCode(CodeExecutorProtocol):
    def __init__(self, limits: HostLimits) -> None:
        self._limits = limits

    @override
    def execute(self, *, language: CodeLanguage, code: str, inputs: Mapping[str, Any]) -> Mapping[str, Any]:
        """How inputs go in and a result comes out is the engine's own, although it has no public name."""
        transformer = _transformer_for(language)
        program = transformer.build_program(code=code, inputs=inputs)
        return transformer.parse_result(run_program(language.value, program.code, self._limits))

    @override
    def is_execution_error(self, error: Exception) -> bool:
        return isinstance(error, CodeError | SandboxCodeExecutionError)
