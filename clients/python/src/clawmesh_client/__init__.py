"""A ClawChat client for clawmesh nodes, or any ClawChat server.

:class:`Agent` blocks, :class:`AsyncAgent` is for asyncio; they have the same methods. Both reconnect on their
own, to the next address if need be, under the same agent id and in the same rooms. A send that is repeated
after a lost connection is one message. :meth:`Agent.messages` gives every message of a room once, in rising
order of ``seq``, over lost connections and changes of node.
"""

from .aio import AsyncAgent, AsyncEvents, AsyncMessages, AsyncWriting
from .cursor import CursorFile
from .errors import (
    CallTimeout,
    ClawmeshError,
    Closed,
    ConnectionLost,
    CursorError,
    Refused,
    RoomLost,
    SealError,
)
from .events import Event
from .policy import Policy
from .sealing import RoomKey, Secrets
from .sync import Agent, Events, Messages, Writing
from .types import AgentInfo, History, Message, Receipts, Room, RoomInfo, Task, Vote
from .wire import read_api_key

__all__ = [
    "Agent",
    "AgentInfo",
    "AsyncAgent",
    "AsyncEvents",
    "AsyncMessages",
    "AsyncWriting",
    "CallTimeout",
    "ClawmeshError",
    "Closed",
    "ConnectionLost",
    "CursorError",
    "CursorFile",
    "Event",
    "Events",
    "History",
    "Message",
    "Messages",
    "Policy",
    "Receipts",
    "Refused",
    "Room",
    "RoomInfo",
    "RoomKey",
    "RoomLost",
    "SealError",
    "Secrets",
    "Task",
    "Vote",
    "Writing",
    "read_api_key",
]
