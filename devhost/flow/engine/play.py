"""Plays one turn of a flow on the engine, and says what happens in devhost's words."""

import logging
from collections.abc import Iterator
from contextlib import closing

from graphon.engine_events.graph import GraphRunPausedEvent

from devhost.errors import UnansweredFormError
from devhost.flow.document import FlowFile
from devhost.flow.engine.stretch import Stretch
from devhost.flow.engine.told import Teller
from devhost.flow.engine.turn.forms import Forms
from devhost.flow.engine.turn.playing import Playing
from devhost.flow.events import FlowEvent, FlowPaused
from devhost.flow.surroundings import FlowTurn, Surroundings

# The engine logs each failure with its traceback, besides the event that tells of it.
logging.getLogger("graphon").addHandler(logging.NullHandler())


def play(file: FlowFile, turn: FlowTurn, around: Surroundings) -> Iterator[FlowEvent]:
    """A mistake of the command, or in devhost, is raised: see `Mistakes`."""
    playing = Playing(file, turn, around, Forms(file, None if around.host is None else around.host.server))
    stretch = Stretch.first(playing)
    while True:
        paused = None
        teller = Teller(playing, stretch.state)
        with closing(stretch.events()) as events:
            try:
                for event in events:
                    playing.mistakes.raise_first()
                    if isinstance(event, GraphRunPausedEvent):
                        paused = event
                    else:
                        yield from teller.told(event)
            finally:
                if paused is None:
                    playing.ending.end()
        if paused is None:
            return
        forms = playing.forms.open(paused)
        yield FlowPaused(forms)
        try:
            for form in forms:
                playing.forms.answer(form, around.answer_form(form))
        except UnansweredFormError as error:
            yield teller.paused(paused.outputs, str(error))
            return
        stretch = Stretch.after_pause(playing, stretch.written())
