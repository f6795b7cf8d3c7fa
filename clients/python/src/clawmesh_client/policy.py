"""Time spans and bounds of the client."""

from __future__ import annotations

import random
from dataclasses import dataclass

#: Longest frame that is sent: a node closes a connection at a longer one.
FRAME_SENT_BYTES_MAX = 1024 * 1024
#: Longest frame that is read: a page of history has up to 500 messages of up to 256 KiB.
FRAME_READ_BYTES_MAX = 160 * 1024 * 1024
#: Events kept for a reader that is busy. Beyond it they are dropped, and ``client.missed`` says so.
EVENTS_KEPT = 1024
#: Messages that one ``get_history`` asks for.
PAGE_MESSAGES = 500
#: Messages remembered by id, so that one that another node gives under another number is not given twice.
IDS_REMEMBERED = 16 * 1024
#: Bytes of one piece of an answer that is being written.
PIECE_BYTES_MAX = 16_384


@dataclass(frozen=True)
class Policy:
    """How patient to be, in seconds."""

    #: For one address: connecting, and then each step of registering and joining again.
    connect_timeout: float = 5.0
    #: Pause after the first failed round over all addresses; it doubles from round to round.
    retry_first: float = 0.1
    #: Longest pause between rounds.
    retry_max: float = 5.0
    #: For one call, reconnects and repeats included.
    call_timeout: float = 30.0
    #: The node is pinged when nothing came for so long. Nodes send a heartbeat every 30 s.
    probe_after: float = 35.0
    #: The connection counts as dead when nothing came for so long.
    dead_after: float = 50.0

    def pause(self, attempt: int) -> float:
        """The pause before a try (from 0: none), between a half and all of the nominal one."""
        if attempt == 0:
            return 0.0
        nominal = min(self.retry_first * 2.0 ** min(attempt - 1, 30), self.retry_max)
        return nominal / 2 * (1 + random.random())
