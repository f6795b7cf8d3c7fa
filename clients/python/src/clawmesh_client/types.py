"""Objects of the protocol, as ``docs/protocol/clawchat.md`` has them (§5). Optional fields may be absent."""

from __future__ import annotations

from typing import Any, TypedDict


class _Message(TypedDict):
    message_id: str
    room_id: str
    agent_id: str
    agent_name: str
    content: str
    metadata: Any
    timestamp: str
    seq: int


class Message(_Message, total=False):
    """A chat message, a thought or a decision."""

    reply_to_message: str
    #: ``verified``, ``durable``, ``session``, …
    mesh: dict[str, Any]


class _Room(TypedDict):
    room_id: str
    name: str
    ephemeral: bool
    created_at: str
    visibility: str
    encrypted: bool


class Room(_Room, total=False):
    description: str
    parent_id: str
    created_by: str
    owner_key: str
    last_activity: str
    member_count: int
    mesh: dict[str, Any]


class _AgentInfo(TypedDict):
    agent_id: str
    name: str
    capabilities: list[str]
    connected_at: str
    last_active: str
    status: str


class AgentInfo(_AgentInfo, total=False):
    status_detail: str
    progress: int
    mesh: dict[str, Any]


class RoomInfo(TypedDict):
    room: Room
    agents: list[AgentInfo]
    sub_rooms: list[Room]
    current_turn_holder: str | None
    turn_order: list[str]


class _History(TypedDict):
    room_id: str
    messages: list[Message]


class History(_History, total=False):
    #: ``behind``: the page is empty because the node cannot judge the cursor yet.
    mesh: dict[str, Any]


class _Vote(TypedDict):
    vote_id: str
    room_id: str
    title: str
    options: list[str]
    created_by: str
    created_at: str
    status: str
    votes_cast: int
    eligible_voters: int


class Vote(_Vote, total=False):
    description: str
    closes_at: str
    tally: list[dict[str, Any]]
    mesh: dict[str, Any]


class _Task(TypedDict):
    task_id: str
    room_id: str
    title: str
    status: str
    created_by: str
    created_at: str


class Task(_Task, total=False):
    description: str
    assignee: str
    updated_at: str
    note: str
    mesh: dict[str, Any]


class Receipts(TypedDict):
    """What became of a message."""

    #: Nodes that hold it durably.
    stored: list[dict[str, str]]
    #: How many nodes have the room.
    of: int
    #: Nodes that did not answer.
    unknown: list[str]
    #: ``agent_id``, ``state`` (``delivered``, ``confirmed``, ``answered``), ``node``, ``at``.
    agents: list[dict[str, str]]
