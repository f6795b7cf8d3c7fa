// The nodes that tests attach to, and a link to one that can be cut.
//
// CLAWMESH_TCP: addresses of two nodes of one mesh, with a comma between. CLAWMESH_WS, CLAWMESH_SOCKET: others of the
// first one. CLAWMESH_KEY: a key of both. Without them the tests that need nodes are skipped.

import { once } from "node:events";
import { connect, createServer } from "node:net";

export const TCP = (process.env.CLAWMESH_TCP ?? "").split(",").filter(Boolean);
export const WEB_SOCKET = process.env.CLAWMESH_WS ?? "";
export const SOCKET = process.env.CLAWMESH_SOCKET ?? "";
export const KEY = process.env.CLAWMESH_KEY ?? "";
export const needsNodes = TCP.length > 0 ? {} : { skip: "no CLAWMESH_TCP: no nodes to attach to" };

/** A server that answers frames as it is told. */
export async function node(answer) {
  const heard = [];
  const sockets = [];
  const server = createServer((socket) => {
    sockets.push(socket);
    let rest = "";
    socket.on("error", () => {});
    socket.on("data", (data) => {
      const lines = (rest + data).split("\n");
      rest = lines.pop();
      for (const line of lines) {
        const frame = JSON.parse(line);
        heard.push(frame);
        for (const reply of answer(frame, socket) ?? []) socket.write(`${JSON.stringify(reply)}\n`);
      }
    });
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  const end = () => {
    server.close();
    sockets.forEach((socket) => socket.destroy());
  };
  const push = (...frames) => sockets.at(-1).write(frames.map((frame) => `${JSON.stringify(frame)}\n`).join(""));
  return { address: `127.0.0.1:${server.address().port}`, heard, push, end, drop: () => sockets.at(-1).destroy() };
}

/** A link to an address that can be cut. */
export async function pipe(to) {
  const [host, port] = to.split(":");
  const ends = [];
  const server = createServer((client) => {
    const node = connect(Number(port), host);
    ends.push(client, node);
    client.pipe(node).pipe(client);
    for (const end of [client, node]) end.on("error", () => {});
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  return {
    address: `127.0.0.1:${server.address().port}`,
    cut: () => {
      server.close();
      ends.forEach((end) => end.destroy());
    },
  };
}
