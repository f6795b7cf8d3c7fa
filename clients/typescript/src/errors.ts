/** Any failure of this package. */
export class ClawmeshError extends Error {
  constructor(text: string) {
    super(text);
    this.name = new.target.name;
  }
}

/** The node said no: `code` is one of the protocol's, the message is for people. */
export class Refused extends ClawmeshError {
  /** `reason` is `mesh.reason` of the answer, if it has one. */
  constructor(
    readonly code: string,
    text: string,
    readonly reason?: string,
  ) {
    super(`${text} (${code})`);
  }
}

/** The connection was lost before the answer came. It is not known whether the node acted. */
export class ConnectionLost extends ClawmeshError {}

/** No answer in time. It is not known whether the node acted. */
export class CallTimeout extends ClawmeshError {}

/** The agent is closed, or has given up connecting. */
export class Closed extends ClawmeshError {}

/** After a reconnect the node did not let the agent back into the room. */
export class RoomLost extends ClawmeshError {}

/** A content cannot be encrypted or decrypted. */
export class SealError extends ClawmeshError {}
