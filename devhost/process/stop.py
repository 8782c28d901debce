"""Ends one run from outside, as Dify's Stop does: what still comes is dropped, and the plugin is not told.

`request` may be called from a signal handler: it takes no lock.
"""

from devhost.process.session import Session


class Stop:
    """Ends the run that it was given to; for one run only."""

    def __init__(self) -> None:
        self._requested = False
        self._session: Session | None = None

    def request(self) -> None:
        self._requested = True
        if self._session is not None:
            self._session.stop()

    def ends(self, session: Session) -> None:
        """The session that a request ends; at once if the request came before."""
        self._session = session
        if self._requested:
            session.stop()
