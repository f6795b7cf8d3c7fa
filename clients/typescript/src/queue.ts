import { Closed } from "./errors.js";
import { EVENTS_KEPT } from "./policy.js";
import type { ClawEvent } from "./types.js";

/** Events for one reader. It never grows beyond {@link EVENTS_KEPT}: replies and heartbeats wait for no reader. */
export class EventQueue {
  #events: ClawEvent[] = [];
  #missed = 0;
  #closed: string | undefined;
  #changed: (() => void) | undefined;

  push(event: ClawEvent): void {
    if (this.#closed !== undefined) return;
    if (this.#events.length >= EVENTS_KEPT) {
      this.#missed += this.#events.length;
      this.#events = [];
    }
    this.#events.push(event);
    if (event.type === "client.closed") this.#closed = String(event.payload.reason);
    this.#changed?.();
  }

  /** The next event, or nothing when the time (in ms) is over. */
  async next(timeout?: number): Promise<ClawEvent | undefined> {
    const until = timeout === undefined ? Infinity : Date.now() + timeout;
    for (;;) {
      if (this.#missed > 0) {
        const count = this.#missed;
        this.#missed = 0;
        return { type: "client.missed", payload: { count } };
      }
      const event = this.#events.shift();
      if (event !== undefined) return event;
      if (this.#closed !== undefined) throw new Closed(this.#closed);
      const left = until - Date.now();
      if (left <= 0) return undefined;
      await new Promise<void>((resolve) => {
        const late = left === Infinity ? undefined : setTimeout(resolve, left);
        this.#changed = () => {
          clearTimeout(late);
          resolve();
        };
      });
    }
  }
}
