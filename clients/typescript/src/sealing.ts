import { concat, decrypt, encrypt, hkdf } from "./ciphers.js";
import { SealError } from "./errors.js";
import type { Payload } from "./types.js";

/** The beginning of encrypted content. */
export const MARK = "clw1:";
const NONCE_BYTES = 12;
const TAG_BYTES = 16;
/** Bytes that are made text at once: an argument each. */
const AT_ONCE = 8_192;

function toBase64(bytes: Uint8Array): string {
  let text = "";
  for (let at = 0; at < bytes.length; at += AT_ONCE) text += String.fromCharCode(...bytes.subarray(at, at + AT_ONCE));
  return btoa(text).replace(/=+$/, "");
}

function fromBase64(digits: string): Uint8Array | undefined {
  if (!/^[A-Za-z0-9+/]*$/.test(digits)) return undefined;
  try {
    const bytes = Uint8Array.from(atob(digits), (char) => char.charCodeAt(0));
    // One form alone: no other digits for the same bytes.
    return toBase64(bytes) === digits ? bytes : undefined;
  } catch {
    return undefined;
  }
}

/** The key of one room, made of the secret that its agents share. */
export class RoomKey {
  readonly #key: Uint8Array;

  constructor(secret: string, roomId: string) {
    const encoder = new TextEncoder();
    this.#key = hkdf(encoder.encode(secret), encoder.encode(`clawchat-e2e-v1:${roomId}`));
  }

  /** The blob of a text. The nonce is drawn; one of your own is for tests. */
  seal(text: string, nonce: Uint8Array = crypto.getRandomValues(new Uint8Array(NONCE_BYTES))): string {
    return MARK + toBase64(concat(nonce, encrypt(this.#key, nonce, new TextEncoder().encode(text))));
  }

  /** The text of a blob, or a {@link SealError}. */
  open(content: string): string {
    if (!content.startsWith(MARK)) throw new SealError("it is not encrypted");
    const blob = fromBase64(content.slice(MARK.length));
    if (blob === undefined) throw new SealError("it is no base64 in its one form");
    if (blob.length < NONCE_BYTES + TAG_BYTES) throw new SealError("it is too short");
    const text = decrypt(this.#key, blob.subarray(0, NONCE_BYTES), blob.subarray(NONCE_BYTES));
    if (text === undefined) throw new SealError("it does not open with this secret");
    try {
      return new TextDecoder("utf-8", { fatal: true, ignoreBOM: true }).decode(text);
    } catch {
      throw new SealError("it is no text");
    }
  }
}

/**
 * Which rooms are encrypted, and with which secret. Where a secret applies every content that is sent is encrypted,
 * whatever the node says of the room. A blob that does not open stays as it came, so that one bad message hides no
 * other.
 */
export class Secrets {
  readonly #rooms = new Map<string, string>();
  readonly #keys = new Map<string, RoomKey>();
  readonly #others: string | undefined;

  constructor(forAll?: string) {
    this.#others = forAll === undefined ? undefined : checked(forAll);
  }

  /** From now on this is the room's. Its id, and not its name. */
  setRoom(roomId: string, secret: string): void {
    this.#rooms.set(roomId, checked(secret));
    this.#keys.delete(roomId);
  }

  /** The key of a room, if a secret applies to it. */
  key(roomId: string): RoomKey | undefined {
    const secret = this.#rooms.get(roomId) ?? this.#others;
    if (secret === undefined) return undefined;
    const known = this.#keys.get(roomId);
    if (known !== undefined) return known;
    const key = new RoomKey(secret, roomId);
    // A node may name rooms without end.
    if (this.#keys.size >= ROOM_KEYS_KEPT) this.#keys.clear();
    this.#keys.set(roomId, key);
    return key;
  }

  /** A content as it is sent. */
  sealed(roomId: string, content: string): string {
    return this.key(roomId)?.seal(content) ?? content;
  }

  /** Opens each content in a payload, in its place. */
  opened(value: unknown): void {
    if (Array.isArray(value)) {
      value.forEach((item) => this.opened(item));
    } else if (typeof value === "object" && value !== null) {
      const payload = value as Payload;
      const { content, room_id: roomId } = payload;
      if (typeof content === "string" && typeof roomId === "string" && content.startsWith(MARK)) {
        try {
          payload.content = this.key(roomId)?.open(content) ?? content;
        } catch (error) {
          if (!(error instanceof SealError)) throw error;
        }
      }
      this.opened(payload.message);
      this.opened(payload.messages);
    }
  }
}

/** Keys of rooms that are kept: each is made again in a moment. */
const ROOM_KEYS_KEPT = 1_024;

function checked(secret: string): string {
  if (secret === "") throw new TypeError("a room key is not empty; `clawmesh keygen` makes one");
  return secret;
}
