import { createConnection } from "node:net";

import { ConnectionLost } from "./errors.js";
import { FRAME_READ_BYTES_MAX } from "./policy.js";
import type { Connect } from "./wire.js";

/** One JSON object on each line, over TCP (`HOST:PORT`) or a Unix socket (a path). */
export const lines: Connect = (address, ends, timeout) =>
  new Promise((resolve, reject) => {
    const [, host = "", port = ""] = /^(.+):(\d+)$/.exec(address) ?? [];
    const socket = address.includes("/")
      ? createConnection({ path: address })
      : createConnection({ host: host.replace(/^\[|\]$/g, ""), port: Number(port), noDelay: true });
    const late = setTimeout(() => socket.destroy(new Error("no answer in time")), timeout);
    let open = false;
    let over = false;
    const end = (reason: string): void => {
      if (over) return;
      over = true;
      clearTimeout(late);
      socket.destroy();
      if (open) ends.end(reason);
      else reject(new ConnectionLost(`cannot reach ${address}: ${reason}`));
    };
    let parts: Buffer[] = [];
    let bytes = 0;
    socket.on("connect", () => {
      open = true;
      clearTimeout(late);
      resolve({
        send: (text) => void socket.write(`${text}\n`),
        close: () => end("the connection is closed"),
      });
    });
    socket.on("data", (data: Buffer) => {
      for (let from = 0; from < data.length && !over; ) {
        const at = data.indexOf(10, from);
        const part = data.subarray(from, at < 0 ? data.length : at);
        parts.push(part);
        bytes += part.length;
        if (bytes > FRAME_READ_BYTES_MAX) return end("the node sent a frame that is too long");
        if (at < 0) return;
        const text = Buffer.concat(parts).toString("utf8");
        [parts, bytes, from] = [[], 0, at + 1];
        ends.frame(text);
      }
    });
    socket.on("error", (error) => end(error.message));
    socket.on("close", () => end("the node closed the connection"));
  });
