"""What the model gives to a tool's ``secret-input`` parameters.

In: a call as the model wrote it. Out: the values that log, text and variables must not show from then on. The model
still reads them, because it had them before.
"""

import contextlib
import json
import re
from collections.abc import Iterable, Iterator

from internal.report.tool_calls import ToolCall
from internal.text.secret_detection import texts_in
from internal.tools.toolbox import Toolbox

_VALUE = r"""(?:"((?:[^"\\]|\\.)*+)|'((?:[^'\\]|\\.)*+)|([^\s"'{}\[\],;]++))"""


def given_secrets(call: ToolCall, toolbox: Toolbox) -> Iterator[str]:
    """The values of these parameters; a call that will not run counts too."""
    tool = toolbox.tools.get(call.name)
    names = [parameter.name for parameter in tool.parameters.values() if parameter.is_secret] if tool else []
    if not names:
        return
    if call.parsed.ok:
        yield from texts_in([call.parsed.args.get(name) for name in names])
        return
    yield from _beside(names, call.arguments)


def _beside(names: Iterable[str], text: str) -> Iterator[str]:
    """What stands beside these names in a text that is not JSON: in double quotes, in single quotes, or bare."""
    written = "|".join(form for name in names for form in _forms(name))
    for found in re.finditer(rf"(?:{written})\s*[:=]\s*{_VALUE}", text):
        value = next(value for value in found.groups() if value is not None)
        yield value
        with contextlib.suppress(ValueError):
            yield json.loads(f'"{value}"')


def _forms(name: str) -> tuple[str, str, str]:
    bare = re.escape(name)
    # A bare name counts only at the beginning of a pair; elsewhere it is a word of a text.
    return re.escape(json.dumps(name)), f"'{bare}'", rf"(?:^|[{{,])\s*{bare}"
