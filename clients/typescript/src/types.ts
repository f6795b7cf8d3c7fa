// Objects of the protocol, as docs/protocol/clawchat.md has them (§5).

/** Fields that nodes of a mesh add. */
export type Mesh = Record<string, unknown>;

export interface Message {
  message_id: string;
  room_id: string;
  agent_id: string;
  agent_name: string;
  content: string;
  reply_to_message?: string;
  metadata: unknown;
  timestamp: string;
  seq: number;
  mesh?: Mesh;
}

export interface Room {
  room_id: string;
  name: string;
  description?: string;
  parent_id?: string;
  ephemeral: boolean;
  created_at: string;
  created_by?: string;
  visibility: "public" | "private";
  owner_key?: string;
  last_activity?: string;
  member_count?: number;
  encrypted: boolean;
  mesh?: Mesh;
}

export interface AgentInfo {
  agent_id: string;
  name: string;
  capabilities: string[];
  connected_at: string;
  last_active: string;
  status: string;
  status_detail?: string;
  progress?: number;
  mesh?: Mesh;
}

export interface RoomInfo {
  room: Room;
  agents: AgentInfo[];
  sub_rooms: Room[];
  current_turn_holder: string | null;
  turn_order: string[];
}

export interface Vote {
  vote_id: string;
  room_id: string;
  title: string;
  description?: string;
  options: string[];
  created_by: string;
  created_at: string;
  closes_at?: string;
  status: "open" | "closed";
  votes_cast: number;
  eligible_voters: number;
  tally?: { option_index: number; option_text: string; count: number }[];
  mesh?: Mesh;
}

export type TaskStatus = "pending" | "in_progress" | "completed" | "blocked";

export interface Task {
  task_id: string;
  room_id: string;
  title: string;
  description?: string;
  status: TaskStatus;
  assignee?: string;
  created_by: string;
  created_at: string;
  updated_at?: string;
  note?: string;
  mesh?: Mesh;
}

/** What became of a message. */
export interface Receipts {
  /** Nodes that hold it durably. */
  stored: { node: string; at: string }[];
  /** How many nodes have the room. */
  of: number;
  /** Nodes that did not answer. */
  unknown: string[];
  agents: { agent_id: string; state: "delivered" | "confirmed" | "answered"; node: string; at: string }[];
}

/** A payload of the protocol. */
// eslint-disable-next-line @typescript-eslint/no-explicit-any
export type Payload = Record<string, any>;

/**
 * Something that happened. `type` is one of the protocol's, or one of the client's own: `client.disconnected`
 * (`reason`), `client.reconnected` (`rooms_lost`), `client.missed` (`count`: the reader was too slow),
 * `client.closed` (`reason`; nothing follows).
 */
export interface ClawEvent {
  type: string;
  payload: Payload;
}

/** Where a number is kept over restarts. */
export interface Cursor {
  /** The number, or nothing if there is none yet. */
  read(): Promise<number | undefined>;
  /** Replaces it, as a whole. */
  write(seq: number): Promise<void>;
}
