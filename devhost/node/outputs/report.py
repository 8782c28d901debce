"""A run as one JSON object, for programs."""

from dataclasses import asdict
from typing import Any

from devhost.errors import HostError
from devhost.models.backend import ModelDescription
from devhost.node.outputs.outputs import NodeOutputs
from devhost.node.outputs.run import Run, RunError
from devhost.node.outputs.usage import no_usage
from devhost.protocol.wire import JsonObject


def never_begun(strategy: str, error: HostError) -> Run:
    """The run of a plugin that did not start, or ended before the run."""
    outputs = NodeOutputs("", [], [], no_usage(), {}, [], 0)
    return Run(strategy, outputs, RunError(type(error).__name__, str(error)), [], [], 0.0)


def report(run: Run, model: ModelDescription, spending: JsonObject | None = None) -> dict[str, Any]:
    outputs = run.outputs
    sources = outputs.variables.get("sources")
    return {
        "text": outputs.text,
        "files": outputs.files,
        "json": outputs.json,
        "usage": outputs.usage,
        "spent": run.calls.spent,
        "variables": outputs.variables,
        "logs": [root.tree() for root in outputs.logs],
        **({} if sources is None else {"sources": sources}),
        "dropped_retriever_resources": outputs.dropped_retriever_resources,
        "workflow_totals": outputs.workflow_totals,
        "icon_lookups": asdict(outputs.icon_lookups),
        "findings": [asdict(finding) for finding in run.findings],
        "error": None if run.error is None else asdict(run.error),
        "strategy": run.strategy,
        "elapsed_seconds": run.elapsed_seconds,
        "model": {
            "name": model.name,
            "provider": model.provider,
            "scripted": model.scripted,
            "notice": model.notice,
            **({} if spending is None else {"spending": spending}),
        },
    }
