// SHA-256, HMAC and ChaCha20-Poly1305 (RFC 8439): browsers have no ChaCha20, and outside of secure contexts no
// ciphers at all. No branch and no index depends on a secret.

const K = new Uint32Array(64);
const START = new Uint32Array(8);
{
  // The first 32 bits of the fractional parts of roots of primes.
  let found = 0;
  const bits = (root: number): number => ((root - Math.floor(root)) * 2 ** 32) >>> 0;
  for (let candidate = 2; found < 64; candidate += 1) {
    let prime = true;
    for (let divisor = 2; divisor * divisor <= candidate; divisor += 1) prime &&= candidate % divisor !== 0;
    if (!prime) continue;
    if (found < 8) START[found] = bits(Math.sqrt(candidate));
    K[found] = bits(Math.cbrt(candidate));
    found += 1;
  }
}

const rotr = (x: number, n: number): number => (x >>> n) | (x << (32 - n));

export function sha256(data: Uint8Array): Uint8Array {
  const length = ((data.length + 8) >> 6) + 1;
  const padded = new Uint8Array(length * 64);
  padded.set(data);
  padded[data.length] = 0x80;
  const view = new DataView(padded.buffer);
  view.setUint32(padded.length - 8, Math.floor(data.length / 2 ** 29));
  view.setUint32(padded.length - 4, (data.length << 3) >>> 0);
  const state = START.slice();
  const w = new Uint32Array(64);
  for (let block = 0; block < padded.length; block += 64) {
    for (let i = 0; i < 16; i += 1) w[i] = view.getUint32(block + 4 * i);
    for (let i = 16; i < 64; i += 1) {
      const [x, y] = [w[i - 15]!, w[i - 2]!];
      const s0 = rotr(x, 7) ^ rotr(x, 18) ^ (x >>> 3);
      const s1 = rotr(y, 17) ^ rotr(y, 19) ^ (y >>> 10);
      w[i] = w[i - 16]! + s0 + w[i - 7]! + s1;
    }
    let [a, b, c, d, e, f, g, h] = state as unknown as [number, number, number, number, number, number, number, number];
    for (let i = 0; i < 64; i += 1) {
      const s1 = rotr(e, 6) ^ rotr(e, 11) ^ rotr(e, 25);
      const t1 = (h + s1 + ((e & f) ^ (~e & g)) + K[i]! + w[i]!) | 0;
      const s0 = rotr(a, 2) ^ rotr(a, 13) ^ rotr(a, 22);
      const t2 = (s0 + ((a & b) ^ (a & c) ^ (b & c))) | 0;
      [h, g, f, e, d, c, b, a] = [g, f, e, (d + t1) | 0, c, b, a, (t1 + t2) | 0];
    }
    [a, b, c, d, e, f, g, h].forEach((word, i) => (state[i] = state[i]! + word));
  }
  const out = new Uint8Array(32);
  const words = new DataView(out.buffer);
  state.forEach((word, i) => words.setUint32(4 * i, word));
  return out;
}

export function concat(...parts: Uint8Array[]): Uint8Array {
  const out = new Uint8Array(parts.reduce((length, part) => length + part.length, 0));
  let at = 0;
  for (const part of parts) {
    out.set(part, at);
    at += part.length;
  }
  return out;
}

export function hmac(key: Uint8Array, data: Uint8Array): Uint8Array {
  const block = new Uint8Array(64);
  block.set(key.length > 64 ? sha256(key) : key);
  const inner = sha256(concat(block.map((byte) => byte ^ 0x36), data));
  return sha256(concat(block.map((byte) => byte ^ 0x5c), inner));
}

/** HKDF-SHA256 of one block, without a salt. */
export function hkdf(secret: Uint8Array, info: Uint8Array): Uint8Array {
  return hmac(hmac(new Uint8Array(32), secret), concat(info, new Uint8Array([1])));
}

/** One block of the key stream. */
function block(key: DataView, nonce: DataView, counter: number): Uint8Array {
  const start = new Uint32Array(16);
  start.set([0x61707865, 0x3320646e, 0x79622d32, 0x6b206574]);
  for (let i = 0; i < 8; i += 1) start[4 + i] = key.getUint32(4 * i, true);
  start[12] = counter;
  for (let i = 0; i < 3; i += 1) start[13 + i] = nonce.getUint32(4 * i, true);
  const x = start.slice();
  const quarter = (a: number, b: number, c: number, d: number): void => {
    const mix = (to: number, from: number, onto: number, n: number): void => {
      x[to] = x[to]! + x[from]!;
      const mixed = x[onto]! ^ x[to]!;
      x[onto] = (mixed << n) | (mixed >>> (32 - n));
    };
    mix(a, b, d, 16);
    mix(c, d, b, 12);
    mix(a, b, d, 8);
    mix(c, d, b, 7);
  };
  for (let round = 0; round < 10; round += 1) {
    for (let i = 0; i < 4; i += 1) quarter(i, 4 + i, 8 + i, 12 + i);
    for (let i = 0; i < 4; i += 1) quarter(i, 4 + ((i + 1) % 4), 8 + ((i + 2) % 4), 12 + ((i + 3) % 4));
  }
  const out = new Uint8Array(64);
  const view = new DataView(out.buffer);
  start.forEach((word, i) => view.setUint32(4 * i, (word + x[i]!) >>> 0, true));
  return out;
}

const viewOf = (bytes: Uint8Array): DataView => new DataView(bytes.buffer, bytes.byteOffset, bytes.length);

function chacha20(key: Uint8Array, nonce: Uint8Array, data: Uint8Array): Uint8Array {
  // A Buffer's `slice` would be the same bytes.
  const out = new Uint8Array(data);
  for (let at = 0, counter = 1; at < out.length; at += 64, counter += 1) {
    const stream = block(viewOf(key), viewOf(nonce), counter);
    for (let i = 0; i < 64 && at + i < out.length; i += 1) out[at + i]! ^= stream[i]!;
  }
  return out;
}

/** Numbers of 130 bits are ten digits of 13 bits: their products and sums are exact in a double. */
const DIGITS = 10;

function digits(bytes: Uint8Array): number[] {
  const out: number[] = [];
  for (let i = 0; i < DIGITS; i += 1) {
    const bit = 13 * i;
    const from = bit >> 3;
    const wide = (bytes[from] ?? 0) | ((bytes[from + 1] ?? 0) << 8) | ((bytes[from + 2] ?? 0) << 16);
    out.push((wide >>> (bit & 7)) & 0x1fff);
  }
  return out;
}

/** Carries twice, so that each digit is below 2^13 but for the first, which may be a little more. */
function carry(h: number[]): void {
  for (let times = 0; times < 2; times += 1) {
    let over = 0;
    for (let i = 0; i < DIGITS; i += 1) {
      const sum = h[i]! + over;
      over = Math.floor(sum / 0x2000);
      h[i] = sum - over * 0x2000;
    }
    h[0] = h[0]! + over * 5;
  }
}

export function poly1305(key: Uint8Array, data: Uint8Array): Uint8Array {
  const clamped = new Uint8Array(key.subarray(0, 16));
  for (const i of [3, 7, 11, 15]) clamped[i]! &= 15;
  for (const i of [4, 8, 12]) clamped[i]! &= 252;
  const r = digits(clamped);
  let h: number[] = new Array<number>(DIGITS).fill(0);
  for (let at = 0; at < data.length; at += 16) {
    const chunk = new Uint8Array(17);
    const part = data.subarray(at, at + 16);
    chunk.set(part);
    chunk[part.length] = 1;
    const c = digits(chunk);
    const sum = h.map((digit, i) => digit + c[i]!);
    h = sum.map((_, i) => {
      let product = 0;
      for (let j = 0; j < DIGITS; j += 1) {
        product += j <= i ? sum[j]! * r[i - j]! : 5 * sum[j]! * r[i - j + DIGITS]!;
      }
      return product;
    });
    carry(h);
  }
  carry(h);
  // h - p = h + 5 - 2^130: taken if it is not negative.
  const g: number[] = [];
  let over = 5;
  for (let i = 0; i < DIGITS; i += 1) {
    const sum = h[i]! + over;
    over = sum >>> 13;
    g.push(sum & 0x1fff);
  }
  const take = -over;
  const whole = h.map((digit, i) => (digit & ~take) | (g[i]! & take));
  const out = new Uint8Array(16);
  let carried = 0;
  for (let i = 0; i < 16; i += 1) {
    const bit = 8 * i;
    const [at, shift] = [Math.floor(bit / 13), bit % 13];
    const wide = (whole[at]! >>> shift) | ((whole[at + 1] ?? 0) << (13 - shift));
    const sum = (wide & 0xff) + key[16 + i]! + carried;
    out[i] = sum & 0xff;
    carried = sum >>> 8;
  }
  return out;
}

function tagOf(key: Uint8Array, nonce: Uint8Array, sealed: Uint8Array): Uint8Array {
  const once = block(viewOf(key), viewOf(nonce), 0).subarray(0, 32);
  const lengths = new Uint8Array(16);
  new DataView(lengths.buffer).setUint32(8, sealed.length, true);
  return poly1305(once, concat(sealed, new Uint8Array((16 - (sealed.length % 16)) % 16), lengths));
}

/** The ciphertext, and its tag behind it. */
export function encrypt(key: Uint8Array, nonce: Uint8Array, text: Uint8Array): Uint8Array {
  const sealed = chacha20(key, nonce, text);
  return concat(sealed, tagOf(key, nonce, sealed));
}

/** The text, or nothing if the tag is not the one of this key. */
export function decrypt(key: Uint8Array, nonce: Uint8Array, data: Uint8Array): Uint8Array | undefined {
  const sealed = data.subarray(0, data.length - 16);
  const expected = tagOf(key, nonce, sealed);
  let differs = 0;
  expected.forEach((byte, i) => (differs |= byte ^ data[sealed.length + i]!));
  return differs === 0 ? chacha20(key, nonce, sealed) : undefined;
}
