import { ConnectionLost } from "./errors.js";

/** A connection that stands. */
export interface Wire {
  send(text: string): void;
  close(): void;
}

/** The one who hears. `end` is called once. */
export interface Ends {
  frame(text: string): void;
  end(reason: string): void;
}

/** Connects, or throws. */
export type Connect = (address: string, ends: Ends, timeout: number) => Promise<Wire>;

let lines: Connect | undefined;

/** How sockets are reached that are no WebSockets: Node can, browsers cannot. */
export function useLines(connect: Connect): void {
  lines = connect;
}

/** The address as it is dialled: of a WebSocket its whole URL. */
export function normal(address: string): string {
  if (!address.includes("://")) {
    if (!address.includes("/") && !/^.+:\d{1,5}$/.test(address)) {
      throw new TypeError(`"${address}" is not HOST:PORT, a URL like ws://HOST:PORT/ws, or the path of a socket`);
    }
    return address;
  }
  const url = new URL(address.replace(/^http/i, "ws"));
  if (url.protocol !== "ws:" && url.protocol !== "wss:") {
    throw new TypeError(`"${address}" is not a URL like ws://HOST:PORT/ws or wss://HOST/ws`);
  }
  // Nodes, and ClawChat's server, have it there and nowhere else.
  if (url.pathname === "/" && url.search === "") url.pathname = "/ws";
  return url.href;
}

/** One frame after the other, both ways. */
export const connect: Connect = (address, ends, timeout) => {
  if (address.includes("://")) return webSocket(address, ends, timeout);
  if (lines === undefined) throw new TypeError(`${address} cannot be reached from here: give a ws:// or wss:// URL`);
  return lines(address, ends, timeout);
};

const webSocket: Connect = (url, ends, timeout) =>
  new Promise((resolve, reject) => {
    if (typeof WebSocket === "undefined") {
      throw new TypeError("this Node has no WebSocket: take Node 22, its flag --experimental-websocket, or HOST:PORT");
    }
    const socket = new WebSocket(url);
    const late = setTimeout(() => socket.close(), timeout);
    let open = false;
    let over = false;
    const end = (reason: string): void => {
      if (over) return;
      over = true;
      clearTimeout(late);
      if (open) ends.end(reason);
      else reject(new ConnectionLost(`cannot reach ${url}: ${reason}`));
    };
    socket.onopen = () => {
      open = true;
      clearTimeout(late);
      resolve({
        send: (text) => socket.send(text),
        close: () => {
          socket.close();
          // A peer that is gone does not answer.
          end("the connection is closed");
        },
      });
    };
    socket.onmessage = (event) => {
      if (!over) ends.frame(String(event.data));
    };
    socket.onerror = () => end("the connection is lost");
    socket.onclose = () => end("the node closed the connection");
  });
