"""How long a local server waits for a client, and how many it lets wait: nobody locks others out.

A connection that has sent no whole request for a while, or takes no answer, is closed, be it silent, slow or
half-open. Where too many are open at once, the one that has kept us waiting longest makes room.
"""

from __future__ import annotations

import asyncio
from typing import Any

from uvicorn.protocols.http.h11_impl import H11Protocol

PATIENCE_S = 20.0
"""For the headers and the body of a request, and for a client to go on taking its answer."""
MOST_CONNECTIONS = 200
"""More than the browsers of a whole class open; far fewer than the files that a process may have open."""


class PatientProtocol(H11Protocol):
    """HTTP of uvicorn, for clients that may never finish what they began."""

    patience_s = PATIENCE_S
    most_connections = MOST_CONNECTIONS

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Take a connection; where there are too many, close the one that has kept us waiting longest."""
        super().connection_made(transport)
        self.waiting_since = self.loop.time()
        self._timer = self.loop.call_later(self.patience_s, self._look)
        if len(self.connections) > self.most_connections:
            peers = [peer for peer in self.connections if isinstance(peer, PatientProtocol)]
            waiting = [peer for peer in peers if peer.waiting and not peer.transport.is_closing()]
            min(waiting, key=lambda peer: peer.waiting_since, default=self).transport.abort()

    def connection_lost(self, exc: Exception | None) -> None:
        """Forget the connection."""
        self._timer.cancel()
        super().connection_lost(exc)

    def on_response_complete(self) -> None:
        """Wait for the next request from now on."""
        self.waiting_since = self.loop.time()
        super().on_response_complete()

    def pause_writing(self) -> None:
        """Wait for the client to take what was sent."""
        self.waiting_since = self.loop.time()
        super().pause_writing()

    @property
    def waiting(self) -> bool:
        """Whether it is the client's turn: to send the rest of a request, or to take the answer."""
        cycle: Any = self.cycle
        return cycle is None or cycle.response_complete or cycle.more_body or self.flow.write_paused

    def _look(self) -> None:
        left_s = self.waiting_since + self.patience_s - self.loop.time()
        if self.waiting and left_s <= 0:
            self.transport.abort()
        else:
            self._timer = self.loop.call_later(max(left_s, self.patience_s / 20), self._look)
