-- The layout of a ClawChat 0.3.1 server's file, in words of our own: tables, columns, defaults, triggers.
PRAGMA journal_mode = WAL;
PRAGMA foreign_keys = ON;

CREATE TABLE api_keys (
    api_key TEXT PRIMARY KEY,
    tier TEXT NOT NULL DEFAULT 'free',
    label TEXT,
    created_at TEXT NOT NULL
);
CREATE TABLE agent_identities (
    agent_id TEXT PRIMARY KEY,
    owner_key TEXT NOT NULL,
    claimed_at TEXT NOT NULL
);
CREATE TABLE rooms (
    room_id TEXT PRIMARY KEY,
    name TEXT NOT NULL UNIQUE,
    description TEXT,
    parent_id TEXT REFERENCES rooms (room_id),
    created_by TEXT,
    created_at TEXT NOT NULL,
    visibility TEXT NOT NULL DEFAULT 'private',
    owner_key TEXT,
    encrypted INTEGER NOT NULL DEFAULT 0
);
CREATE TABLE messages (
    message_id TEXT PRIMARY KEY,
    room_id TEXT NOT NULL REFERENCES rooms (room_id),
    agent_id TEXT NOT NULL,
    agent_name TEXT NOT NULL,
    content TEXT NOT NULL,
    reply_to_message TEXT,
    metadata TEXT DEFAULT '{}',
    created_at TEXT NOT NULL,
    seq INTEGER NOT NULL DEFAULT 0
);
CREATE TABLE room_sequences (
    room_id TEXT PRIMARY KEY REFERENCES rooms (room_id),
    high_water INTEGER NOT NULL DEFAULT 0
);
CREATE TABLE agent_sessions (
    session_id TEXT PRIMARY KEY,
    agent_id TEXT NOT NULL,
    agent_name TEXT NOT NULL,
    capabilities TEXT DEFAULT '[]',
    connected_at TEXT NOT NULL,
    disconnected_at TEXT
);
CREATE TABLE votes (
    vote_id TEXT PRIMARY KEY,
    room_id TEXT NOT NULL REFERENCES rooms (room_id),
    title TEXT NOT NULL,
    description TEXT,
    options TEXT NOT NULL,
    created_by TEXT NOT NULL,
    created_at TEXT NOT NULL,
    closes_at TEXT,
    status TEXT NOT NULL DEFAULT 'open',
    eligible_voters INTEGER NOT NULL
);
CREATE TABLE vote_ballots (
    vote_id TEXT NOT NULL REFERENCES votes (vote_id),
    agent_id TEXT NOT NULL,
    agent_name TEXT NOT NULL,
    option_index INTEGER NOT NULL,
    cast_at TEXT NOT NULL,
    PRIMARY KEY (vote_id, agent_id)
);
CREATE TABLE vote_eligible_agents (
    vote_id TEXT NOT NULL REFERENCES votes (vote_id),
    agent_id TEXT NOT NULL,
    PRIMARY KEY (vote_id, agent_id)
);
CREATE TABLE room_tasks (
    task_id TEXT PRIMARY KEY,
    room_id TEXT NOT NULL REFERENCES rooms (room_id),
    title TEXT NOT NULL,
    description TEXT,
    status TEXT NOT NULL,
    assignee TEXT,
    created_by TEXT NOT NULL,
    created_at TEXT NOT NULL,
    updated_at TEXT,
    note TEXT
);
CREATE TABLE subscriptions (
    subscription_id TEXT PRIMARY KEY,
    room_id TEXT NOT NULL REFERENCES rooms (room_id),
    owner_key TEXT NOT NULL,
    webhook_url TEXT NOT NULL,
    secret TEXT NOT NULL,
    kinds TEXT,
    only_from TEXT,
    not_from TEXT,
    exclude_thinking INTEGER NOT NULL,
    since_seq INTEGER NOT NULL,
    last_delivered_seq INTEGER NOT NULL,
    status TEXT NOT NULL,
    failure_count INTEGER NOT NULL,
    created_at TEXT NOT NULL
);
CREATE TABLE subscription_deliveries (
    delivery_id TEXT PRIMARY KEY,
    subscription_id TEXT NOT NULL REFERENCES subscriptions (subscription_id),
    message_seq INTEGER NOT NULL,
    message_id TEXT NOT NULL,
    next_attempt_at TEXT NOT NULL,
    attempts INTEGER NOT NULL,
    last_error TEXT
);
CREATE TRIGGER messages_rise BEFORE INSERT ON messages
WHEN NEW.seq <= (SELECT high_water FROM room_sequences WHERE room_id = NEW.room_id)
BEGIN
    SELECT RAISE(ABORT, 'seq must be above the high water mark');
END;
CREATE TRIGGER messages_raise AFTER INSERT ON messages
BEGIN
    INSERT INTO room_sequences (room_id, high_water) VALUES (NEW.room_id, NEW.seq)
    ON CONFLICT (room_id) DO UPDATE SET high_water = NEW.seq;
END;
INSERT INTO rooms VALUES ('lobby', 'lobby', 'Default lobby for all agents', NULL, NULL,
    '2026-11-01T08:00:00.000Z', 'public', NULL, 0);
