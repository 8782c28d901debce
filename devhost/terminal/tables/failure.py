"""Why a run failed, and what the node shows of it in Dify."""

from rich.console import Group, RenderableType
from rich.text import Text

from devhost.node.outputs.error import NodeError, plugin_error
from devhost.node.outputs.run import RunError
from devhost.terminal.tables.text import clipped, printable

LONGEST_ERROR = 2_000


def failure_text(error: RunError, *, traceback: bool) -> RenderableType:
    lines = [Text(f"{error.kind}: {printable(_sentence(error.message))}", "red")]
    if error.traceback and traceback:
        lines.append(Text(printable(error.traceback.rstrip()), "dim"))
    elif error.traceback:
        lines.append(Text("--traceback prints the traceback.", "dim"))
    if error.node is not None:
        lines.append(_at_the_node(error, error.node, traceback=traceback))
    return Group(*lines)


def _sentence(message: str) -> str:
    """A strategy may pass on the error of a call as it got it, which is JSON within JSON."""
    found = plugin_error(message)
    return message if found is None else f"{found.before}{found.error_type}: {found.message}"


def _at_the_node(error: RunError, node: NodeError, *, traceback: bool) -> Text:
    inputs = "its inputs are kept" if node.inputs_kept else "its inputs are lost"
    if node.shows == error.message:
        return Text(f"Dify's node shows this message; {inputs}.", "dim")
    if error.traceback and not traceback:
        return Text(f"Dify's node shows it with its traceback, {len(node.shows):,} characters; {inputs}.", "dim")
    return _node_error_text(node)


def _node_error_text(error: NodeError) -> Text:
    """The error as the failed node shows it in Dify."""
    shown = printable(error.shows)
    inputs = "its inputs are kept" if error.inputs_kept else "its inputs are lost"
    return Text.assemble(
        (f"Dify's node shows ({len(shown):,} characters; {inputs}):\n", "bold"), clipped(shown, LONGEST_ERROR)
    )
