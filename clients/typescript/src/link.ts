import { CallTimeout, ClawmeshError, Closed, ConnectionLost, Refused } from "./errors.js";
import { FRAME_SENT_BYTES_MAX, pause, sleep, type Policy } from "./policy.js";
import { EventQueue } from "./queue.js";
import type { Secrets } from "./sealing.js";
import type { ClawEvent, Payload } from "./types.js";
import { connect, normal, type Wire } from "./wire.js";

const PROTOCOL_VERSION = 1;

/**
 * Commands of which a second execution changes nothing. Sends carry a dedup id, so that a mesh node keeps one.
 */
const REPEATABLE = new Set(
  (
    "ping join_room send_message thinking decision get_history search replay get_receipts ack room_tip list_rooms " +
    "list_agents room_info set_room set_typing set_presence set_profile get_profile get_vote_status list_votes " +
    "get_task list_tasks list_approvals get_approval list_subscriptions enable_subscription share_room unshare_room " +
    "add_member remove_member retire_agent"
  ).split(" "),
);

/** A refused registration that may be granted later. */
const PASSING = new Set(["rate_limit_agents", "internal_error"]);

/** Between two tries at one connection, of a node that is about to end it, in ms. */
const AGAIN_AFTER = 50;

/** What an agent registers with. */
export interface Identity {
  key: string;
  name: string;
  agentId: string | undefined;
  draw: string | undefined;
  capabilities: string[];
  lingerSecs: number | undefined;
  events: string[];
}

interface Waiting {
  resolve(frame: Payload): void;
  reject(error: Error): void;
}

/** One connection: asks and answers, heartbeats, and its end. */
class Session {
  readonly #pending = new Map<string, Waiting>();
  #wire: Wire | undefined;
  #heard = Date.now();
  #probed = 0;
  #watch: ReturnType<typeof setTimeout> | undefined;
  #calls = 0;
  #end!: (reason: string) => void;
  readonly ended = new Promise<string>((resolve) => (this.#end = resolve));

  private constructor(
    private readonly secrets: Secrets,
    private readonly policy: Policy,
    private readonly pushed: (event: ClawEvent) => void,
  ) {}

  static async open(
    address: string,
    secrets: Secrets,
    policy: Policy,
    pushed: (event: ClawEvent) => void,
  ): Promise<Session> {
    const session = new Session(secrets, policy, pushed);
    const ends = {
      frame: (text: string) => session.#frame(text),
      end: (reason: string) => session.#over(reason),
    };
    session.#wire = await connect(address, ends, policy.connectTimeout);
    session.#heard = Date.now();
    session.#look();
    return session;
  }

  close(): void {
    this.#wire?.close();
    this.#over("the agent is closed");
  }

  /** The answer's payload. */
  ask(kind: string, payload: Payload): Promise<Payload> {
    this.#calls += 1;
    const id = `c${this.#calls}`;
    const text = JSON.stringify({ id, type: kind, payload });
    if (new TextEncoder().encode(text).length >= FRAME_SENT_BYTES_MAX) {
      throw new ClawmeshError(`a request has at most ${FRAME_SENT_BYTES_MAX} bytes: send less at once`);
    }
    return new Promise((resolve, reject) => {
      if (this.#wire === undefined) return reject(lost());
      this.#pending.set(id, { resolve, reject });
      this.#wire.send(text);
    });
  }

  #over(reason: string): void {
    this.#wire = undefined;
    clearTimeout(this.#watch);
    for (const waiting of this.#pending.values()) waiting.reject(lost());
    this.#pending.clear();
    this.#end(reason);
  }

  /** Ends a connection from which nothing comes any more. */
  #look(): void {
    if (this.#wire === undefined) return;
    const now = Date.now();
    const { probeAfter, deadAfter } = this.policy;
    if (now >= this.#heard + deadAfter) {
      this.#wire.close();
      return this.#over("the node has gone silent");
    }
    if (now >= this.#heard + probeAfter && this.#probed !== this.#heard) {
      this.#probed = this.#heard;
      this.#wire.send(JSON.stringify({ type: "ping", payload: {} }));
    }
    const next = this.#heard + (this.#probed === this.#heard ? deadAfter : probeAfter) - now;
    this.#watch = setTimeout(() => this.#look(), Math.max(next, 1));
  }

  #frame(text: string): void {
    this.#heard = Date.now();
    let frame: Payload;
    try {
      frame = JSON.parse(text) as Payload;
    } catch {
      this.#wire?.close();
      return this.#over("the node sent no JSON");
    }
    const payload = (frame.payload ?? {}) as Payload;
    if (frame.reply_to !== undefined) {
      const waiting = this.#pending.get(frame.reply_to);
      this.#pending.delete(frame.reply_to);
      if (frame.type === "error") waiting?.reject(refusal(payload));
      else {
        this.secrets.opened(payload);
        waiting?.resolve(payload);
      }
    } else if (frame.type === "ping") {
      this.#wire?.send(JSON.stringify({ type: "pong", reply_to: frame.id, payload: {} }));
    } else if (frame.type !== "pong" && frame.type !== "error") {
      this.secrets.opened(payload);
      this.pushed({ type: String(frame.type), payload });
    }
  }
}

function lost(): ConnectionLost {
  return new ConnectionLost("the connection was lost before the node answered: look before you repeat");
}

function refusal(payload: Payload): Error {
  const reason = payload.mesh?.reason as string | undefined;
  // As good as a connection that broke before the answer.
  if (reason === "unknown") return lost();
  return new Refused(String(payload.code), String(payload.message), reason);
}

/** One identity at one of several nodes: it registers, and comes back by itself. */
export class Link {
  readonly rooms = new Set<string>();
  readonly #addresses: string[];
  readonly #queues = new Set<EventQueue>();
  #at = 0;
  #session: Session | undefined;
  #closed: string | undefined;
  #waiting: (() => void)[] = [];
  /** The id that a node gave, which the agent keeps. */
  agentId = "";

  constructor(
    addresses: string[],
    readonly identity: Identity,
    readonly secrets: Secrets,
    readonly policy: Policy,
  ) {
    if (addresses.length === 0) throw new TypeError("no address of a node was given");
    this.#addresses = addresses.map(normal);
  }

  /** Where the agent is, or was last. */
  get address(): string {
    return this.#addresses[this.#at] ?? "";
  }

  /** Registers at the first address that takes the agent. Each is tried once. */
  async open(): Promise<void> {
    const { session } = await this.#round();
    void this.#run(session);
  }

  close(reason = "the agent is closed"): void {
    if (this.#closed !== undefined) return;
    this.#closed = reason;
    this.#session?.close();
    this.#session = undefined;
    this.#push({ type: "client.closed", payload: { reason } });
    this.#wake();
  }

  subscribe(): EventQueue {
    const queue = new EventQueue();
    if (this.#closed !== undefined) queue.push({ type: "client.closed", payload: { reason: this.#closed } });
    this.#queues.add(queue);
    return queue;
  }

  unsubscribe(queue: EventQueue): void {
    this.#queues.delete(queue);
  }

  /** Asks, and waits for the answer, over reconnects where a repeat does no harm. */
  async call(kind: string, payload: Payload, timeout = this.policy.callTimeout): Promise<Payload> {
    const until = Date.now() + timeout;
    const late = new CallTimeout(`no answer to ${kind} in time`);
    for (;;) {
      const session = this.#session;
      if (session === undefined) {
        if (this.#closed !== undefined) throw new Closed(this.#closed);
        await within(until - Date.now(), late, new Promise<void>((resolve) => this.#waiting.push(resolve)));
        continue;
      }
      try {
        const answer = await within(until - Date.now(), late, session.ask(kind, payload));
        if (kind === "join_room") this.rooms.add(payload.room_id);
        if (kind === "leave_room") this.rooms.delete(payload.room_id);
        return answer;
      } catch (error) {
        if (!(error instanceof ConnectionLost) || !REPEATABLE.has(kind)) throw error;
        await sleep(AGAIN_AFTER);
      }
    }
  }

  #push(event: ClawEvent): void {
    for (const queue of this.#queues) queue.push(event);
  }

  #wake(): void {
    const waiting = this.#waiting;
    this.#waiting = [];
    waiting.forEach((resolve) => resolve());
  }

  async #run(first: Session): Promise<void> {
    let session = first;
    let attempt = 0;
    for (;;) {
      if (this.#closed !== undefined) return session.close();
      const since = Date.now();
      this.#session = session;
      this.#wake();
      const reason = await session.ended;
      this.#session = undefined;
      if (this.#closed !== undefined) return;
      this.#push({ type: "client.disconnected", payload: { reason } });
      // Two agents of one identity throw each other out: pauses must grow then, too.
      if (Date.now() - since > this.policy.retryMax) attempt = 0;
      for (;;) {
        await sleep(pause(this.policy, attempt));
        attempt += 1;
        if (this.#closed !== undefined) return;
        try {
          const round = await this.#round();
          const roomsLost = await this.#rejoin(round.session, round.restored);
          session = round.session;
          this.#push({ type: "client.reconnected", payload: { rooms_lost: roomsLost } });
          break;
        } catch (error) {
          if (error instanceof Refused && !PASSING.has(error.code)) return this.close(error.message);
        }
      }
    }
  }

  /** Tries each address once. Fails for good only if all of them refuse for good. */
  async #round(): Promise<{ session: Session; restored: string[] }> {
    let failure: unknown;
    const passes = (error: unknown): boolean => !(error instanceof Refused) || PASSING.has(error.code);
    for (let tried = 0; tried < this.#addresses.length; tried += 1) {
      try {
        return await this.#register(this.address);
      } catch (error) {
        if (failure === undefined || passes(error) || !passes(failure)) failure = error;
      }
      this.#at = (this.#at + 1) % this.#addresses.length;
    }
    throw failure;
  }

  async #register(address: string): Promise<{ session: Session; restored: string[] }> {
    const session = await Session.open(address, this.secrets, this.policy, (event) => this.#push(event));
    try {
      const registered = await this.#exchange(session, "register", this.#registration());
      this.agentId = String(registered.agent_id);
      return { session, restored: (registered.rooms ?? []) as string[] };
    } catch (error) {
      session.close();
      throw error;
    }
  }

  #registration(): Payload {
    const { key, name, capabilities, lingerSecs, events, draw } = this.identity;
    const mesh: Payload = {};
    if (lingerSecs !== undefined) mesh.linger_secs = lingerSecs;
    if (events.length > 0) mesh.events = events;
    let agentId = this.identity.agentId;
    // Drawn again, of the same digits: the same id at every node.
    if (agentId === undefined && draw !== undefined) mesh.draw = draw;
    else if (agentId === undefined && this.agentId !== "") agentId = this.agentId;
    const payload: Payload = { key, name, capabilities, protocol_version: PROTOCOL_VERSION };
    if (agentId !== undefined) Object.assign(payload, { agent_id: agentId, reconnect: true });
    if (Object.keys(mesh).length > 0) payload.mesh = mesh;
    return payload;
  }

  /** Joins the rooms that the node has not restored. Returns those that are closed to the agent. */
  async #rejoin(session: Session, restored: string[]): Promise<string[]> {
    const roomsLost: string[] = [];
    for (const roomId of [...this.rooms].filter((room) => !restored.includes(room))) {
      try {
        await this.#exchange(session, "join_room", { room_id: roomId });
      } catch (error) {
        if (!(error instanceof Refused)) {
          session.close();
          throw error;
        }
        this.rooms.delete(roomId);
        roomsLost.push(roomId);
      }
    }
    return roomsLost;
  }

  #exchange(session: Session, kind: string, payload: Payload): Promise<Payload> {
    const late = new ConnectionLost(`${this.address} does not answer`);
    return within(this.policy.connectTimeout, late, session.ask(kind, payload));
  }
}

/** The same, or this error when the time (in ms) is over. */
function within<T>(ms: number, late: Error, work: Promise<T>): Promise<T> {
  return new Promise((resolve, reject) => {
    const timer = setTimeout(() => reject(late), Math.max(ms, 0));
    work.then(resolve, reject).finally(() => clearTimeout(timer));
  });
}
