"""Events: pushed by the node, and of the connection itself."""

from __future__ import annotations

import asyncio
import collections
from dataclasses import dataclass
from typing import Any

from .errors import Closed
from .policy import EVENTS_KEPT

DISCONNECTED = "client.disconnected"
RECONNECTED = "client.reconnected"
MISSED = "client.missed"
CLOSED = "client.closed"


@dataclass(frozen=True)
class Event:
    """Something that happened.

    ``type`` is one of the protocol's, or one of the client's own: ``client.disconnected`` (``reason``),
    ``client.reconnected`` (``rooms_lost``), ``client.missed`` (``count``: the reader was too slow),
    ``client.closed`` (``reason``; nothing follows).
    """

    type: str
    payload: dict[str, Any]


class EventQueue:
    """Events for one reader. It never grows beyond ``EVENTS_KEPT``: replies and heartbeats wait for no reader."""

    def __init__(self) -> None:
        self._events: collections.deque[Event] = collections.deque()
        self._changed = asyncio.Event()
        self._missed = 0
        self._closed: str | None = None

    def push(self, event: Event) -> None:
        if self._closed is not None:
            return
        if len(self._events) >= EVENTS_KEPT:
            self._missed += len(self._events)
            self._events.clear()
        self._events.append(event)
        if event.type == CLOSED:
            self._closed = str(event.payload.get("reason", ""))
        self._changed.set()

    async def next(self) -> Event:
        while True:
            if self._missed:
                count, self._missed = self._missed, 0
                return Event(MISSED, {"count": count})
            if self._events:
                return self._events.popleft()
            if self._closed is not None:
                raise Closed(self._closed)
            self._changed.clear()
            await self._changed.wait()
