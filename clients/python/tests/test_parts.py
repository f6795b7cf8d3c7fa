"""The parts that need no node: sealing, cursors, addresses, and a link against a server of this test."""

import asyncio
import json
import pathlib
import tempfile
import unittest

from clawmesh_client import AsyncAgent, Closed, ConnectionLost, CursorError, CursorFile, Policy, Refused
from clawmesh_client.events import Event, EventQueue
from clawmesh_client.policy import EVENTS_KEPT
from clawmesh_client.sealing import RoomKey, SealError, Secrets
from clawmesh_client.wire import split_endpoint, split_url

VECTORS = pathlib.Path(__file__).parents[2] / "sealing-vectors.json"

try:
    import cryptography  # noqa: F401

    HAS_CIPHERS = True
except ImportError:
    HAS_CIPHERS = False


@unittest.skipUnless(HAS_CIPHERS, "no package `cryptography` here")
class Sealing(unittest.TestCase):
    def test_blobs_are_those_of_all_clients(self):
        vectors = json.loads(VECTORS.read_text(encoding="utf-8"))
        self.assertGreaterEqual(len(vectors), 4)
        for vector in vectors:
            key = RoomKey(vector["secret"], vector["room_id"])
            self.assertEqual(key.seal(vector["text"], bytes.fromhex(vector["nonce"])), vector["blob"])
            self.assertEqual(key.open(vector["blob"]), vector["text"])

    def test_what_does_not_open_is_refused(self):
        key = RoomKey("s", "r")
        blob = key.seal("text")
        changed = blob[:-1] + ("A" if blob[-1] != "A" else "E")
        for bad in ("", "plain", "clw1:", "clw1:AAAA", "clw1:AA==", "clw1:*", changed, RoomKey("t", "r").seal("x")):
            with self.assertRaises(SealError, msg=bad):
                key.open(bad)

    def test_a_rooms_own_secret_goes_before_the_one_for_all(self):
        secrets = Secrets("all")
        secrets.set_room("r", "own")
        payload = {"room_id": "r", "content": RoomKey("own", "r").seal("x")}
        secrets.opened(payload)
        self.assertEqual(payload["content"], "x")
        page = {"messages": [{"room_id": "q", "content": RoomKey("all", "q").seal("y")}, {"room_id": "q", "content": "clw1:AAAA"}]}
        secrets.opened(page)
        self.assertEqual([it["content"] for it in page["messages"]], ["y", "clw1:AAAA"])
        self.assertNotIn("own", repr(secrets) + repr(secrets.key("r")))
        with self.assertRaises(ValueError):
            Secrets("")


class Cursors(unittest.TestCase):
    def test_the_number_comes_back_and_nothing_else_is_left(self):
        with tempfile.TemporaryDirectory() as folder:
            file = CursorFile(pathlib.Path(folder) / "cursor")
            self.assertIsNone(file.read())
            for seq in (0, 7, 2**53 - 1):
                file.write(seq)
                self.assertEqual(file.read(), seq)
            self.assertEqual([it.name for it in pathlib.Path(folder).iterdir()], ["cursor"])
            file.path.write_text("seven")
            with self.assertRaises(CursorError):
                file.read()


class Addresses(unittest.TestCase):
    def test_they_are_told_apart_by_their_form(self):
        self.assertEqual(split_endpoint("[::1]:9229"), ("::1", 9229))
        self.assertEqual(split_url("ws://node"), (False, "node", 80, "node", "/ws"))
        self.assertEqual(split_url("https://node:1/x"), (True, "node", 1, "node:1", "/x"))
        for bad in ("", "node", "node:", ":9", "node:0", "node:70000"):
            with self.assertRaises(ValueError, msg=bad):
                split_endpoint(bad)
        with self.assertRaises(ValueError):
            split_url("ftp://node/ws")


class Node:
    """A server that answers as it is told."""

    def __init__(self, answer):
        self.answer = answer
        self.heard = []
        self.writers = []

    async def __aenter__(self):
        self.server = await asyncio.start_server(self._serve, "127.0.0.1", 0)
        self.address = f"127.0.0.1:{self.server.sockets[0].getsockname()[1]}"
        return self

    async def __aexit__(self, *_):
        self.server.close()
        for writer in self.writers:
            writer.close()

    async def _serve(self, reader, writer):
        self.writers.append(writer)
        while line := await reader.readline():
            frame = json.loads(line)
            self.heard.append(frame)
            for reply in self.answer(frame, writer) or ():
                writer.write(json.dumps(reply).encode() + b"\n")


def registered(frame):
    return {"id": "x", "reply_to": frame["id"], "type": "ok", "payload": {"agent_id": "drawn", "name": "a", "protocol_version": 1}}


class Links(unittest.IsolatedAsyncioTestCase):
    def agent(self, *nodes, **options):
        policy = Policy(retry_first=0.01, retry_max=0.02, call_timeout=5, **options)
        return AsyncAgent(*(node.address for node in nodes), name="a", key="k", policy=policy)

    async def test_a_send_is_repeated_under_one_id_and_the_identity_is_kept(self):
        def answer(frame, writer):
            if frame["type"] == "register":
                return [registered(frame)]
            if frame["type"] == "send_message":
                sends.append(frame["payload"]["mesh"]["dedup"])
                if len(sends) == 1:
                    writer.close()
                    return []
                return [{"id": "y", "reply_to": frame["id"], "type": "ok", "payload": {"seq": 1}}]
            return []

        sends = []
        async with Node(answer) as node, self.agent(node) as agent:
            self.assertEqual((await agent.send("lobby", "hello"))["seq"], 1)
            self.assertEqual(len(sends), 2)
            self.assertEqual(sends[0], sends[1])
            again = [it for it in node.heard if it["type"] == "register"][1]["payload"]
            self.assertEqual((again["agent_id"], again["reconnect"]), ("drawn", True))

    async def test_what_would_do_harm_twice_is_not_repeated(self):
        def answer(frame, writer):
            if frame["type"] == "register":
                return [registered(frame)]
            writer.close()
            return []

        async with Node(answer) as node, self.agent(node) as agent:
            with self.assertRaises(ConnectionLost):
                await agent.assign_task("lobby", "once")
            self.assertEqual(sum(it["type"] == "assign_task" for it in node.heard), 1)

    async def test_heartbeats_are_answered_and_a_silent_node_is_left(self):
        def answer(frame, writer):
            if frame["type"] == "register":
                return [registered(frame), {"id": "beat", "type": "ping", "payload": {"heartbeat": True}}]
            return []

        async with Node(answer) as node, self.agent(node, probe_after=0.05, dead_after=0.1) as agent:
            events = agent.events()
            event = await events.next(5)
            self.assertEqual(event.type, "client.disconnected")
            kinds = [it["type"] for it in node.heard]
            self.assertEqual(kinds[:3], ["register", "pong", "ping"])
            self.assertEqual(node.heard[1]["reply_to"], "beat")
            self.assertEqual((await events.next(5)).type, "client.reconnected")

    async def test_a_refusal_for_good_ends_it_and_nobody_waits_for_ever(self):
        def answer(frame, writer):
            if frame["type"] == "register" and len(node.heard) > 1:
                refusal = {"code": "unauthorized", "message": "no"}
                return [{"id": "z", "reply_to": frame["id"], "type": "error", "payload": refusal}]
            if frame["type"] == "register":
                return [registered(frame)]
            writer.close()
            return []

        async with Node(answer) as node:
            agent = await self.agent(node).open()
            events = agent.events()
            with self.assertRaises(Closed):
                await agent.send("lobby", "hello")
            kinds = [event.type async for event in events]
            self.assertEqual(kinds, ["client.disconnected"])
            with self.assertRaises(Refused) as refused:
                await self.agent(node).open()
            self.assertEqual(refused.exception.code, "unauthorized")

    async def test_every_message_comes_once_over_repeats_gaps_and_a_lost_connection(self):
        def message(seq, name=None):
            body = {"room_id": "r", "seq": seq, "message_id": name or f"m{seq}", "content": "x"}
            return {"id": "e", "type": "message_received", "payload": body}

        def answer(frame, writer):
            body = frame["payload"]
            if frame["type"] == "register":
                return [registered(frame)]
            if frame["type"] == "get_history":
                body = {"room_id": "r", "messages": [message(n)["payload"] for n in log if n > body["since_seq"]][:2]}
            return [{"id": "y", "reply_to": frame["id"], "type": "ok", "payload": body}]

        def push(*frames):
            node.writers[-1].write(b"".join(json.dumps(it).encode() + b"\n" for it in frames))

        log = [1, 2, 3]
        async with Node(answer) as node, self.agent(node) as agent:
            messages = await agent.messages("r", after=0)
            read = [(await asyncio.wait_for(messages.next(), 5))["seq"] for _ in range(3)]
            log += [4, 5]
            # A repeat, a gap, and a message that another node has numbered again.
            push(message(3), message(2), message(5), message(6, "m5"), message(7))
            read += [(await asyncio.wait_for(messages.next(), 5))["seq"] for _ in range(3)]
            # Nobody pushes this one.
            log += [7, 8]
            node.writers[-1].close()
            read += [(await asyncio.wait_for(messages.next(), 5))["seq"]]
            push(message(8), message(9))
            read += [(await asyncio.wait_for(messages.next(), 5))["seq"]]
            self.assertEqual(read, [1, 2, 3, 4, 5, 7, 8, 9])

    async def test_a_slow_reader_of_events_is_told_that_it_missed_some(self):
        queue = EventQueue()
        for n in range(EVENTS_KEPT + 3):
            queue.push(Event("typing_indicator", {"n": n}))
        missed = await queue.next()
        self.assertEqual((missed.type, missed.payload), ("client.missed", {"count": EVENTS_KEPT}))
        self.assertEqual([(await queue.next()).payload["n"] for _ in range(3)], [EVENTS_KEPT + n for n in range(3)])


if __name__ == "__main__":
    unittest.main()
