"""One identity at one of several nodes: it registers, answers heartbeats, and comes back by itself."""

from __future__ import annotations

import asyncio
import contextlib
import json
import ssl
from dataclasses import dataclass, field
from typing import Any

from .errors import CallTimeout, ClawmeshError, Closed, ConnectionLost, Refused
from .events import CLOSED, DISCONNECTED, RECONNECTED, Event, EventQueue
from .policy import FRAME_SENT_BYTES_MAX, Policy
from .sealing import Secrets
from .wire import Wire, connect, split_endpoint, split_url

PROTOCOL_VERSION = 1

#: Commands of which a second execution changes nothing. Sends carry a dedup id, so that a mesh node keeps one.
REPEATABLE = frozenset(
    "ping join_room send_message thinking decision get_history search replay get_receipts ack room_tip list_rooms "
    "list_agents room_info set_room set_typing set_presence set_profile get_profile get_vote_status list_votes "
    "get_task list_tasks list_approvals get_approval list_subscriptions enable_subscription share_room unshare_room "
    "add_member remove_member retire_agent".split()
)
#: A refused registration that may be granted later.
PASSING = frozenset({"rate_limit_agents", "internal_error"})
#: Between two tries at one connection, of a node that is about to end it.
AGAIN_AFTER = 0.05


@dataclass
class Identity:
    """What an agent registers with."""

    key: str
    name: str
    agent_id: str | None = None
    draw: str | None = None
    capabilities: tuple[str, ...] = ()
    linger_secs: int | None = None
    events: tuple[str, ...] = ()
    #: The id that a node drew, which the agent keeps.
    given: str | None = field(default=None)

    def registration(self) -> dict[str, Any]:
        mesh: dict[str, Any] = {}
        if self.linger_secs is not None:
            mesh["linger_secs"] = self.linger_secs
        if self.events:
            mesh["events"] = list(self.events)
        payload: dict[str, Any] = {"key": self.key, "name": self.name, "protocol_version": PROTOCOL_VERSION}
        if self.capabilities:
            payload["capabilities"] = list(self.capabilities)
        agent_id = self.agent_id
        if agent_id is None and self.draw is not None:
            # Drawn again, of the same digits: the same id at every node.
            mesh["draw"] = self.draw
        elif agent_id is None:
            agent_id = self.given
        if agent_id is not None:
            payload |= {"agent_id": agent_id, "reconnect": True}
        if mesh:
            payload["mesh"] = mesh
        return payload


class Link:
    """See the module."""

    def __init__(
        self,
        addresses: tuple[str, ...],
        identity: Identity,
        secrets: Secrets,
        policy: Policy,
        tls: ssl.SSLContext | None,
    ) -> None:
        for address in addresses:
            if "://" in address:
                split_url(address)
            elif "/" not in address:
                split_endpoint(address)
        if not addresses:
            raise ValueError("no address of a node was given")
        self.identity = identity
        self.policy = policy
        self.rooms: set[str] = set()
        self._addresses = addresses
        self._at = 0
        self._secrets = secrets
        self._tls = tls
        self._wire: Wire | None = None
        self._up = asyncio.Event()
        self._closed: str | None = None
        self._pending: dict[str, asyncio.Future[dict[str, Any]]] = {}
        self._calls = 0
        self._queues: list[EventQueue] = []
        self._task: asyncio.Task[None] | None = None
        self._heard = 0.0

    @property
    def address(self) -> str:
        """Where the agent is, or was last."""
        return self._addresses[self._at]

    async def open(self) -> None:
        """Registers at the first address that takes the agent. Each is tried once."""
        wire, _ = await self._round()
        self._wire = wire
        self._up.set()
        self._task = asyncio.create_task(self._run(wire))

    async def close(self, reason: str = "the agent is closed") -> None:
        if self._task is not None:
            self._task.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await self._task
        self._end(reason)

    def subscribe(self) -> EventQueue:
        queue = EventQueue()
        if self._closed is not None:
            queue.push(Event(CLOSED, {"reason": self._closed}))
        self._queues.append(queue)
        return queue

    def unsubscribe(self, queue: EventQueue) -> None:
        with contextlib.suppress(ValueError):
            self._queues.remove(queue)

    async def call(self, kind: str, payload: dict[str, Any], timeout: float | None = None) -> dict[str, Any]:
        """Asks, and waits for the answer, over reconnects where a repeat does no harm."""
        try:
            return await asyncio.wait_for(self._asked(kind, payload), timeout or self.policy.call_timeout)
        except asyncio.TimeoutError:
            raise CallTimeout(f"no answer to {kind} in time") from None

    async def _asked(self, kind: str, payload: dict[str, Any]) -> dict[str, Any]:
        while True:
            await self._up.wait()
            if self._closed is not None:
                raise Closed(self._closed)
            if self._wire is None:
                continue
            try:
                answer = await self._once(self._wire, kind, payload)
            except ConnectionLost:
                if kind not in REPEATABLE:
                    raise
                await asyncio.sleep(AGAIN_AFTER)
                continue
            self._note(kind, payload)
            return answer

    async def _once(self, wire: Wire, kind: str, payload: dict[str, Any]) -> dict[str, Any]:
        self._calls += 1
        frame_id = f"c{self._calls}"
        text = json.dumps({"id": frame_id, "type": kind, "payload": payload}, ensure_ascii=False)
        if len(text.encode()) >= FRAME_SENT_BYTES_MAX:
            raise ClawmeshError(f"a request has at most {FRAME_SENT_BYTES_MAX} bytes: send less at once")
        answered = self._pending[frame_id] = asyncio.get_running_loop().create_future()
        try:
            wire.write(text)
            try:
                await wire.drain()
            except OSError:
                # The reader finds the end, too, and fails this call with all others.
                wire.abort()
            return self._read(await answered)
        finally:
            self._pending.pop(frame_id, None)

    def _read(self, frame: dict[str, Any]) -> dict[str, Any]:
        payload: dict[str, Any] = frame.get("payload") or {}
        if frame["type"] == "error":
            reason = (payload.get("mesh") or {}).get("reason")
            if reason == "unknown":
                raise ConnectionLost("the node could not say whether it acted: look before you repeat")
            raise Refused(payload["code"], payload["message"], reason)
        self._secrets.opened(payload)
        return payload

    def _note(self, kind: str, payload: dict[str, Any]) -> None:
        if kind == "join_room":
            self.rooms.add(payload["room_id"])
        elif kind == "leave_room":
            self.rooms.discard(payload["room_id"])

    # The connection and its successors.

    async def _run(self, wire: Wire) -> None:
        loop = asyncio.get_running_loop()
        attempt = 0
        try:
            while True:
                since = loop.time()
                reason = await self._serve(wire)
                self._lose(wire)
                self._push(Event(DISCONNECTED, {"reason": reason}))
                # Two agents of one identity throw each other out: pauses must grow then, too.
                if loop.time() - since > self.policy.retry_max:
                    attempt = 0
                while True:
                    await asyncio.sleep(self.policy.pause(attempt))
                    attempt += 1
                    try:
                        wire, restored = await self._round()
                        lost = await self._rejoin(wire, restored)
                        break
                    except Refused as error:
                        if error.code not in PASSING:
                            self._end(str(error))
                            return
                    except (OSError, ClawmeshError, ValueError, asyncio.TimeoutError):
                        pass
                self._wire = wire
                self._up.set()
                self._push(Event(RECONNECTED, {"rooms_lost": lost}))
        except Exception as error:
            # A fault of this package: nobody may wait for ever.
            self._end(f"the client failed: {error!r}")
            raise
        finally:
            self._lose(wire)

    def _lose(self, wire: Wire) -> None:
        self._wire = None
        if self._closed is None:
            self._up.clear()
        wire.close()
        lost = ConnectionLost("the connection was lost before the node answered: look before you repeat")
        for answered in self._pending.values():
            if not answered.done():
                answered.set_exception(lost)

    def _end(self, reason: str) -> None:
        if self._closed is None:
            self._closed = reason
            self._push(Event(CLOSED, {"reason": reason}))
            # Those that wait for a connection look at `_closed`.
            self._up.set()

    async def _serve(self, wire: Wire) -> str:
        """Reads until the end, and says why it came."""
        loop = asyncio.get_running_loop()
        self._heard = loop.time()
        watch = asyncio.create_task(self._watch(wire))
        try:
            while True:
                text = await wire.receive()
                if text is None:
                    return "the node closed the connection"
                self._heard = loop.time()
                frame = json.loads(text)
                answered = self._pending.get(frame.get("reply_to") or "")
                if answered is not None and not answered.done():
                    answered.set_result(frame)
                elif "reply_to" not in frame:
                    self._on_event(wire, frame)
        except (OSError, ValueError, KeyError, AttributeError) as error:
            return f"the connection is lost: {error}"
        finally:
            watch.cancel()

    async def _watch(self, wire: Wire) -> None:
        """Ends a connection from which nothing comes any more."""
        loop = asyncio.get_running_loop()
        probed = 0.0
        while True:
            if loop.time() >= self._heard + self.policy.dead_after:
                wire.abort()
                return
            probe_at = self._heard + self.policy.probe_after
            if loop.time() >= probe_at and probed != self._heard:
                probed = self._heard
                wire.write(json.dumps({"type": "ping", "payload": {}}))
            until = probe_at if probed != self._heard else self._heard + self.policy.dead_after
            await asyncio.sleep(max(until - loop.time(), 0.01))

    def _on_event(self, wire: Wire, frame: dict[str, Any]) -> None:
        kind, payload = str(frame["type"]), frame.get("payload") or {}
        if kind == "ping":
            wire.write(json.dumps({"type": "pong", "reply_to": frame.get("id"), "payload": {}}))
        elif kind not in ("pong", "error"):
            self._secrets.opened(payload)
            self._push(Event(kind, payload))

    def _push(self, event: Event) -> None:
        for queue in self._queues:
            queue.push(event)

    # Registering.

    async def _round(self) -> tuple[Wire, list[str]]:
        """Tries each address once. Fails for good only if all of them refuse for good."""
        failure: BaseException | None = None
        for _ in self._addresses:
            try:
                return await self._register(self.address)
            except (OSError, ClawmeshError, ValueError, asyncio.TimeoutError) as error:
                passing = not isinstance(error, Refused) or error.code in PASSING
                if failure is None or passing or (isinstance(failure, Refused) and failure.code not in PASSING):
                    failure = error
            self._at = (self._at + 1) % len(self._addresses)
        assert failure is not None
        if isinstance(failure, ClawmeshError):
            raise failure
        raise ConnectionLost(f"cannot attach to {', '.join(self._addresses)}: {failure!r}") from failure

    async def _register(self, address: str) -> tuple[Wire, list[str]]:
        wire = await asyncio.wait_for(connect(address, self._tls), self.policy.connect_timeout)
        try:
            registered = await self._exchange(wire, "register", self.identity.registration())
        except BaseException:
            wire.close()
            raise
        self.identity.given = registered["agent_id"]
        return wire, list(registered.get("rooms") or [])

    async def _rejoin(self, wire: Wire, restored: list[str]) -> list[str]:
        """Joins the rooms that the node has not restored. Returns those that are closed to the agent."""
        lost = []
        for room_id in sorted(self.rooms - set(restored)):
            try:
                await self._exchange(wire, "join_room", {"room_id": room_id})
            except Refused:
                self.rooms.discard(room_id)
                lost.append(room_id)
        return lost

    async def _exchange(self, wire: Wire, kind: str, payload: dict[str, Any]) -> dict[str, Any]:
        """Asks on a connection that nobody else uses yet."""

        async def asked() -> dict[str, Any]:
            wire.write(json.dumps({"id": "link", "type": kind, "payload": payload}))
            await wire.drain()
            while True:
                text = await wire.receive()
                if text is None:
                    raise ConnectionLost("the node closed the connection")
                frame = json.loads(text)
                if frame.get("reply_to") == "link":
                    return self._read(frame)
                self._on_event(wire, frame)

        return await asyncio.wait_for(asked(), self.policy.connect_timeout)
