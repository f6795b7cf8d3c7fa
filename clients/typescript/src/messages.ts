import type { Agent } from "./agent.js";
import { CallTimeout, RoomLost } from "./errors.js";
import { IDS_REMEMBERED, PAGE_MESSAGES } from "./policy.js";
import type { EventQueue } from "./queue.js";
import type { ClawEvent, Cursor, Message } from "./types.js";

/**
 * Every message of a room once, in rising order.
 *
 * It joins first, so that live messages come, and then pages from its cursor. A live message is the next one only if
 * its number follows the cursor directly; after a jump, a reconnect or dropped events it pages again.
 */
export class Messages implements AsyncIterable<Message> {
  readonly #queue: EventQueue;
  readonly #ids = new Set<string>();
  #ready: Message[] = [];
  #ahead: Message | undefined;
  #behind = true;
  #saved: number | undefined;

  private constructor(
    private readonly agent: Agent,
    readonly roomId: string,
    private at: number,
    private readonly kept: Cursor | undefined,
  ) {
    this.#queue = agent.link.subscribe();
    this.#saved = at;
  }

  /** @internal */
  static async open(agent: Agent, roomId: string, after: number | Cursor | undefined): Promise<Messages> {
    const cursor = typeof after === "object" ? after : undefined;
    let start = typeof after === "number" ? after : await cursor?.read();
    await agent.join(roomId);
    if (start === undefined) {
      start = await agent.tip(roomId);
      await cursor?.write(start);
    }
    return new Messages(agent, roomId, start, cursor);
  }

  /** The number of the last message that was given. */
  get cursor(): number {
    return this.at;
  }

  async *[Symbol.asyncIterator](): AsyncGenerator<Message> {
    try {
      for (;;) {
        const message = await this.next();
        if (message !== undefined) yield message;
      }
    } finally {
      this.close();
    }
  }

  /**
   * The next message, or nothing when `timeout` ms are over. The one before counts as worked on: the cursor is
   * written. One's own are given, too, in their place: with the next message of somebody else.
   */
  async next(timeout?: number): Promise<Message | undefined> {
    await this.save();
    const until = timeout === undefined ? undefined : Date.now() + timeout;
    for (;;) {
      let message = this.#ready.shift();
      if (message === undefined && this.#behind) {
        await this.#page();
        continue;
      }
      if (message === undefined) {
        message = this.#ahead;
        this.#ahead = undefined;
      }
      if (message === undefined) {
        const event = await this.#queue.next(until === undefined ? undefined : until - Date.now());
        if (event === undefined) return undefined;
        message = this.#live(event);
      }
      if (message === undefined || message.seq <= this.at) continue;
      this.at = message.seq;
      if (this.#isNew(message.message_id)) return message;
    }
  }

  /** At least one message unless `timeout` ms pass, and those that are here already. The cursor is written. */
  async batch(timeout: number): Promise<Message[]> {
    const batch: Message[] = [];
    let message = await this.next(timeout);
    while (message !== undefined) {
      batch.push(message);
      message = this.#ready.length > 0 ? await this.next(0) : undefined;
    }
    await this.save();
    return batch;
  }

  /** Writes the cursor, if there is one: everything that was given is worked on. */
  async save(): Promise<void> {
    if (this.kept === undefined || this.#saved === this.at) return;
    await this.kept.write(this.at);
    this.#saved = this.at;
  }

  /** Ends the stream. The agent stays in the room. */
  close(): void {
    this.agent.link.unsubscribe(this.#queue);
  }

  async #page(): Promise<void> {
    let page: Message[];
    try {
      page = await this.agent.history(this.roomId, { limit: PAGE_MESSAGES, sinceSeq: this.at });
    } catch (error) {
      // A long outage: it is still behind.
      if (error instanceof CallTimeout) return;
      throw error;
    }
    let last = this.at;
    for (const message of page) {
      if (message.seq <= last) continue;
      last = message.seq;
      this.#ready.push(message);
    }
    // A node may cut a page short: only an empty one is the end.
    this.#behind = this.#ready.length > 0;
  }

  #live(event: ClawEvent): Message | undefined {
    if (event.type === "message_received" || event.type === "thinking") {
      const message = event.payload as Message;
      if (message.room_id !== this.roomId || message.seq <= this.at) return undefined;
      if (message.seq === this.at + 1) return message;
      this.#behind = true;
      this.#ahead = message;
    } else if (event.type === "client.reconnected") {
      if ((event.payload.rooms_lost as string[]).includes(this.roomId)) {
        throw new RoomLost(`${this.roomId} is gone, or closed to this key`);
      }
      this.#behind = true;
    } else if (event.type === "client.missed" || event.type === "decision_made") {
      this.#behind = true;
    }
    return undefined;
  }

  #isNew(id: string): boolean {
    if (this.#ids.has(id)) return false;
    this.#ids.add(id);
    if (this.#ids.size > IDS_REMEMBERED) this.#ids.delete(this.#ids.values().next().value as string);
    return true;
  }
}
