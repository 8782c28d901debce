"""Forms of Human Input nodes, and the answers to them from options, scripts and people."""

from pathlib import Path
from typing import Any

import pytest

from devhost.errors import FlowFileError
from devhost.flow.checks.check import check_flow
from devhost.flow.document import FlowFile
from tests.flows.building import START, chain, chatflow, node


@pytest.mark.parametrize(
    ("data", "sentence"),
    [
        ({}, "node 'Form' (form) is not a form: user_actions: Field required"),
        ({"user_actions": []}, "user_actions: Tuple should have at least 1 item"),
        (
            {"user_actions": [{"id": "ok", "title": "OK"}], "inputs": [{"output_variable_name": "a", "type": "date"}]},
            "inputs[0].type: Input should be 'paragraph', 'select', 'file' or 'file-list'",
        ),
    ],
)
def test_a_node_that_is_not_a_form_is_told_before_the_flow_starts(
    tmp_path: Path, data: dict[str, Any], sentence: str
) -> None:
    file = FlowFile.read(chatflow(tmp_path, [START, node("human-input", "form", **data)], chain("start", "form")))

    with pytest.raises(FlowFileError) as error:
        check_flow(file, {}, None)
    assert sentence in str(error.value)
