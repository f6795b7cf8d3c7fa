"""The client against real nodes."""

import asyncio
import pathlib
import secrets
import sys
import tempfile
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).parent))

from nodes import KEY, SOCKET, TCP, WEB_SOCKET, Pipe, needs_nodes  # noqa: E402

from clawmesh_client import Agent, AsyncAgent, CallTimeout, CursorFile, Refused  # noqa: E402
from test_parts import HAS_CIPHERS  # noqa: E402


def fresh(name):
    """A name that no room has, also if the tests run twice at one mesh."""
    return f"py {name} {secrets.token_hex(4)}"


def attach(name, *addresses, **options):
    return Agent(*(addresses or TCP[:1]), name=name, key=KEY, **options)


@needs_nodes
class Blocking(unittest.TestCase):
    def room(self, agent, name, **options):
        return agent.create_room(fresh(name), public=True, **options)["room_id"]

    def test_two_agents_talk_and_a_repeated_send_is_one_message(self):
        with attach("ada") as ada, attach("bob", WEB_SOCKET) as bob:
            room = self.room(ada, "talk")
            heard = bob.messages(room)
            ada.join(room)
            first = ada.send(room, "hello", metadata={"kind": "fyi"}, send_id="one")
            again = ada.send(room, "hello", send_id="one")
            self.assertEqual(first["message_id"], again["message_id"])
            message = next(heard)
            self.assertEqual((message["content"], message["seq"]), ("hello", 1))
            answer = bob.send(room, "hi", reply_to=message["message_id"])
            self.assertEqual(answer["reply_to_message"], first["message_id"])
            self.assertEqual([it["content"] for it in ada.history(room)], ["hello", "hi"])
            self.assertEqual(ada.tip(room), 2)
            self.assertEqual([it["name"] for it in ada.agents(room)], ["bob", "ada"])

    def test_a_cursor_file_holds_what_was_worked_on(self):
        with attach("ada", SOCKET) as ada, tempfile.TemporaryDirectory() as folder:
            room = self.room(ada, "cursor")
            ada.join(room)
            file = CursorFile(pathlib.Path(folder) / "cursor")
            file.write(0)
            for n in range(5):
                ada.send(room, f"message {n}")
            with attach("bob") as bob:
                messages = bob.messages(room, after=file)
                self.assertEqual([next(messages)["seq"] for _ in range(3)], [1, 2, 3])
            self.assertEqual(file.read(), 2, "the third was given, and nobody said that it is worked on")
            with attach("bob") as bob:
                self.assertEqual([it["seq"] for it in bob.wait(room, after=file, timeout=10)], [3, 4, 5])
                self.assertEqual(file.read(), 5)
                self.assertEqual(bob.wait(room, after=file, timeout=0.2), [])

    def test_it_roams_and_reads_every_message_once(self):
        pipe = Pipe(TCP[0])
        with attach("ada", TCP[1]) as ada, attach("roams", pipe.address, TCP[1]) as roams:
            room = self.room(ada, "roaming")
            events = roams.events()
            ada.join(room)
            for n in range(3):
                ada.send(room, f"before {n}")
            # The second node may hear of the room and the first of the messages in their time.
            messages = roams.messages(room, after=0)
            read = [next(messages)["content"] for _ in range(3)]
            pipe.cut()
            for n in range(3):
                ada.send(room, f"after {n}")
            read += [next(messages)["content"] for _ in range(3)]
            self.assertEqual(read, [f"{when} {n}" for when in ("before", "after") for n in range(3)])
            self.assertEqual(roams.address, TCP[1])
            events.find("client.reconnected")
            roams.send(room, "from the other node")
            self.assertEqual(ada.history(room, limit=1)[0]["agent_id"], roams.agent_id)

    @unittest.skipUnless(HAS_CIPHERS, "no package `cryptography` here")
    def test_no_node_reads_what_is_encrypted(self):
        with attach("ada", room_key="correct horse") as ada, attach("blind") as blind:
            room = self.room(ada, "sealed", encrypted=True)
            heard = blind.messages(room, after=0)
            ada.join(room)
            self.assertEqual(ada.send(room, "ünïcödé 🦞")["content"], "ünïcödé 🦞")
            with ada.writing(room) as answer:
                answer.write("no piece of this leaves")
            blob = next(heard)["content"]
            self.assertTrue(blob.startswith("clw1:"), blob)
            self.assertEqual([it["content"] for it in ada.history(room)], ["ünïcödé 🦞", "no piece of this leaves"])
            with self.assertRaises(Refused) as refused:
                blind.send(room, "plain")
            self.assertEqual(refused.exception.code, "plaintext_in_encrypted_room")

    @unittest.skipUnless(HAS_CIPHERS, "no package `cryptography` here")
    def test_no_piece_of_an_encrypted_answer_leaves(self):
        with attach("ada", room_key="correct horse") as ada, attach("blind", events=["stream"]) as blind:
            # The node calls the room plain, and would pass pieces on.
            room = self.room(ada, "quiet")
            ada.join(room)
            blind.join(room)
            events = blind.events()
            with ada.writing(room) as answer:
                answer.write("hush")
            kinds = []
            while "message_received" not in kinds:
                kinds.append(events.next(10).type)
            self.assertNotIn("stream", kinds)

    def test_copies_and_receipts(self):
        with attach("ada") as ada, attach("bob", TCP[1]) as bob:
            room = self.room(ada, "receipts")
            ada.join(room)
            heard = bob.messages(room, after=0)
            sent = ada.send(room, "keep this", durable=2, durable_wait_ms=20_000)
            self.assertEqual(sent["mesh"]["durable"], 2)
            message = next(heard)
            bob.ack(room, message["seq"])
            receipts = ada.receipts(room, sent["message_id"])
            self.assertEqual((len(receipts["stored"]), receipts["of"]), (2, 2))
            states = {it["agent_id"]: it["state"] for it in receipts["agents"]}
            self.assertEqual(states[bob.agent_id], "confirmed")

    def test_an_answer_is_seen_while_it_is_written(self):
        with attach("ada") as ada, attach("bob", events=["stream"]) as bob:
            room = self.room(ada, "streams")
            ada.join(room)
            bob.join(room)
            events = bob.events()
            with ada.writing(room) as answer:
                answer.tool_call("search", {"text": "lamp"})
                answer.write("The lamp ")
                answer.write("is mended.")
            pieces = [events.find("stream") for _ in range(3)]
            self.assertEqual([it["kind"] for it in pieces], ["tool_call", "chunk", "chunk"])
            self.assertEqual("".join(it.get("content", "") for it in pieces), "The lamp is mended.")
            self.assertEqual(events.find("message_received")["content"], "The lamp is mended.")
            self.assertEqual(answer.message["content"], "The lamp is mended.")

    def test_votes_and_tasks(self):
        with attach("ada") as ada, attach("bob") as bob:
            room = self.room(ada, "votes")
            ada.join(room)
            bob.join(room)
            events = ada.events()
            vote = ada.create_vote(room, "Which?", ["a", "b"], duration_secs=60)
            ada.cast_vote(vote["vote_id"], 1)
            self.assertNotIn("tally", bob.vote(vote["vote_id"]))
            bob.cast_vote(vote["vote_id"], 1)
            self.assertEqual([it["count"] for it in events.find("vote_result")["tally"]], [0, 2])
            task = ada.assign_task(room, "mend the lamp")
            bob.claim_task(task["task_id"])
            with self.assertRaises(Refused):
                ada.claim_task(task["task_id"])
            bob.update_task(task["task_id"], status="completed", note="it was the fuse")
            self.assertEqual([it["status"] for it in ada.tasks(room)], ["completed"])

    def test_a_wrong_key_and_an_empty_wait(self):
        with self.assertRaises(Refused) as refused:
            Agent(TCP[0], name="x", key="no key")
        self.assertEqual(refused.exception.code, "unauthorized")
        with attach("ada") as ada:
            ada.join("lobby")
            with self.assertRaises(CallTimeout):
                ada.events().find("vote_result", timeout=0.05)


@needs_nodes
class Asyncio(unittest.IsolatedAsyncioTestCase):
    async def test_many_sends_at_once_and_all_are_read(self):
        stable = fresh("agent")
        async with AsyncAgent(*TCP, name="ada", key=KEY, agent_id=stable) as ada:
            room = (await ada.create_room(fresh("async"), public=True))["room_id"]
            await ada.join(room)
            async with AsyncAgent(WEB_SOCKET, name="bob", key=KEY) as bob:
                messages = await bob.messages(room, after=0)
                sent = await asyncio.gather(*(ada.send(room, f"message {n}") for n in range(40)))
                self.assertEqual(sorted(it["seq"] for it in sent), list(range(1, 41)))
                read = [await asyncio.wait_for(messages.next(), 20) for _ in range(40)]
                self.assertEqual([it["seq"] for it in read], list(range(1, 41)))
                self.assertEqual({it["content"] for it in read}, {f"message {n}" for n in range(40)})
            self.assertEqual(ada.agent_id, stable)


if __name__ == "__main__":
    unittest.main()
