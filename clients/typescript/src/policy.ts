/** Longest frame that is sent, in bytes: a node closes a connection at a longer one. */
export const FRAME_SENT_BYTES_MAX = 1024 * 1024;
/** Longest frame that is read: a page of history has up to 500 messages of up to 256 KiB. */
export const FRAME_READ_BYTES_MAX = 160 * 1024 * 1024;
/** Events kept for a reader that is busy. Beyond it they are dropped, and `client.missed` says so. */
export const EVENTS_KEPT = 1024;
/** Messages that one `get_history` asks for. */
export const PAGE_MESSAGES = 500;
/** Messages remembered by id, so that one that another node gives under another number is not given twice. */
export const IDS_REMEMBERED = 16 * 1024;
/** Bytes of one piece of an answer that is being written. */
export const PIECE_BYTES_MAX = 16_384;

/** How patient to be, in milliseconds. */
export interface Policy {
  /** For one address: connecting, and then each step of registering and joining again. */
  connectTimeout: number;
  /** Pause after the first failed round over all addresses; it doubles from round to round. */
  retryFirst: number;
  /** Longest pause between rounds. */
  retryMax: number;
  /** For one call, reconnects and repeats included. */
  callTimeout: number;
  /** The node is pinged when nothing came for so long. Nodes send a heartbeat every 30 s. */
  probeAfter: number;
  /** The connection counts as dead when nothing came for so long. */
  deadAfter: number;
}

/** What is not said otherwise. */
export const POLICY: Policy = {
  connectTimeout: 5_000,
  retryFirst: 100,
  retryMax: 5_000,
  callTimeout: 30_000,
  probeAfter: 35_000,
  deadAfter: 50_000,
};

/** The pause before a try (from 0: none), between a half and all of the nominal one. */
export function pause(policy: Policy, attempt: number): number {
  if (attempt === 0) return 0;
  const nominal = Math.min(policy.retryFirst * 2 ** Math.min(attempt - 1, 30), policy.retryMax);
  return (nominal / 2) * (1 + Math.random());
}

export const sleep = (ms: number): Promise<void> => new Promise((done) => setTimeout(done, ms));
