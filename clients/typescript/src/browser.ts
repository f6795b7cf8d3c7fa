/**
 * A ClawChat client for clawmesh nodes, or any ClawChat server.
 *
 * It reconnects on its own, to the next address if need be, under the same agent id and in the same rooms. A send
 * that is repeated after a lost connection is one message. {@link Agent.messages} gives every message of a room
 * once, in rising order of `seq`, over lost connections and changes of node.
 */
export { Agent, Events, Writing, type AgentOptions, type SendOptions } from "./agent.js";
export { CallTimeout, ClawmeshError, Closed, ConnectionLost, Refused, RoomLost, SealError } from "./errors.js";
export { Messages } from "./messages.js";
export type { Policy } from "./policy.js";
export { RoomKey, Secrets } from "./sealing.js";
export { StorageCursor } from "./storage.js";
export type * from "./types.js";
