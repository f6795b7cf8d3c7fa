// The client against real nodes.

import assert from "node:assert/strict";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";

import { Agent, CursorFile, Refused } from "../dist/index.js";
import { KEY, SOCKET, TCP, WEB_SOCKET, needsNodes, pipe } from "./nodes.mjs";

/** A test with agents that are closed at its end, and names that no room has. */
function mesh(name, body) {
  test(name, needsNodes, async () => {
    const agents = [];
    const attach = async (name, options = {}) => {
      const agent = await Agent.connect({ addresses: [TCP[0]], key: KEY, name, ...options });
      agents.push(agent);
      return agent;
    };
    try {
      await body(attach);
    } finally {
      agents.forEach((agent) => agent.close());
    }
  });
}

async function room(agent, options = {}) {
  const made = await agent.createRoom(`ts ${crypto.randomUUID()}`, { public: true, ...options });
  return made.room_id;
}

mesh("two agents talk, and a repeated send is one message", async (attach) => {
  const [ada, bob] = [await attach("ada"), await attach("bob", { addresses: [WEB_SOCKET] })];
  const at = await room(ada);
  const heard = await bob.messages(at);
  await ada.join(at);
  const first = await ada.send(at, "hello", { metadata: { kind: "fyi" }, sendId: "one" });
  const again = await ada.send(at, "hello", { sendId: "one" });
  assert.equal(first.message_id, again.message_id);
  const message = await heard.next(20_000);
  assert.deepEqual([message.content, message.seq], ["hello", 1]);
  const answer = await bob.send(at, "hi", { replyTo: message.message_id });
  assert.equal(answer.reply_to_message, first.message_id);
  assert.deepEqual((await ada.history(at)).map((it) => it.content), ["hello", "hi"]);
  assert.equal(await ada.tip(at), 2);
  assert.deepEqual((await ada.agents(at)).map((it) => it.name), ["bob", "ada"]);
});

mesh("a cursor file holds what was worked on", async (attach) => {
  const ada = await attach("ada", { addresses: [SOCKET] });
  const at = await room(ada);
  await ada.join(at);
  for (let n = 0; n < 5; n += 1) await ada.send(at, `message ${n}`);
  const folder = await mkdtemp(join(tmpdir(), "clawmesh-"));
  const file = new CursorFile(join(folder, "cursor"));
  await file.write(0);
  const bob = await attach("bob");
  const messages = await bob.messages(at, { after: file });
  const read = [];
  for (let n = 0; n < 3; n += 1) read.push((await messages.next(20_000)).seq);
  assert.deepEqual(read, [1, 2, 3]);
  assert.equal(await file.read(), 2, "the third was given, and nobody said that it is worked on");
  const other = await attach("other");
  assert.deepEqual((await other.wait(at, { after: file, timeout: 20_000 })).map((it) => it.seq), [3, 4, 5]);
  assert.equal(await file.read(), 5);
  assert.deepEqual(await other.wait(at, { after: file, timeout: 200 }), []);
  await rm(folder, { recursive: true });
});

mesh("it roams, and reads every message once", async (attach) => {
  const link = await pipe(TCP[0]);
  const ada = await attach("ada", { addresses: [TCP[1]] });
  const roams = await attach("roams", { addresses: [link.address, TCP[1]] });
  const at = await room(ada);
  const events = roams.events();
  await ada.join(at);
  for (let n = 0; n < 3; n += 1) await ada.send(at, `before ${n}`);
  const messages = await roams.messages(at, { after: 0 });
  const read = [];
  const reads = async () => {
    for (let n = 0; n < 3; n += 1) read.push((await messages.next(20_000))?.content);
  };
  await reads();
  link.cut();
  for (let n = 0; n < 3; n += 1) await ada.send(at, `after ${n}`);
  await reads();
  assert.deepEqual(read, ["before 0", "before 1", "before 2", "after 0", "after 1", "after 2"]);
  assert.equal(roams.address, TCP[1]);
  await events.find("client.reconnected");
  await roams.send(at, "from the other node");
  assert.equal((await ada.history(at, { limit: 1 }))[0].agent_id, roams.agentId);
});

mesh("no node reads what is encrypted, and no piece of it leaves", async (attach) => {
  const ada = await attach("ada", { roomKey: "correct horse" });
  const blind = await attach("blind", { events: ["stream"] });
  const at = await room(ada, { encrypted: true });
  const heard = await blind.messages(at, { after: 0 });
  await ada.join(at);
  assert.equal((await ada.send(at, "ünïcödé 🦞")).content, "ünïcödé 🦞");
  const blob = (await heard.next(20_000)).content;
  assert.match(blob, /^clw1:/);
  assert.deepEqual((await ada.history(at)).map((it) => it.content), ["ünïcödé 🦞"]);
  await assert.rejects(blind.send(at, "plain"), (error) => error instanceof Refused && error.code === "plaintext_in_encrypted_room");
  // The node calls this room plain, and would pass pieces on.
  const plain = await room(ada);
  await ada.join(plain);
  await blind.join(plain);
  const events = blind.events();
  const answer = ada.writing(plain);
  await answer.write("hush");
  await answer.send();
  const kinds = [];
  while (kinds.at(-1) !== "message_received") kinds.push((await events.next(20_000)).type);
  assert.ok(!kinds.includes("stream"), `${kinds}`);
});

mesh("copies and receipts", async (attach) => {
  const [ada, bob] = [await attach("ada"), await attach("bob", { addresses: [TCP[1]] })];
  const at = await room(ada);
  await ada.join(at);
  const heard = await bob.messages(at, { after: 0 });
  const sent = await ada.send(at, "keep this", { durable: 2, durableWaitMs: 20_000 });
  assert.equal(sent.mesh.durable, 2);
  await bob.ack(at, (await heard.next(20_000)).seq);
  const receipts = await ada.receipts(at, sent.message_id);
  assert.deepEqual([receipts.stored.length, receipts.of], [2, 2]);
  assert.equal(receipts.agents.find((it) => it.agent_id === bob.agentId).state, "confirmed");
});

mesh("an answer is seen while it is written", async (attach) => {
  const [ada, bob] = [await attach("ada"), await attach("bob", { events: ["stream"] })];
  const at = await room(ada);
  await ada.join(at);
  await bob.join(at);
  const events = bob.events();
  const answer = ada.writing(at);
  await answer.toolCall("search", { text: "lamp" });
  await answer.write("The lamp ");
  await answer.write("is mended.");
  const message = await answer.send();
  const pieces = [];
  for (let n = 0; n < 3; n += 1) pieces.push(await events.find("stream"));
  assert.deepEqual(pieces.map((it) => it.kind), ["tool_call", "chunk", "chunk"]);
  assert.equal(pieces.map((it) => it.content ?? "").join(""), "The lamp is mended.");
  assert.equal((await events.find("message_received")).content, message.content);
});

mesh("votes and tasks", async (attach) => {
  const [ada, bob] = [await attach("ada"), await attach("bob")];
  const at = await room(ada);
  await ada.join(at);
  await bob.join(at);
  const events = ada.events();
  const vote = await ada.createVote(at, "Which?", ["a", "b"], { durationSecs: 60 });
  await ada.castVote(vote.vote_id, 1);
  assert.equal((await bob.vote(vote.vote_id)).tally, undefined);
  await bob.castVote(vote.vote_id, 1);
  assert.deepEqual((await events.find("vote_result")).tally.map((it) => it.count), [0, 2]);
  const task = await ada.assignTask(at, "mend the lamp");
  await bob.claimTask(task.task_id);
  await assert.rejects(ada.claimTask(task.task_id), Refused);
  await bob.updateTask(task.task_id, { status: "completed", note: "it was the fuse" });
  assert.deepEqual((await ada.tasks(at)).map((it) => it.status), ["completed"]);
});

mesh("many sends at once, and all are read", async (attach) => {
  const stable = `ts-${crypto.randomUUID()}`;
  const [ada, bob] = [await attach("ada", { agentId: stable }), await attach("bob", { addresses: [WEB_SOCKET] })];
  assert.equal(ada.agentId, stable);
  const at = await room(ada);
  await ada.join(at);
  const messages = await bob.messages(at, { after: 0 });
  const sent = await Promise.all([...Array(40).keys()].map((n) => ada.send(at, `message ${n}`)));
  const numbers = [...Array(40).keys()].map((n) => n + 1);
  assert.deepEqual(sent.map((it) => it.seq).sort((a, b) => a - b), numbers);
  const read = [];
  for await (const message of messages) if (read.push(message.seq) === 40) break;
  assert.deepEqual(read, numbers);
});

mesh("a wrong key is refused", async (attach) => {
  await assert.rejects(attach("x", { key: "no key" }), (error) => error instanceof Refused && error.code === "unauthorized");
});
