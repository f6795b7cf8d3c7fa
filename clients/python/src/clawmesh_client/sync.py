"""An agent for programs that block: the same as :class:`AsyncAgent`, whose loop runs on a thread of its own."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Coroutine, Iterator, Sequence
from types import TracebackType
from typing import Any, TypeVar

from .aio import AsyncAgent, AsyncEvents, AsyncMessages, AsyncWriting
from .cursor import CursorFile
from .errors import Closed
from .events import CLOSED, Event
from .policy import Policy
from .sealing import Secrets
from .types import AgentInfo, Message, Receipts, Room, RoomInfo, Task, Vote

T = TypeVar("T")


class _Loop:
    """A loop on a thread, and the way to it."""

    def __init__(self, name: str) -> None:
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name=name, daemon=True)
        self._thread.start()

    def do(self, work: Coroutine[Any, Any, T]) -> T:
        if self._loop.is_closed():
            work.close()
            raise Closed("the agent is closed")
        future = asyncio.run_coroutine_threadsafe(work, self._loop)
        try:
            return future.result()
        except BaseException:
            # Ctrl-C, too: the work is not to go on behind the caller's back.
            future.cancel()
            raise

    def end(self) -> None:
        if not self._loop.is_closed():
            self._loop.call_soon_threadsafe(self._loop.stop)
            self._thread.join()
            self._loop.close()


class Agent:
    """A registered agent at one of several nodes. The arguments are those of :class:`AsyncAgent`.

    It connects when it is made. Use it as ``with Agent(…) as agent``, or call :meth:`close`. Several threads may
    use it.
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
        async def opened() -> AsyncAgent:
            agent = AsyncAgent(
                *addresses,
                name=name,
                key=key,
                agent_id=agent_id,
                draw=draw,
                capabilities=capabilities,
                linger_secs=linger_secs,
                events=events,
                room_key=room_key,
                ca_file=ca_file,
                policy=policy,
            )
            return await agent.open()

        self._loop = _Loop(f"{name} at its node")
        self._do = self._loop.do
        try:
            self._agent = self._do(opened())
        except BaseException:
            self._loop.end()
            raise

    def __enter__(self) -> Agent:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Leaves. Those who wait for an answer or an event get :class:`Closed`."""
        try:
            self._do(self._agent.close())
        except Closed:
            return
        self._loop.end()

    @property
    def name(self) -> str:
        return self._agent.name

    @property
    def agent_id(self) -> str:
        """The id that it chose, or that a node drew."""
        return self._agent.agent_id

    @property
    def address(self) -> str:
        """The node at which it is, or was last."""
        return self._agent.address

    @property
    def secrets(self) -> Secrets:
        """The secrets of rooms: ``agent.secrets.set_room(room_id, secret)``."""
        return self._agent.secrets

    def call(self, kind: str, payload: dict[str, Any] | None = None, timeout: float | None = None) -> dict[str, Any]:
        """Any command of the protocol: its answer's payload, or :class:`Refused`."""
        return self._do(self._agent.call(kind, payload, timeout))

    def events(self) -> Events:
        """Events from now on, for one reader."""

        async def made() -> AsyncEvents:
            return self._agent.events()

        return Events(self._loop, self._do(made()))

    def messages(self, room_id: str, *, after: int | CursorFile | None = None) -> Messages:
        """Joins, and gives every message of the room once, in rising order, over lost connections.

        ``after``: a number (0 = from the beginning), or a cursor file, which is written when the message has been
        worked on, that is, when the next one is asked for. Without it: from now on.
        """
        return Messages(self._loop, self._do(self._agent.messages(room_id, after=after)))

    def writing(self, room_id: str, *, reply_to: str | None = None) -> Writing:
        """An answer that others see while it is written: ``with agent.writing(room) as answer``."""
        return Writing(self._loop, self._agent.writing(room_id, reply_to=reply_to))

    def create_room(
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
        return self._do(
            self._agent.create_room(
                name,
                description=description,
                parent_id=parent_id,
                ephemeral=ephemeral,
                public=public,
                encrypted=encrypted,
            )
        )

    def join(self, room_id: str) -> None:
        """Joins, and joins again after each reconnect."""
        self._do(self._agent.join(room_id))

    def leave(self, room_id: str) -> None:
        self._do(self._agent.leave(room_id))

    def rooms(self, parent_id: str | None = None) -> list[Room]:
        return self._do(self._agent.rooms(parent_id))

    def room_info(self, room_id: str) -> RoomInfo:
        return self._do(self._agent.room_info(room_id))

    def agents(self, room_id: str | None = None) -> list[AgentInfo]:
        """Members of a room in join order, or the agents of this key."""
        return self._do(self._agent.agents(room_id))

    def direct_room(self, agent_id: str) -> Room:
        """The room of two agents, which nobody else reads."""
        return self._do(self._agent.direct_room(agent_id))

    def send(
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
        return self._do(
            self._agent.send(
                room_id,
                content,
                reply_to=reply_to,
                mentions=mentions,
                metadata=metadata,
                send_id=send_id,
                durable=durable,
                durable_wait_ms=durable_wait_ms,
            )
        )

    def thinking(self, room_id: str, content: str) -> Message:
        """A thought: in history, and of no effect on the turn."""
        return self._do(self._agent.thinking(room_id, content))

    def history(
        self, room_id: str, *, limit: int = 50, since_seq: int | None = None, before: str | None = None
    ) -> list[Message]:
        """Oldest first: the newest ``limit``, or the first ``limit`` after ``since_seq``."""
        return self._do(self._agent.history(room_id, limit=limit, since_seq=since_seq, before=before))

    def tip(self, room_id: str) -> int:
        """The number of the newest message, 0 without one."""
        return self._do(self._agent.tip(room_id))

    def wait(self, room_id: str, *, after: int | CursorFile | None = None, timeout: float = 60.0) -> list[Message]:
        """The next messages, at least one unless ``timeout`` seconds pass. A cursor file is written before."""
        return self._do(self._agent.wait(room_id, after=after, timeout=timeout))

    def receipts(self, room_id: str, message_id: str) -> Receipts:
        """Which nodes hold a message, and which agents have it."""
        return self._do(self._agent.receipts(room_id, message_id))

    def ack(self, room_id: str, seq: int) -> None:
        """Confirms all messages up to a number."""
        self._do(self._agent.ack(room_id, seq))

    def search(self, text: str, *, room_id: str | None = None, limit: int = 20) -> list[Message]:
        """Messages that have all these words, the newest first: one page."""
        return self._do(self._agent.search(text, room_id=room_id, limit=limit))

    def set_presence(self, status: str, detail: str | None = None, progress: int | None = None) -> None:
        """``idle``, ``waiting``, ``working`` or ``thinking``."""
        self._do(self._agent.set_presence(status, detail, progress))

    def set_typing(self, room_id: str, typing: bool = True) -> None:
        self._do(self._agent.set_typing(room_id, typing))

    def create_vote(
        self,
        room_id: str,
        title: str,
        options: Sequence[str],
        *,
        description: str | None = None,
        duration_secs: int | None = None,
    ) -> Vote:
        """A sealed vote of the members of this moment. Its end comes as the event ``vote_result``."""
        return self._do(
            self._agent.create_vote(
                room_id,
                title,
                options,
                description=description,
                duration_secs=duration_secs,
            )
        )

    def cast_vote(self, vote_id: str, option_index: int) -> None:
        self._do(self._agent.cast_vote(vote_id, option_index))

    def vote(self, vote_id: str) -> Vote:
        """Counts while it is open, the tally once it is closed."""
        return self._do(self._agent.vote(vote_id))

    def votes(self, room_id: str, limit: int = 20) -> list[Vote]:
        return self._do(self._agent.votes(room_id, limit))

    def elect_leader(self, room_id: str) -> None:
        """Begins an election. ``leader_elected`` comes after 2 s."""
        self._do(self._agent.elect_leader(room_id))

    def decline_election(self, room_id: str) -> None:
        self._do(self._agent.decline_election(room_id))

    def decide(self, room_id: str, content: str, metadata: dict[str, Any] | None=None) -> str:
        """A decision of the leader: the message's id."""
        return self._do(self._agent.decide(room_id, content, metadata))

    def assign_task(
        self, room_id: str, title: str, *, description: str | None = None, assignee: str | None = None
    ) -> Task:
        return self._do(self._agent.assign_task(room_id, title, description=description, assignee=assignee))

    def claim_task(self, task_id: str) -> Task:
        """Takes a task that nobody has; of two that try at once one gets :class:`Refused`."""
        return self._do(self._agent.claim_task(task_id))

    def update_task(
        self, task_id: str, *, status: str | None = None, note: str | None = None, assignee: str | None = None
    ) -> Task:
        """``status``: ``pending``, ``in_progress``, ``completed`` or ``blocked``."""
        return self._do(self._agent.update_task(task_id, status=status, note=note, assignee=assignee))

    def tasks(self, room_id: str, status: str | None = None) -> list[Task]:
        return self._do(self._agent.tasks(room_id, status))


class Events:
    """Events for one reader, since it was made."""

    def __init__(self, loop: _Loop, events: AsyncEvents) -> None:
        self._loop = loop
        self._events = events

    def __iter__(self) -> Iterator[Event]:
        while True:
            event = self.next()
            if event.type == CLOSED:
                return
            yield event

    def next(self, timeout: float | None = None) -> Event:
        """The next event, or :class:`CallTimeout`."""
        return self._loop.do(self._events.next(timeout))

    def find(
        self, kind: str, *, where: Callable[[dict[str, Any]], bool] = lambda payload: True, timeout: float = 30.0
    ) -> dict[str, Any]:
        """The payload of the next event of this type. Those before it are dropped."""
        return self._loop.do(self._events.find(kind, where=where, timeout=timeout))


class Messages:
    """Every message of a room once, in rising order."""

    def __init__(self, loop: _Loop, messages: AsyncMessages) -> None:
        self._loop = loop
        self._messages = messages

    def __iter__(self) -> Messages:
        return self

    def __next__(self) -> Message:
        return self._loop.do(self._messages.next())

    def batch(self, timeout: float) -> list[Message]:
        """At least one message unless the time is over, and those that are here already."""
        return self._loop.do(self._messages.batch(timeout))

    @property
    def cursor(self) -> int:
        """The number of the last message that was given."""
        return self._messages.cursor

    def save(self) -> None:
        """Writes the cursor file, if there is one: everything that was given is worked on."""
        self._messages.save()


class Writing:
    """An answer that is shown while it is written, and sent when it is whole."""

    def __init__(self, loop: _Loop, writing: AsyncWriting) -> None:
        self._loop = loop
        self._writing = writing

    def __enter__(self) -> Writing:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if kind is None and self._writing.message is None:
            self.send()

    @property
    def message(self) -> Message | None:
        """The message, once it is sent."""
        return self._writing.message

    def write(self, text: str) -> None:
        """More of the text."""
        self._loop.do(self._writing.write(text))

    def tool_call(self, tool: str, input: Any = None) -> None:
        self._loop.do(self._writing.tool_call(tool, input))

    def tool_result(self, tool: str, result: Any = None) -> None:
        self._loop.do(self._writing.tool_result(tool, result))

    def activity(self, content: str) -> None:
        """A word about the work, no part of the text."""
        self._loop.do(self._writing.activity(content))

    def send(self, **options: Any) -> Message:
        """The whole, as a message; ``options`` are those of :meth:`Agent.send`."""
        return self._loop.do(self._writing.send(**options))
