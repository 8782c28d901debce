"""What tools made, until the next message of the assistant takes it."""

from collections.abc import Iterable, Mapping

from ordering.values.results import ReviewerOutput
from pydantic import BaseModel, ConfigDict, ValidationError

from .messages import Annotation, BackEndData


class _Named(BaseModel):
    """The values that a result may have, of any agent; `message` is for the model alone."""

    model_config = ConfigDict(frozen=True, extra="ignore")

    saved_order_request_id: int | None = None
    referenced_order_request_id: int | None = None
    output_report: str | None = None
    reviewer_output: ReviewerOutput | None = None


class _Envelope(BaseModel):
    status: str
    result: _Named


class Pending:
    def __init__(self) -> None:
        self._data = BackEndData()
        self._reviewed: list[int] = []

    def add_results(self, tool_results: Iterable[Mapping[str, object]]) -> None:
        """`tool_results`: the variable of that name of a run; each entry has the tool's envelope as `json`."""
        for entry in tool_results:
            try:
                envelope = _Envelope.model_validate(entry.get("json"))
            except ValidationError:
                continue  # a tool of another plugin, or a call that did not run
            if envelope.status == "success":
                self._add(envelope.result)

    def add_annotation(self, annotation: Annotation) -> None:
        self._data = self._data.model_copy(update={"annotations": (*self._data.annotations, annotation)})

    def taken(self) -> BackEndData:
        """For the next message; nothing is pending afterwards."""
        data, self._data = self._data, BackEndData()
        return data

    def reviewed(self) -> list[int]:
        """Order requests that were reviewed and that no second reader has judged; each is named once."""
        reviewed, self._reviewed = self._reviewed, []
        return list(dict.fromkeys(reviewed))

    def _add(self, named: _Named) -> None:
        new = {
            "saved_order_request_id": named.saved_order_request_id,
            "referenced_order_request_id": named.referenced_order_request_id,
            "report": named.output_report,
        }
        self._data = self._data.model_copy(update={name: value for name, value in new.items() if value is not None})
        if named.reviewer_output is not None and named.reviewer_output.second_reader is None:
            self._reviewed.append(named.reviewer_output.order_request_id)
