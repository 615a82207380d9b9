"""The server of the viewer: uvicorn, with a limit of time for a request and a limit of connections.

uvicorn waits for the rest of a request forever. A client that opens connections and sends half a request on each would
hold them until this process has no file descriptor left for others.
"""

from __future__ import annotations

import asyncio

import h11
import uvicorn
from starlette.types import ASGIApp
from uvicorn.protocols.http.h11_impl import H11Protocol

__all__ = ["viewer_server"]

REQUEST_SECONDS = 20.0  # for all of a request, from the connection or its first byte on
MOST_CONNECTIONS = 256  # below the usual limit of file descriptors
_INCOMPLETE = (h11.IDLE, h11.SEND_BODY)  # the client has not sent all of a request


def viewer_server(
    app: ASGIApp, *, request_seconds: float = REQUEST_SECONDS, most_connections: int = MOST_CONNECTIONS
) -> uvicorn.Server:
    """A server that closes connections whose request is not complete in time, or the oldest of too many."""

    class Protocol(_TimedProtocol):
        seconds, most = request_seconds, most_connections

    return uvicorn.Server(
        uvicorn.Config(
            app,
            http=Protocol,
            ws="none",
            log_level="warning",
            access_log=False,
            use_colors=False,
            server_header=False,
            lifespan="off",
            proxy_headers=False,
        )
    )


class _TimedProtocol(H11Protocol):
    """One connection. Between two requests, uvicorn's own limit for idle connections holds."""

    seconds: float
    most: int
    deadline: asyncio.TimerHandle | None = None  # while a request is awaited

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]  # as in uvicorn
        """Wait for the first request. If there are too many connections, close the one that has waited longest.

        uvicorn's `limit_concurrency` would refuse the new one instead, and with it everybody else.
        """
        super().connection_made(transport)
        self._await_request()
        if len(self.connections) > self.most:
            others = [other for other in self.connections if isinstance(other, _TimedProtocol) and other is not self]
            waiting = {other: other.deadline.when() for other in others if other.deadline is not None}
            min(waiting, key=waiting.__getitem__, default=self).give_up()

    def handle_events(self) -> None:
        """Read what has arrived. The limit of time does not start again with every byte."""
        super().handle_events()
        if self.conn.their_state in _INCOMPLETE:
            self._await_request()
        else:
            self._stop_waiting()

    def connection_lost(self, exc: Exception | None) -> None:
        """The client or `give_up` closed the connection."""
        self._stop_waiting()
        super().connection_lost(exc)

    def give_up(self) -> None:
        """Close the connection at once."""
        self._stop_waiting()
        self.transport.abort()

    def _await_request(self) -> None:
        if self.deadline is None:
            self.deadline = self.loop.call_later(self.seconds, self.give_up)

    def _stop_waiting(self) -> None:
        if self.deadline is not None:
            self.deadline.cancel()
            self.deadline = None
