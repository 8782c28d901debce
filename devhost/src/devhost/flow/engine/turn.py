"""The state of one turn on the engine: what its nodes share, how it ends early, its forms and its variables."""

import queue
import time
import uuid
from collections import defaultdict, deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import datetime
from threading import Thread
from typing import Any, override

from graphon.engine_events.graph import GraphRunPausedEvent
from graphon.entities.pause_reason import HitlRequired
from graphon.file.models import File
from graphon.nodes.human_input.entities import Completed, Expired, HITLContext, HITLDecision, PauseRequested
from graphon.runtime.execution import GraphExecution
from graphon.runtime.runtime_state_protocol import ReadOnlyVariablePool
from graphon.runtime.variable_pool import VariablePool
from graphon.variables.factory import TypeMismatchError, build_segment, build_segment_with_type
from graphon.variables.segments import Segment
from graphon.variables.template_resolution import convert_template
from graphon.variables.types import SegmentType
from graphon.workflow_type_encoder import WorkflowRuntimeTypeConverter

from devhost.errors import FlowFileError, RunFailure, RunStoppedError
from devhost.flow.document import FlowFile, FlowVariable
from devhost.flow.engine.files import FileService
from devhost.flow.forms import Form, ValueSource
from devhost.flow.turn import FlowTurn, TurnContext
from devhost.models.backend import ModelDescription
from devhost.node.outputs.run import Run
from devhost.process.session import Stop
from devhost.protocol.wire import JsonObject
from devhost.script import FormAnswer, GivenAnswers
from devhost.trace.flow import FIELD, TIMEOUT, AskedField, FormAsked


@dataclass
class EarlyEnd:
    """Ends a turn before its nodes have finished: a person stops it, or a branch fails while others are running.

    As in Dify, everything that agents, tools and models send after that is dropped. Their plugins and providers are
    not notified.
    """

    stop: Stop
    execution: GraphExecution | None = None
    """The engine's record of the part of the turn that is running."""
    is_over: bool = False

    def end(self) -> None:
        """Marks the turn as over when the engine has no more events."""
        self.is_over = True
        self.stop.request()

    def wait(self) -> None:
        """Waits until the engine has noticed the stop.

        If a node ended earlier, the engine would treat the node as failed and follow its error branch.
        """
        while not (self.is_over or (self.execution is not None and self.execution.aborted)):
            time.sleep(0.01)

    def until_stopped[T](self, values: Iterable[T]) -> Iterator[T]:
        """Yields the values as they arrive. Raises RunStoppedError as soon as the turn ends."""

        def read(put: Callable[[T], None]) -> None:
            for value in values:
                put(value)

        reading = ThreadStream(read)
        self.stop.ends(reading.stop)
        try:
            yield from reading
        except RunStoppedError:
            self.wait()
            raise
        finally:
            reading.stop()


class ThreadStream[T]:
    """The values that `work` passes to its callback. `work` runs in a thread, because it may block for a long time."""

    def __init__(self, work: Callable[[Callable[[T], None]], None]) -> None:
        self._work = work
        self._said = queue.SimpleQueue[tuple[T] | Exception | None]()
        self._stopped = False

    def __iter__(self) -> Iterator[T]:
        Thread(target=self._drive, daemon=True).start()
        while True:
            said = self._said.get()
            if self._stopped:
                raise RunStoppedError("the run was stopped")
            match said:
                case (value,):
                    yield value
                case Exception():
                    raise said
                case None:
                    return

    def stop(self) -> None:
        """Stops the stream. A signal handler may call this, because it takes no lock."""
        self._stopped = True
        self._said.put(None)

    def _drive(self) -> None:
        try:
            self._work(self._pass_on)
            self._said.put(None)
        except Exception as error:  # noqa: BLE001 - raised again where the values are read
            self._said.put(error)

    def _pass_on(self, value: T) -> None:
        if self._stopped:
            raise RunStoppedError("the run was stopped")
        self._said.put((value,))


# Human Input nodes on the engine: a form pauses the flow until the form is answered.

ACTION = "__action_id"
CONTENT = "__rendered_content"
"""The outputs that a form has in addition to its fields."""


def _asked(form: Form, session: str, pool: ReadOnlyVariablePool, given: Mapping[str, str]) -> FormAsked:
    """Returns a form with the values of its variables and the values that a script fills in."""

    def read(source: ValueSource | None) -> object:
        if source is None or source.type == "constant":
            if source is None:
                return None
            return source.value
        found = pool.get(source.selector)
        if found is None:
            return None
        return found.to_object()

    fields = []
    for each in form.inputs:
        text = given.get(each.name, read(each.default))
        options = read(each.option_source)
        listed: tuple[str, ...] = ()
        if isinstance(options, list | tuple):
            listed = tuple(map(str, options))
        fields.append(AskedField(each.name, each.type, "" if text is None else str(text), listed))
    return FormAsked(session, form.node, convert_template(pool, form.content).markdown, tuple(fields), form.buttons)


class Forms:
    """The forms of one turn. A node in an iteration asks several times, and its answers are used in that order."""

    def __init__(self, file: FlowFile, given: GivenAnswers) -> None:
        """`given` contains the answers of a script, which may only fill in fields."""
        self._file = file
        self._given = given
        self._asked: dict[str, FormAsked] = {}
        self._answers: defaultdict[str, deque[tuple[FormAsked, FormAnswer]]] = defaultdict(deque)

    def decide(self, context: HITLContext) -> HITLDecision:
        if answers := self._answers[context.node_id]:
            return _decided(*answers.popleft())
        node = self._file.nodes[context.node_id]
        session = str(uuid.uuid4())
        given = self._given.get(node.id, FormAnswer()).values
        self._asked[session] = _asked(Form.of(self._file, node), session, context.variable_pool, given)
        return PauseRequested(session)

    def open(self, event: GraphRunPausedEvent) -> tuple[FormAsked, ...]:
        """Returns the forms that the flow is waiting for."""
        return tuple(self._asked[reason.session_id] for reason in event.reasons if isinstance(reason, HitlRequired))

    def answer(self, form: FormAsked, answer: FormAnswer) -> None:
        self._answers[form.node.id].append((form, answer))


def _decided(form: FormAsked, answer: FormAnswer) -> HITLDecision:
    """Returns the branch and the outputs of a form. In graphon 0.5.0, the Human Input node itself set these."""
    if answer.button == TIMEOUT:
        return Expired(TIMEOUT, {ACTION: build_segment("")})
    values = {each.name: build_segment(answer.values[each.name]) for each in form.fields}
    content = FIELD.sub(lambda found: answer.values.get(found[1], found[0]), form.content)
    own = {ACTION: build_segment(answer.button), CONTENT: build_segment(content)}
    return Completed(answer.button, values, {**values, **own})


class FatalErrors:
    """Errors in the command or in devhost, which end a flow at once.

    This class is thread-safe, because nodes run in parallel.

    A failure of the flow itself fails its node, and the engine's retry, error branch and default value apply. A fatal
    error, such as a node without turns in the script, is not part of the flow, so no error branch may hide it. The
    engine cannot tell the two apart. That is why devhost's nodes do all their work inside `watched()`.
    """

    def __init__(self) -> None:
        self._noted: list[Exception] = []

    @contextmanager
    def watched(self, *failures: type[Exception]) -> Iterator[None]:
        """Records every exception except `RunFailure` and `failures`, which are failures of the flow itself.

        After a fatal error, every further node raises the same error at once.
        """
        self.raise_first()
        try:
            yield
        except Exception as error:
            if not isinstance(error, (RunFailure, *failures)):
                self._noted.append(error)
            raise

    def raise_first(self) -> None:
        if self._noted:
            raise self._noted[0]


@dataclass
class RunningTurn:
    """The state that the nodes of one turn share."""

    file: FlowFile
    turn: FlowTurn
    around: TurnContext
    started: dict[str, datetime] = field(default_factory=dict)
    """The time when each execution of a node first began. After a pause, the engine starts the form's node again."""
    runs: dict[str, tuple[Run, ModelDescription]] = field(default_factory=dict)
    """The runs of strategies and their models, by the id of the node's execution."""
    retries: defaultdict[str, list[str]] = field(default_factory=lambda: defaultdict(list))
    """The errors of failed attempts, by the id of the node's execution."""

    def __post_init__(self) -> None:
        self.run_id = str(uuid.uuid4())
        self.mistakes = FatalErrors()
        self.ending = EarlyEnd(self.around.stop or Stop())
        self.forms = Forms(self.file, self.around.answers)
        self.files = FileService(self.around.host)

    def decide(self, context: HITLContext) -> HITLDecision:
        with self.mistakes.watched():
            return self.forms.decide(context)


# The engine's variable pool is filled before a turn, and devhost's nodes read it as plain JSON.


def filled_pool(playing: RunningTurn) -> VariablePool:
    """Returns a pool with the variables of the system, the environment, the conversation and the Start node."""
    file = playing.file
    turn = playing.turn
    pool = VariablePool()
    app = file.path.stem
    system: JsonObject = {"user_id": "devhost", "app_id": app, "workflow_id": app, "workflow_run_id": playing.run_id}
    system["files"] = playing.files.uploaded(turn.files)
    if file.is_chatflow:
        system |= {"query": turn.query, "conversation_id": turn.conversation_id, "dialogue_count": turn.dialogue_count}
    for name, value in system.items():
        pool.add(("sys", name), value)
    for variable in file.environment_variables:
        pool.add(("env", variable.name), variable.value)
    for variable in file.conversation_variables:
        value = turn.conversation.get(variable.name, variable.value)
        pool.add(("conversation", variable.name), _typed(file, variable, value))
    for name, value in turn.inputs.items():
        pool.add(_selector(file, name), playing.files.field(value))
    return pool


def _selector(file: FlowFile, name: str) -> tuple[str, str]:
    """Returns the selector of an input: a Start node's field, or a variable that a node played alone refers to."""
    if not file.alone:
        return file.start.id, name
    source, _, variable = name.partition(".")
    return source, variable


def _typed(file: FlowFile, variable: FlowVariable, value: object) -> Segment:
    """Converts a value to its declared type for the Variable Assigner. An empty list does not show its type."""
    try:
        declared = SegmentType(variable.value_type)
        if value is None:
            return SegmentType.get_zero_value(declared)
        return build_segment_with_type(declared, value)
    except (ValueError, TypeMismatchError) as error:
        raise FlowFileError(
            f"{file.path}: the conversation variable {variable.name!r} is declared as {variable.value_type}, "
            f"which its value does not fit: {error}"
        ) from error


def plain(values: Mapping[str, Any]) -> JsonObject:
    """Converts segments and files to JSON."""
    return dict(WorkflowRuntimeTypeConverter().to_json_encodable(values))


def for_plugins(values: Mapping[str, Any]) -> JsonObject:
    """Converts segments and files to JSON for a plugin."""
    return dict(_ForPlugins().to_json_encodable(values))


class _ForPlugins(WorkflowRuntimeTypeConverter):
    @override
    def value_to_json_encodable_recursive(self, value: Any) -> Any:
        """Gives each file its address at the file service, from which plugins can load the file."""
        if isinstance(value, File):
            return {**value.to_dict(), "url": value.generate_url(for_external=False)}
        return super().value_to_json_encodable_recursive(value)
