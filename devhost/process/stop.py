"""Ends a turn from outside, as Dify's Stop does: what still comes is dropped, and the plugin is not told.

`request` may be called from a signal handler: it takes no lock.
"""

from devhost.process.session import Session


class Stop:
    """Ends the runs that it was given to; for one turn only, in which a flow may have several."""

    def __init__(self) -> None:
        self.requested = False
        self._sessions: list[Session] = []

    def request(self) -> None:
        self.requested = True
        for session in tuple(self._sessions):
            session.stop()

    def ends(self, session: Session) -> None:
        """A session that a request ends; at once if the request came before."""
        self._sessions.append(session)
        if self.requested:
            session.stop()
