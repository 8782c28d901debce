"""What the model gives to a tool's ``secret-input`` parameters.

In: a call as the model wrote it. Out: the values that have to stay out of log, text and variables from then on. The
model itself goes on reading them: it had them before.
"""

import contextlib
import json
import re
from collections.abc import Iterator

from internal.secret_detection import texts_in
from internal.toolbox import Toolbox
from internal.transcript import ToolCall


def given_secrets(call: ToolCall, toolbox: Toolbox) -> Iterator[str]:
    """The values, also those of a call that will not run."""
    tool = toolbox.tools.get(call.name)
    names = [parameter.name for parameter in tool.parameters.values() if parameter.is_secret] if tool else []
    if not names:
        return
    if call.parsed.ok:
        yield from texts_in([call.parsed.args.get(name) for name in names])
        return
    quoted = "|".join(re.escape(json.dumps(name)) for name in names)
    for found in re.finditer(rf'(?:{quoted})\s*:\s*"((?:[^"\\]|\\.)*+)', call.arguments):
        yield found[1]
        with contextlib.suppress(ValueError):
            yield json.loads(f'"{found[1]}"')
