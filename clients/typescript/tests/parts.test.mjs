// The parts that need no node: ciphers, sealing, cursors, and a link against a server of this test.

import assert from "node:assert/strict";
import { createCipheriv, createHash, createHmac, randomBytes } from "node:crypto";
import { mkdtemp, readFile, readdir, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";

import { Agent, Closed, ConnectionLost, CursorFile, Refused, RoomKey, SealError, Secrets, StorageCursor } from "../dist/index.js";
import { decrypt, encrypt, hmac, sha256 } from "../dist/ciphers.js";
import { EVENTS_KEPT } from "../dist/policy.js";
import { EventQueue } from "../dist/queue.js";
import { normal } from "../dist/wire.js";
import { node } from "./nodes.mjs";

const bytes = (value) => Buffer.from(value).toString("hex");

test("the ciphers are those of Node, at every length", () => {
  for (const length of [...Array(200).keys(), 1000, 4096, 70_001]) {
    const [key, nonce, text] = [randomBytes(32), randomBytes(12), randomBytes(length)];
    assert.equal(bytes(sha256(text)), createHash("sha256").update(text).digest("hex"));
    assert.equal(bytes(hmac(key, text)), createHmac("sha256", key).update(text).digest("hex"));
    const cipher = createCipheriv("chacha20-poly1305", key, nonce, { authTagLength: 16 });
    const sealed = Buffer.concat([cipher.update(text), cipher.final(), cipher.getAuthTag()]);
    assert.equal(bytes(encrypt(key, nonce, text)), bytes(sealed), `${length} bytes`);
    assert.equal(bytes(decrypt(key, nonce, sealed)), bytes(text));
    sealed[Math.floor(Math.random() * sealed.length)] ^= 1;
    assert.equal(decrypt(key, nonce, sealed), undefined);
  }
});

test("poly1305 carries where all bits are set", () => {
  // Sums that reach the modulus.
  for (const [key, text] of [
    [Buffer.alloc(32, 0xff), Buffer.alloc(64, 0xff)],
    [Buffer.concat([Buffer.from([2]), Buffer.alloc(31)]), Buffer.alloc(16, 0xff)],
    [Buffer.alloc(32), Buffer.alloc(48, 0xff)],
  ]) {
    const nonce = Buffer.alloc(12, 0xff);
    const cipher = createCipheriv("chacha20-poly1305", key, nonce, { authTagLength: 16 });
    const sealed = Buffer.concat([cipher.update(text), cipher.final(), cipher.getAuthTag()]);
    assert.equal(bytes(encrypt(key, nonce, text)), bytes(sealed));
  }
});

test("blobs are those of all clients", async () => {
  const vectors = JSON.parse(await readFile(new URL("../../sealing-vectors.json", import.meta.url), "utf8"));
  assert.ok(vectors.length >= 4);
  for (const { secret, room_id: room, nonce, text, blob } of vectors) {
    const key = new RoomKey(secret, room);
    assert.equal(key.seal(text, Buffer.from(nonce, "hex")), blob);
    assert.equal(key.open(blob), text);
  }
});

test("what does not open is refused, and a room's own secret goes before the one for all", () => {
  const key = new RoomKey("s", "r");
  const blob = key.seal("text");
  const changed = blob.slice(0, -1) + (blob.endsWith("A") ? "E" : "A");
  for (const bad of ["", "plain", "clw1:", "clw1:AAAA", "clw1:AA==", "clw1:*", changed, new RoomKey("t", "r").seal("x")]) {
    assert.throws(() => key.open(bad), SealError, bad);
  }
  const secrets = new Secrets("all");
  secrets.setRoom("r", "own");
  const page = {
    messages: [
      { room_id: "r", content: new RoomKey("own", "r").seal("x") },
      { room_id: "q", content: new RoomKey("all", "q").seal("y") },
      { room_id: "q", content: "clw1:AAAA" },
    ],
  };
  secrets.opened(page);
  assert.deepEqual(page.messages.map((message) => message.content), ["x", "y", "clw1:AAAA"]);
  assert.throws(() => new Secrets(""), TypeError);
});

test("a cursor file holds one number and nothing else is left", async () => {
  const folder = await mkdtemp(join(tmpdir(), "clawmesh-"));
  const file = new CursorFile(join(folder, "cursor"));
  assert.equal(await file.read(), undefined);
  for (const seq of [0, 7, 2 ** 53 - 1]) {
    await file.write(seq);
    assert.equal(await file.read(), seq);
  }
  assert.deepEqual(await readdir(folder), ["cursor"]);
  await writeFile(file.path, "seven");
  await assert.rejects(file.read());
  await rm(folder, { recursive: true });
  const kept = new Map();
  const storage = { getItem: (name) => kept.get(name) ?? null, setItem: (name, text) => kept.set(name, text) };
  const cursor = new StorageCursor("lobby", storage);
  assert.equal(await cursor.read(), undefined);
  await cursor.write(7);
  assert.equal(await cursor.read(), 7);
});

test("addresses are told apart by their form", () => {
  assert.equal(normal("ws://node"), "ws://node/ws");
  assert.equal(normal("https://node:1/x"), "wss://node:1/x");
  assert.equal(normal("[::1]:9229"), "[::1]:9229");
  for (const bad of ["", "node", "node:", ":9", "ftp://node/ws"]) assert.throws(() => normal(bad), TypeError, bad);
});

const registered = (frame) => ({
  id: "x",
  reply_to: frame.id,
  type: "ok",
  payload: { agent_id: "drawn", name: "a", protocol_version: 1 },
});

function attach(at, policy = {}) {
  const patient = { retryFirst: 10, retryMax: 20, callTimeout: 5_000, ...policy };
  return Agent.connect({ addresses: [at.address], key: "k", name: "a", policy: patient });
}

test("a send is repeated under one id, and the identity is kept", async () => {
  const sends = [];
  const at = await node((frame, socket) => {
    if (frame.type === "register") return [registered(frame)];
    sends.push(frame.payload.mesh.dedup);
    if (sends.length > 1) return [{ id: "y", reply_to: frame.id, type: "ok", payload: { seq: 1 } }];
    socket.destroy();
  });
  const agent = await attach(at);
  assert.equal((await agent.send("lobby", "hello")).seq, 1);
  assert.equal(sends.length, 2);
  assert.equal(sends[0], sends[1]);
  const again = at.heard.filter((frame) => frame.type === "register")[1].payload;
  assert.deepEqual([again.agent_id, again.reconnect], ["drawn", true]);
  agent.close();
  at.end();
});

test("what would do harm twice is not repeated", async () => {
  const at = await node((frame, socket) => {
    if (frame.type === "register") return [registered(frame)];
    socket.destroy();
  });
  const agent = await attach(at);
  await assert.rejects(agent.assignTask("lobby", "once"), ConnectionLost);
  assert.equal(at.heard.filter((frame) => frame.type === "assign_task").length, 1);
  agent.close();
  at.end();
});

test("heartbeats are answered, and a silent node is left", async () => {
  const beat = { id: "beat", type: "ping", payload: { heartbeat: true } };
  const at = await node((frame) => (frame.type === "register" ? [registered(frame), beat] : []));
  const agent = await attach(at, { probeAfter: 50, deadAfter: 100 });
  const events = agent.events();
  assert.equal((await events.next(5_000)).type, "client.disconnected");
  assert.deepEqual(at.heard.slice(0, 3).map((frame) => frame.type), ["register", "pong", "ping"]);
  assert.equal(at.heard[1].reply_to, "beat");
  assert.equal((await events.next(5_000)).type, "client.reconnected");
  agent.close();
  at.end();
});

test("a refusal for good ends it, and nobody waits for ever", async () => {
  const refusal = (frame) => ({ id: "z", reply_to: frame.id, type: "error", payload: { code: "unauthorized", message: "no" } });
  const at = await node((frame, socket) => {
    if (frame.type === "register") return [at.heard.length > 1 ? refusal(frame) : registered(frame)];
    socket.destroy();
  });
  const agent = await attach(at);
  const events = agent.events();
  await assert.rejects(agent.send("lobby", "hello"), Closed);
  const kinds = [];
  for await (const event of events) kinds.push(event.type);
  assert.deepEqual(kinds, ["client.disconnected"]);
  await assert.rejects(attach(at), (error) => error instanceof Refused && error.code === "unauthorized");
  at.end();
});

test("every message comes once, over repeats, gaps and a lost connection", async () => {
  const message = (seq, id = `m${seq}`) => ({
    id: "e",
    type: "message_received",
    payload: { room_id: "r", seq, message_id: id, content: "x" },
  });
  const log = [1, 2, 3];
  const at = await node((frame) => {
    if (frame.type === "register") return [registered(frame)];
    let { payload } = frame;
    if (frame.type === "get_history") {
      const page = log.filter((seq) => seq > payload.since_seq).slice(0, 2);
      payload = { room_id: "r", messages: page.map((seq) => message(seq).payload) };
    }
    return [{ id: "y", reply_to: frame.id, type: "ok", payload }];
  });
  const agent = await attach(at);
  const messages = await agent.messages("r", { after: 0 });
  const read = [];
  const reads = async (count) => {
    for (let n = 0; n < count; n += 1) read.push((await messages.next(5_000))?.seq);
  };
  await reads(3);
  log.push(4, 5);
  // A repeat, a gap, and a message that another node has numbered again.
  at.push(message(3), message(2), message(5), message(6, "m5"), message(7));
  await reads(3);
  // Nobody pushes this one.
  log.push(7, 8);
  at.drop();
  await reads(1);
  at.push(message(8), message(9));
  await reads(1);
  assert.deepEqual(read, [1, 2, 3, 4, 5, 7, 8, 9]);
  agent.close();
  at.end();
});

test("a slow reader of events is told that it missed some", async () => {
  const queue = new EventQueue();
  for (let n = 0; n < EVENTS_KEPT + 3; n += 1) queue.push({ type: "typing_indicator", payload: { n } });
  assert.deepEqual(await queue.next(), { type: "client.missed", payload: { count: EVENTS_KEPT } });
  assert.equal((await queue.next()).payload.n, EVENTS_KEPT);
  await queue.next();
  await queue.next();
  assert.equal(await queue.next(1), undefined);
});
