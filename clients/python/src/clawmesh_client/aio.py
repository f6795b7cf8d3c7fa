"""An agent for asyncio."""

from __future__ import annotations

import asyncio
import collections
import contextlib
import secrets as chance
import ssl
from collections.abc import Callable, Sequence
from types import TracebackType
from typing import Any, cast

from .cursor import CursorFile
from .errors import CallTimeout, ClawmeshError, RoomLost
from .events import CLOSED, MISSED, RECONNECTED, Event, EventQueue
from .link import Identity, Link
from .policy import IDS_REMEMBERED, PAGE_MESSAGES, PIECE_BYTES_MAX, Policy
from .sealing import Secrets
from .types import AgentInfo, Message, Receipts, Room, RoomInfo, Task, Vote
from .wire import DEFAULT_ADDRESS, read_api_key


def _given(**fields: Any) -> dict[str, Any]:
    return {name: value for name, value in fields.items() if value is not None}


class AsyncAgent:
    """A registered agent at one of several nodes.

    ``addresses``: ``HOST:PORT``, ``ws://…``, ``wss://…``, or the path of a socket; the first that answers is
    taken, and the next one when it is lost. Without any: the socket of this user's node. ``key``: without one,
    that of this user's node. ``agent_id`` is a stable identity; without one a node draws it, and the agent keeps
    it over reconnects. ``draw`` (12 hexadecimal digits): the same id at every node, without a claim.
    ``room_key``: the secret that the agents of all its rooms share. ``events``: ``stream`` and ``receipt`` are
    pushed to those alone that ask for them. ``ca_file``: whose word counts for a ``wss://`` node.

    Use it as ``async with AsyncAgent(…) as agent``, or call :meth:`open` and :meth:`close`.
    """

    def __init__(
        self,
        *addresses: str,
        name: str,
        key: str | None = None,
        agent_id: str | None = None,
        draw: str | None = None,
        capabilities: Sequence[str] = (),
        linger_secs: int | None = None,
        events: Sequence[str] = (),
        room_key: str | None = None,
        ca_file: str | None = None,
        policy: Policy | None = None,
    ) -> None:
        self.name = name
        #: The secrets of rooms: ``agent.secrets.set_room(room_id, secret)``.
        self.secrets = Secrets(room_key)
        identity = Identity(
            key=read_api_key() if key is None else key,
            name=name,
            agent_id=agent_id,
            draw=draw,
            capabilities=tuple(capabilities),
            linger_secs=linger_secs,
            events=tuple(events),
        )
        tls = None if ca_file is None else ssl.create_default_context(cafile=ca_file)
        self._link = Link(addresses or (DEFAULT_ADDRESS,), identity, self.secrets, policy or Policy(), tls)

    async def __aenter__(self) -> AsyncAgent:
        return await self.open()

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    async def open(self) -> AsyncAgent:
        """Connects and registers. Each address is tried once."""
        await self._link.open()
        return self

    async def close(self) -> None:
        """Leaves. Those who wait for an answer or an event get :class:`Closed`."""
        await self._link.close()

    @property
    def agent_id(self) -> str:
        """The id that it chose, or that a node drew."""
        return self._link.identity.given or ""

    @property
    def address(self) -> str:
        """The node at which it is, or was last."""
        return self._link.address

    async def call(self, kind: str, payload: dict[str, Any] | None = None, timeout: float | None = None) -> dict[str, Any]:
        """Any command of the protocol: its answer's payload, or :class:`Refused`."""
        return await self._link.call(kind, payload or {}, timeout)

    # Events.

    def events(self) -> AsyncEvents:
        """Events from now on, for one reader."""
        return AsyncEvents(self._link)

    # Rooms.

    async def create_room(
        self,
        name: str,
        *,
        description: str | None = None,
        parent_id: str | None = None,
        ephemeral: bool | None = None,
        public: bool | None = None,
        encrypted: bool | None = None,
    ) -> Room:
        """The creator is not in the room yet."""
        fields = _given(
            name=name,
            description=description,
            parent_id=parent_id,
            ephemeral=ephemeral,
            public=public,
            encrypted=encrypted,
        )
        return cast(Room, await self.call("create_room", fields))

    async def join(self, room_id: str) -> None:
        """Joins, and joins again after each reconnect."""
        await self.call("join_room", {"room_id": room_id})

    async def leave(self, room_id: str) -> None:
        await self.call("leave_room", {"room_id": room_id})

    async def rooms(self, parent_id: str | None = None) -> list[Room]:
        return cast("list[Room]", (await self.call("list_rooms", _given(parent_id=parent_id)))["rooms"])

    async def room_info(self, room_id: str) -> RoomInfo:
        return cast(RoomInfo, await self.call("room_info", {"room_id": room_id}))

    async def agents(self, room_id: str | None = None) -> list[AgentInfo]:
        """Members of a room in join order, or the agents of this key."""
        return cast("list[AgentInfo]", (await self.call("list_agents", _given(room_id=room_id)))["agents"])

    async def direct_room(self, agent_id: str) -> Room:
        """The room of two agents, which nobody else reads."""
        return await self.create_room(f"dm:{agent_id}")

    # Messages.

    async def send(
        self,
        room_id: str,
        content: str,
        *,
        reply_to: str | None = None,
        mentions: Sequence[str] | None = None,
        metadata: Any = None,
        send_id: str | None = None,
        durable: int | None = None,
        durable_wait_ms: int | None = None,
    ) -> Message:
        """Says something. The message has its ``seq``.

        ``send_id`` names this send over all its repeats, also those of another process within 10 minutes: it is
        one message. Without one it is drawn. ``durable``: the answer waits until so many nodes hold the message
        on their disks, or ``durable_wait_ms`` are over; ``mesh.durable`` says how many do.
        """
        mesh = _given(dedup=send_id or chance.token_hex(16), durable=durable, durable_wait_ms=durable_wait_ms)
        fields = _given(
            room_id=room_id,
            content=self.secrets.sealed(room_id, content),
            reply_to=reply_to,
            mentions=None if mentions is None else list(mentions),
            metadata=metadata,
            mesh=mesh,
        )
        return cast(Message, await self.call("send_message", fields))

    async def thinking(self, room_id: str, content: str) -> Message:
        """A thought: in history, and of no effect on the turn."""
        fields = {"room_id": room_id, "content": self.secrets.sealed(room_id, content)}
        return cast(Message, await self.call("thinking", fields | {"mesh": {"dedup": chance.token_hex(16)}}))

    async def history(
        self, room_id: str, *, limit: int = 50, since_seq: int | None = None, before: str | None = None
    ) -> list[Message]:
        """Oldest first: the newest ``limit``, or the first ``limit`` after ``since_seq``."""
        fields = _given(room_id=room_id, limit=limit, since_seq=since_seq, before=before)
        return cast("list[Message]", (await self.call("get_history", fields))["messages"])

    async def tip(self, room_id: str) -> int:
        """The number of the newest message, 0 without one."""
        return int((await self.call("room_tip", {"room_id": room_id}))["seq"])

    async def messages(self, room_id: str, *, after: int | CursorFile | None = None) -> AsyncMessages:
        """Joins, and gives every message of the room once, in rising order, over lost connections.

        ``after``: a number (0 = from the beginning), or a cursor file, which is written when the message has been
        worked on, that is, when the next one is asked for. Without it: from now on.
        """
        return await AsyncMessages.open(self, room_id, after)

    async def wait(
        self, room_id: str, *, after: int | CursorFile | None = None, timeout: float = 60.0
    ) -> list[Message]:
        """The next messages, at least one unless ``timeout`` seconds pass. A cursor file is written before."""
        stream = await self.messages(room_id, after=after)
        try:
            return await stream.batch(timeout)
        finally:
            stream.close()

    async def receipts(self, room_id: str, message_id: str) -> Receipts:
        """Which nodes hold a message, and which agents have it."""
        fields = {"room_id": room_id, "message_id": message_id}
        return cast(Receipts, await self.call("get_receipts", fields))

    async def ack(self, room_id: str, seq: int) -> None:
        """Confirms all messages up to a number."""
        await self.call("ack", {"room_id": room_id, "seq": seq})

    def writing(self, room_id: str, *, reply_to: str | None = None) -> AsyncWriting:
        """An answer that others see while it is written: ``async with agent.writing(room) as answer``."""
        return AsyncWriting(self, room_id, reply_to)

    async def search(self, text: str, *, room_id: str | None = None, limit: int = 20) -> list[Message]:
        """Messages that have all these words, the newest first: one page."""
        fields = _given(text=text, room_id=room_id, limit=limit)
        return cast("list[Message]", (await self.call("search", fields))["messages"])

    async def set_presence(self, status: str, detail: str | None = None, progress: int | None = None) -> None:
        """``idle``, ``waiting``, ``working`` or ``thinking``."""
        await self.call("set_presence", _given(status=status, status_detail=detail, progress=progress))

    async def set_typing(self, room_id: str, typing: bool = True) -> None:
        await self.call("set_typing", {"room_id": room_id, "typing": typing})

    # Votes and leaders.

    async def create_vote(
        self,
        room_id: str,
        title: str,
        options: Sequence[str],
        *,
        description: str | None = None,
        duration_secs: int | None = None,
    ) -> Vote:
        """A sealed vote of the members of this moment. Its end comes as the event ``vote_result``."""
        fields = _given(
            room_id=room_id,
            title=title,
            options=list(options),
            description=description,
            duration_secs=duration_secs,
        )
        return cast(Vote, await self.call("create_vote", fields))

    async def cast_vote(self, vote_id: str, option_index: int) -> None:
        await self.call("cast_vote", {"vote_id": vote_id, "option_index": option_index})

    async def vote(self, vote_id: str) -> Vote:
        """Counts while it is open, the tally once it is closed."""
        return cast(Vote, await self.call("get_vote_status", {"vote_id": vote_id}))

    async def votes(self, room_id: str, limit: int = 20) -> list[Vote]:
        return cast("list[Vote]", (await self.call("list_votes", {"room_id": room_id, "limit": limit}))["votes"])

    async def elect_leader(self, room_id: str) -> None:
        """Begins an election. ``leader_elected`` comes after 2 s."""
        await self.call("elect_leader", {"room_id": room_id})

    async def decline_election(self, room_id: str) -> None:
        await self.call("decline_election", {"room_id": room_id})

    async def decide(self, room_id: str, content: str, metadata: dict[str, Any] | None = None) -> str:
        """A decision of the leader: the message's id."""
        fields = _given(
            room_id=room_id,
            content=self.secrets.sealed(room_id, content),
            metadata=metadata,
            mesh={"dedup": chance.token_hex(16)},
        )
        return str((await self.call("decision", fields))["message_id"])

    # Tasks.

    async def assign_task(
        self, room_id: str, title: str, *, description: str | None = None, assignee: str | None = None
    ) -> Task:
        fields = _given(room_id=room_id, title=title, description=description, assignee=assignee)
        return cast(Task, await self.call("assign_task", fields))

    async def claim_task(self, task_id: str) -> Task:
        """Takes a task that nobody has; of two that try at once one gets :class:`Refused`."""
        fields = {"task_id": task_id, "assignee": self.agent_id, "if_assignee": None}
        return cast(Task, await self.call("update_task", fields))

    async def update_task(
        self, task_id: str, *, status: str | None = None, note: str | None = None, assignee: str | None = None
    ) -> Task:
        """``status``: ``pending``, ``in_progress``, ``completed`` or ``blocked``."""
        fields = _given(task_id=task_id, status=status, note=note, assignee=assignee)
        return cast(Task, await self.call("update_task", fields))

    async def tasks(self, room_id: str, status: str | None = None) -> list[Task]:
        return cast("list[Task]", (await self.call("list_tasks", _given(room_id=room_id, status=status)))["tasks"])


class AsyncEvents:
    """Events for one reader, since it was made."""

    def __init__(self, link: Link) -> None:
        self._link = link
        self._queue: EventQueue = link.subscribe()

    def __aiter__(self) -> AsyncEvents:
        return self

    async def __anext__(self) -> Event:
        event = await self.next()
        if event.type == CLOSED:
            raise StopAsyncIteration
        return event

    async def next(self, timeout: float | None = None) -> Event:
        """The next event, or :class:`CallTimeout`."""
        try:
            return await asyncio.wait_for(self._queue.next(), timeout)
        except asyncio.TimeoutError:
            raise CallTimeout(f"no event within {timeout} s") from None

    async def find(
        self, kind: str, *, where: Callable[[dict[str, Any]], bool] = lambda payload: True, timeout: float = 30.0
    ) -> dict[str, Any]:
        """The payload of the next event of this type. Those before it are dropped."""

        async def found() -> dict[str, Any]:
            while True:
                event = await self._queue.next()
                if event.type == kind and where(event.payload):
                    return event.payload

        try:
            return await asyncio.wait_for(found(), timeout)
        except asyncio.TimeoutError:
            raise CallTimeout(f"no {kind} within {timeout} s") from None

    def close(self) -> None:
        """Drops the queue."""
        self._link.unsubscribe(self._queue)


class AsyncMessages:
    """Every message of a room once, in rising order.

    It joins first, so that live messages come, and then pages from its cursor. A live message is the next one
    only if its number follows the cursor directly; after a jump, a reconnect or dropped events it pages again.
    """

    def __init__(self, agent: AsyncAgent, room_id: str, cursor: int, file: CursorFile | None) -> None:
        self._agent = agent
        self._queue = agent._link.subscribe()
        self.room_id = room_id
        #: The number of the last message that was given.
        self.cursor = cursor
        self._file = file
        self._saved: int | None = None if file is None else file.read()
        self._ready: collections.deque[Message] = collections.deque()
        self._ahead: Message | None = None
        self._behind = True
        self._ids: dict[str, None] = {}

    @classmethod
    async def open(cls, agent: AsyncAgent, room_id: str, after: int | CursorFile | None) -> AsyncMessages:
        file = after if isinstance(after, CursorFile) else None
        start = after.read() if isinstance(after, CursorFile) else after
        await agent.join(room_id)
        if start is None:
            start = await agent.tip(room_id)
            if file is not None:
                file.write(start)
        return cls(agent, room_id, start, file)

    def __aiter__(self) -> AsyncMessages:
        return self

    async def __anext__(self) -> Message:
        return await self.next()

    async def next(self) -> Message:
        """The next message. The one before counts as worked on: the cursor file is written.

        One's own are given, too, in their place: with the next message of somebody else.
        """
        self.save()
        while True:
            if self._ready:
                message = self._ready.popleft()
            elif self._behind:
                await self._page()
                continue
            elif self._ahead is not None:
                message, self._ahead = self._ahead, None
            else:
                live = self._live(await self._queue.next())
                if live is None:
                    continue
                message = live
            if message["seq"] <= self.cursor:
                continue
            self.cursor = message["seq"]
            if self._is_new(message["message_id"]):
                return message

    async def batch(self, timeout: float) -> list[Message]:
        """At least one message unless the time is over, and those that are here already."""
        batch: list[Message] = []
        with contextlib.suppress(asyncio.TimeoutError):
            batch.append(await asyncio.wait_for(self.next(), timeout))
            while self._ready:
                batch.append(await self.next())
        self.save()
        return batch

    def save(self) -> None:
        """Writes the cursor file, if there is one: everything that was given is worked on."""
        if self._file is not None and self._saved != self.cursor:
            self._file.write(self.cursor)
            self._saved = self.cursor

    def close(self) -> None:
        """Ends the stream. The agent stays in the room."""
        self._agent._link.unsubscribe(self._queue)

    async def _page(self) -> None:
        try:
            page = await self._agent.history(self.room_id, limit=PAGE_MESSAGES, since_seq=self.cursor)
        except CallTimeout:
            # A long outage: it is still behind.
            return
        last = self.cursor
        for message in page:
            if message["seq"] > last:
                last = message["seq"]
                self._ready.append(message)
        # A node may cut a page short: only an empty one is the end.
        self._behind = bool(self._ready)

    def _live(self, event: Event) -> Message | None:
        if event.type in ("message_received", "thinking"):
            message = cast(Message, event.payload)
            if message["room_id"] != self.room_id or message["seq"] <= self.cursor:
                return None
            if message["seq"] == self.cursor + 1:
                return message
            self._behind, self._ahead = True, message
        elif event.type == RECONNECTED:
            if self.room_id in event.payload["rooms_lost"]:
                raise RoomLost(f"{self.room_id} is gone, or closed to this key")
            self._behind = True
        elif event.type in (MISSED, "decision_made"):
            self._behind = True
        return None

    def _is_new(self, message_id: str) -> bool:
        if message_id in self._ids:
            return False
        self._ids[message_id] = None
        if len(self._ids) > IDS_REMEMBERED:
            del self._ids[next(iter(self._ids))]
        return True


class AsyncWriting:
    """An answer that is shown while it is written, and sent when it is whole.

    Pieces are nothing but liveliness: one that is lost or refused is left out, and the message has the whole.
    In rooms with a secret no piece leaves.
    """

    def __init__(self, agent: AsyncAgent, room_id: str, reply_to: str | None) -> None:
        self._agent = agent
        self._room_id = room_id
        self._reply_to = reply_to
        self._stream_id = chance.token_hex(16)
        self._text: list[str] = []
        #: The message, once it is sent.
        self.message: Message | None = None

    async def __aenter__(self) -> AsyncWriting:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if kind is None and self.message is None:
            await self.send()

    async def write(self, text: str) -> None:
        """More of the text."""
        self._text.append(text)
        # A character has at most four bytes.
        step = PIECE_BYTES_MAX // 4
        for at in range(0, len(text), step):
            await self._piece(kind="chunk", content=text[at : at + step])

    async def tool_call(self, tool: str, input: Any = None) -> None:
        await self._piece(kind="tool_call", tool=tool, input=input)

    async def tool_result(self, tool: str, result: Any = None) -> None:
        await self._piece(kind="tool_result", tool=tool, result=result)

    async def activity(self, content: str) -> None:
        """A word about the work, no part of the text."""
        await self._piece(kind="activity", content=content)

    async def send(self, **options: Any) -> Message:
        """The whole, as a message; ``options`` are those of :meth:`AsyncAgent.send`."""
        options.setdefault("reply_to", self._reply_to)
        options.setdefault("send_id", self._stream_id)
        self.message = await self._agent.send(self._room_id, "".join(self._text), **options)
        return self.message

    async def _piece(self, **fields: Any) -> None:
        if self._agent.secrets.applies(self._room_id):
            return
        named = {"room_id": self._room_id, "stream_id": self._stream_id}
        with contextlib.suppress(ClawmeshError):
            await self._agent.call("stream", named | _given(reply_to=self._reply_to, **fields))
