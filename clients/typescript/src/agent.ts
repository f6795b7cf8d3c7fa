import { CallTimeout, ClawmeshError } from "./errors.js";
import { Link } from "./link.js";
import { Messages } from "./messages.js";
import { PIECE_BYTES_MAX, POLICY, type Policy } from "./policy.js";
import type { EventQueue } from "./queue.js";
import { Secrets } from "./sealing.js";
import type { AgentInfo, ClawEvent, Cursor, Message, Payload, Receipts, Room, RoomInfo, Task, TaskStatus, Vote } from "./types.js";

export interface AgentOptions {
  /** `HOST:PORT`, `ws://…`, `wss://…`, or the path of a socket. The first that answers is taken, and the next one when it is lost. Browsers reach `ws://` and `wss://` alone. */
  addresses: string[];
  /** An API key. */
  key: string;
  name: string;
  /** A stable identity. Without one a node draws it, and the agent keeps it over reconnects. */
  agentId?: string;
  /** 12 hexadecimal digits: the same id at every node, without a claim. */
  draw?: string;
  capabilities?: string[];
  /** Seconds for which the agent stays in its rooms when its connection ends. */
  lingerSecs?: number;
  /** `stream` and `receipt` are pushed to those alone that ask for them. */
  events?: ("stream" | "receipt")[];
  /** The secret that the agents of all its rooms share. */
  roomKey?: string;
  policy?: Partial<Policy>;
}

export interface SendOptions {
  /** The id of a message. */
  replyTo?: string;
  /** Ids of agents. */
  mentions?: string[];
  metadata?: unknown;
  /** Names this send over all its repeats, also those of another process within 10 minutes: it is one message. */
  sendId?: string;
  /** The answer waits until so many nodes hold the message on their disks; `mesh.durable` says how many do. */
  durable?: number;
  /** … or for so long. */
  durableWaitMs?: number;
}

/** A registered agent at one of several nodes. */
export class Agent {
  /** The secrets of rooms: `agent.secrets.setRoom(roomId, secret)`. */
  readonly secrets: Secrets;
  readonly name: string;
  /** @internal */
  readonly link: Link;

  private constructor(options: AgentOptions) {
    this.name = options.name;
    this.secrets = new Secrets(options.roomKey);
    const identity = {
      key: options.key,
      name: options.name,
      agentId: options.agentId,
      draw: options.draw,
      capabilities: options.capabilities ?? [],
      lingerSecs: options.lingerSecs,
      events: options.events ?? [],
    };
    this.link = new Link(options.addresses, identity, this.secrets, { ...POLICY, ...options.policy });
  }

  /** Connects and registers. Each address is tried once. */
  static async connect(options: AgentOptions): Promise<Agent> {
    const agent = new Agent(options);
    await agent.link.open();
    return agent;
  }

  /** Leaves. Those who wait for an answer or an event get {@link Closed}. */
  close(): void {
    this.link.close();
  }

  /** The id that it chose, or that a node drew. */
  get agentId(): string {
    return this.link.agentId;
  }

  /** The node at which it is, or was last. */
  get address(): string {
    return this.link.address;
  }

  /** Any command of the protocol: its answer's payload, or {@link Refused}. */
  call(type: string, payload: Payload = {}, timeout?: number): Promise<Payload> {
    return this.link.call(type, payload, timeout);
  }

  /** Events from now on, for one reader. */
  events(): Events {
    return new Events(this.link);
  }

  // Rooms.

  /** The creator is not in the room yet. */
  async createRoom(
    name: string,
    options: { description?: string; parentId?: string; ephemeral?: boolean; public?: boolean; encrypted?: boolean } = {},
  ): Promise<Room> {
    const { parentId, ...rest } = options;
    return (await this.call("create_room", given({ name, parent_id: parentId, ...rest }))) as Room;
  }

  /** Joins, and joins again after each reconnect. */
  async join(roomId: string): Promise<void> {
    await this.call("join_room", { room_id: roomId });
  }

  async leave(roomId: string): Promise<void> {
    await this.call("leave_room", { room_id: roomId });
  }

  async rooms(parentId?: string): Promise<Room[]> {
    return (await this.call("list_rooms", given({ parent_id: parentId }))).rooms as Room[];
  }

  async roomInfo(roomId: string): Promise<RoomInfo> {
    return (await this.call("room_info", { room_id: roomId })) as RoomInfo;
  }

  /** Members of a room in join order, or the agents of this key. */
  async agents(roomId?: string): Promise<AgentInfo[]> {
    return (await this.call("list_agents", given({ room_id: roomId }))).agents as AgentInfo[];
  }

  /** The room of two agents, which nobody else reads. */
  directRoom(agentId: string): Promise<Room> {
    return this.createRoom(`dm:${agentId}`);
  }

  // Messages.

  /** Says something. The message has its `seq`. */
  async send(roomId: string, content: string, options: SendOptions = {}): Promise<Message> {
    const payload = given({
      room_id: roomId,
      content: this.secrets.sealed(roomId, content),
      reply_to: options.replyTo,
      mentions: options.mentions,
      metadata: options.metadata,
    });
    payload.mesh = given({
      dedup: options.sendId ?? fresh(),
      durable: options.durable,
      durable_wait_ms: options.durableWaitMs,
    });
    return (await this.call("send_message", payload)) as Message;
  }

  /** A thought: in history, and of no effect on the turn. */
  async thinking(roomId: string, content: string): Promise<Message> {
    const sealed = this.secrets.sealed(roomId, content);
    return (await this.call("thinking", { room_id: roomId, content: sealed, mesh: { dedup: fresh() } })) as Message;
  }

  /** Oldest first: the newest `limit`, or the first `limit` after `sinceSeq`. */
  async history(roomId: string, options: { limit?: number; sinceSeq?: number; before?: string } = {}): Promise<Message[]> {
    const { limit = 50, sinceSeq, before } = options;
    return (await this.call("get_history", given({ room_id: roomId, limit, since_seq: sinceSeq, before }))).messages as Message[];
  }

  /** The number of the newest message, 0 without one. */
  async tip(roomId: string): Promise<number> {
    return (await this.call("room_tip", { room_id: roomId })).seq as number;
  }

  /**
   * Joins, and gives every message of the room once, in rising order, over lost connections. `after`: a number (0 =
   * from the beginning), or a cursor, which is written when the message has been worked on, that is, when the next
   * one is asked for. Without it: from now on.
   */
  messages(roomId: string, options: { after?: number | Cursor } = {}): Promise<Messages> {
    return Messages.open(this, roomId, options.after);
  }

  /** The next messages, at least one unless `timeout` ms pass. A cursor is written before. */
  async wait(roomId: string, options: { after?: number | Cursor; timeout?: number } = {}): Promise<Message[]> {
    const messages = await this.messages(roomId, options);
    try {
      return await messages.batch(options.timeout ?? 60_000);
    } finally {
      messages.close();
    }
  }

  /** Which nodes hold a message, and which agents have it. */
  async receipts(roomId: string, messageId: string): Promise<Receipts> {
    return (await this.call("get_receipts", { room_id: roomId, message_id: messageId })) as Receipts;
  }

  /** Confirms all messages up to a number. */
  async ack(roomId: string, seq: number): Promise<void> {
    await this.call("ack", { room_id: roomId, seq });
  }

  /** An answer that others see while it is written. */
  writing(roomId: string, options: { replyTo?: string } = {}): Writing {
    return new Writing(this, roomId, options.replyTo);
  }

  /** Messages that have all these words, the newest first: one page. */
  async search(text: string, options: { roomId?: string; limit?: number } = {}): Promise<Message[]> {
    const { roomId, limit = 20 } = options;
    return (await this.call("search", given({ text, room_id: roomId, limit }))).messages as Message[];
  }

  async setPresence(status: "idle" | "waiting" | "working" | "thinking", detail?: string, progress?: number): Promise<void> {
    await this.call("set_presence", given({ status, status_detail: detail, progress }));
  }

  async setTyping(roomId: string, typing = true): Promise<void> {
    await this.call("set_typing", { room_id: roomId, typing });
  }

  // Votes and leaders.

  /** A sealed vote of the members of this moment. Its end comes as the event `vote_result`. */
  async createVote(
    roomId: string,
    title: string,
    options: string[],
    more: { description?: string; durationSecs?: number } = {},
  ): Promise<Vote> {
    const { description, durationSecs } = more;
    const payload = given({ room_id: roomId, title, options, description, duration_secs: durationSecs });
    return (await this.call("create_vote", payload)) as Vote;
  }

  async castVote(voteId: string, optionIndex: number): Promise<void> {
    await this.call("cast_vote", { vote_id: voteId, option_index: optionIndex });
  }

  /** Counts while it is open, the tally once it is closed. */
  async vote(voteId: string): Promise<Vote> {
    return (await this.call("get_vote_status", { vote_id: voteId })) as Vote;
  }

  async votes(roomId: string, limit = 20): Promise<Vote[]> {
    return (await this.call("list_votes", { room_id: roomId, limit })).votes as Vote[];
  }

  /** Begins an election. `leader_elected` comes after 2 s. */
  async electLeader(roomId: string): Promise<void> {
    await this.call("elect_leader", { room_id: roomId });
  }

  async declineElection(roomId: string): Promise<void> {
    await this.call("decline_election", { room_id: roomId });
  }

  /** A decision of the leader: the message's id. */
  async decide(roomId: string, content: string, metadata?: Payload): Promise<string> {
    const sealed = this.secrets.sealed(roomId, content);
    const payload = given({ room_id: roomId, content: sealed, metadata, mesh: { dedup: fresh() } });
    return (await this.call("decision", payload)).message_id as string;
  }

  // Tasks.

  async assignTask(roomId: string, title: string, more: { description?: string; assignee?: string } = {}): Promise<Task> {
    return (await this.call("assign_task", given({ room_id: roomId, title, ...more }))) as Task;
  }

  /** Takes a task that nobody has; of two that try at once one gets {@link Refused}. */
  async claimTask(taskId: string): Promise<Task> {
    return (await this.call("update_task", { task_id: taskId, assignee: this.agentId, if_assignee: null })) as Task;
  }

  async updateTask(taskId: string, fields: { status?: TaskStatus; note?: string; assignee?: string }): Promise<Task> {
    return (await this.call("update_task", given({ task_id: taskId, ...fields }))) as Task;
  }

  async tasks(roomId: string, status?: TaskStatus): Promise<Task[]> {
    return (await this.call("list_tasks", given({ room_id: roomId, status }))).tasks as Task[];
  }
}

/** Events for one reader, since it was made. */
export class Events implements AsyncIterable<ClawEvent> {
  readonly #queue: EventQueue;

  /** @internal */
  constructor(private readonly link: Link) {
    this.#queue = link.subscribe();
  }

  async *[Symbol.asyncIterator](): AsyncGenerator<ClawEvent> {
    try {
      for (;;) {
        const event = await this.#queue.next();
        if (event === undefined || event.type === "client.closed") return;
        yield event;
      }
    } finally {
      this.close();
    }
  }

  /** The next event, or nothing when `timeout` ms are over. */
  next(timeout?: number): Promise<ClawEvent | undefined> {
    return this.#queue.next(timeout);
  }

  /** The payload of the next event of this type. Those before it are dropped. */
  async find(type: string, where: (payload: Payload) => boolean = () => true, timeout = 30_000): Promise<Payload> {
    const until = Date.now() + timeout;
    for (;;) {
      const event = await this.#queue.next(until - Date.now());
      if (event === undefined) throw new CallTimeout(`no ${type} within ${timeout} ms`);
      if (event.type === type && where(event.payload)) return event.payload;
    }
  }

  /** Drops the queue. */
  close(): void {
    this.link.unsubscribe(this.#queue);
  }
}

/**
 * An answer that is shown while it is written, and sent when it is whole. Pieces are nothing but liveliness: one that
 * is lost or refused is left out, and the message has the whole. In rooms with a secret no piece leaves.
 */
export class Writing {
  readonly #streamId = fresh();
  #text = "";

  /** @internal */
  constructor(
    private readonly agent: Agent,
    private readonly roomId: string,
    private readonly replyTo: string | undefined,
  ) {}

  /** More of the text. */
  async write(text: string): Promise<void> {
    this.#text += text;
    // A character has at most four bytes.
    const characters = [...text];
    for (let at = 0; at < characters.length; at += PIECE_BYTES_MAX / 4) {
      await this.#piece({ kind: "chunk", content: characters.slice(at, at + PIECE_BYTES_MAX / 4).join("") });
    }
  }

  toolCall(tool: string, input?: unknown): Promise<void> {
    return this.#piece({ kind: "tool_call", tool, input });
  }

  toolResult(tool: string, result?: unknown): Promise<void> {
    return this.#piece({ kind: "tool_result", tool, result });
  }

  /** A word about the work, no part of the text. */
  activity(content: string): Promise<void> {
    return this.#piece({ kind: "activity", content });
  }

  /** The whole, as a message. */
  send(options: SendOptions = {}): Promise<Message> {
    const replyTo = this.replyTo === undefined ? {} : { replyTo: this.replyTo };
    return this.agent.send(this.roomId, this.#text, { sendId: this.#streamId, ...replyTo, ...options });
  }

  async #piece(fields: Payload): Promise<void> {
    if (this.agent.secrets.key(this.roomId) !== undefined) return;
    const payload = given({ room_id: this.roomId, stream_id: this.#streamId, reply_to: this.replyTo, ...fields });
    try {
      await this.agent.call("stream", payload);
    } catch (error) {
      if (!(error instanceof ClawmeshError)) throw error;
    }
  }
}

function given(fields: Payload): Payload {
  return Object.fromEntries(Object.entries(fields).filter(([, value]) => value !== undefined));
}

function fresh(): string {
  return [...crypto.getRandomValues(new Uint8Array(16))].map((byte) => byte.toString(16).padStart(2, "0")).join("");
}
