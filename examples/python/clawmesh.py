"""A ClawChat client in one file, with nothing but the standard library (but for room keys).

    from clawmesh import Agent, read_api_key

    with Agent(read_api_key(), "ada") as agent:
        agent.join_room("lobby")
        agent.send_message("lobby", "hello")
        for event in agent.listen():
            print(event["type"], event["payload"])

It talks to a clawmesh node, or to any ClawChat server, over its Unix socket (the default), TCP or a
WebSocket. One thread reads the connection: replies find their callers, heartbeats are answered, and
events wait in a queue until somebody asks for them.

With `room_key`, or `set_room_secret` for one room, every content is encrypted before it is sent and
decrypted when it comes, also if the node calls the room plain. No node has that secret. This alone needs
a package: `pip install cryptography`.
"""

import base64
import collections
import hashlib
import hmac
import json
import os
import pathlib
import queue
import secrets
import socket
import ssl
import struct
import threading
import time
import urllib.parse

HOME = pathlib.Path.home() / ".clawchat"

# What may wait for a program that does not ask for its events. Older ones are dropped first.
EVENTS_KEPT = 10_000
CALL_TIMEOUT = 30.0

# The beginning of encrypted content.
SEALED = "clw1:"
NONCE_BYTES = 12


class ClawChatError(Exception):
    """The node refused: `code` is one of the protocol's, `message` is for people."""

    def __init__(self, code, message):
        super().__init__(f"{message} ({code})")
        self.code = code
        self.message = message


def read_api_key(path=HOME / "auth.key"):
    """The key that `clawmeshd up` made for the agents of this machine."""
    return pathlib.Path(path).read_text().strip()


class Agent:
    """A registered agent. `agent_id` makes the identity stable: it may come back within 120 s.

    `room_key` is the secret that the agents of all its rooms share (`clawmesh keygen` makes one).
    """

    def __init__(self, key, name, *, socket_path=None, tcp=None, url=None, agent_id=None,
                 capabilities=(), timeout=CALL_TIMEOUT, room_key=None):
        self.name = name
        self.timeout = timeout
        self._room_keys = _RoomKeys(room_key)
        self._wire = _connect(socket_path, tcp, url, timeout)
        self._replies = {}
        self._events = collections.deque(maxlen=EVENTS_KEPT)
        self._changed = threading.Condition()
        self._closed = None
        self._calls = 0
        threading.Thread(target=self._read, name=f"{name} reads", daemon=True).start()
        register = {"key": key, "name": name, "capabilities": list(capabilities)}
        if agent_id is not None:
            register |= {"agent_id": agent_id, "reconnect": True}
        try:
            self.registered = self.call("register", register)
        except BaseException:
            self.close()
            raise
        self.agent_id = self.registered["agent_id"]

    # The connection.

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def close(self):
        """Leaves. Whoever is asked for a reply or an event now gets a ConnectionError."""
        self._wire.close()

    def call(self, kind, payload=None, timeout=None):
        """Asks, and waits for the answer: its payload, or ClawChatError."""
        with self._changed:
            self._calls += 1
            frame_id = f"c{self._calls}"
            self._replies[frame_id] = waiting = queue.SimpleQueue()
            closed = self._closed
        if closed is not None:
            raise ConnectionError(closed)
        self._send({"id": frame_id, "type": kind, "payload": payload or {}})
        try:
            reply = waiting.get(timeout=timeout or self.timeout)
        except queue.Empty:
            raise TimeoutError(f"no answer to {kind}") from None
        finally:
            self._replies.pop(frame_id, None)
        if reply is None:
            raise ConnectionError(self._closed)
        if reply["type"] == "error":
            raise ClawChatError(reply["payload"]["code"], reply["payload"]["message"])
        return self._room_keys.opened(reply["payload"])

    def listen(self, timeout=None):
        """Events as they come: `{"type": …, "payload": …}`. Ends when none came for `timeout` seconds."""
        while True:
            with self._changed:
                came = self._changed.wait_for(lambda: self._events or self._closed, timeout)
                if not self._events:
                    if came:
                        raise ConnectionError(self._closed)
                    return
                event = self._events.popleft()
            yield event

    def wait_for_event(self, kind, timeout=CALL_TIMEOUT, where=lambda payload: True):
        """The payload of the next event of this kind. Those before it stay in the queue."""
        deadline = time.monotonic() + timeout
        with self._changed:
            while True:
                for event in self._events:
                    if event["type"] == kind and where(event["payload"]):
                        self._events.remove(event)
                        return event["payload"]
                left = deadline - time.monotonic()
                if self._closed is not None:
                    raise ConnectionError(self._closed)
                if left <= 0:
                    raise TimeoutError(f"no {kind} within {timeout} s")
                self._changed.wait(left)

    def _send(self, frame):
        self._wire.send(json.dumps(frame))

    def _read(self):
        why = "the node closed the connection"
        try:
            while (text := self._wire.receive()) is not None:
                frame = json.loads(text)
                if "reply_to" in frame:
                    waiting = self._replies.get(frame["reply_to"])
                    if waiting is not None:
                        waiting.put(frame)
                elif frame["type"] == "ping":
                    self._send({"type": "pong", "reply_to": frame["id"], "payload": {}})
                else:
                    frame["payload"] = self._room_keys.opened(frame["payload"])
                    with self._changed:
                        self._events.append(frame)
                        self._changed.notify_all()
        except (OSError, ValueError) as error:
            why = f"the connection is lost: {error}"
        with self._changed:
            self._closed = why
            waiting = list(self._replies.values())
            self._changed.notify_all()
        for it in waiting:
            it.put(None)

    # Rooms.

    def create_room(self, name, description=None, **options):
        """`parent_id`, `ephemeral`, `public`, `encrypted`. The creator is not in the room yet."""
        return self.call("create_room", _given(name=name, description=description, **options))

    def join_room(self, room_id):
        return self.call("join_room", {"room_id": room_id})

    def leave_room(self, room_id):
        return self.call("leave_room", {"room_id": room_id})

    def list_rooms(self, parent_id=None):
        return self.call("list_rooms", _given(parent_id=parent_id))["rooms"]

    def room_info(self, room_id):
        return self.call("room_info", {"room_id": room_id})

    def list_agents(self, room_id=None):
        return self.call("list_agents", _given(room_id=room_id))["agents"]

    # Messages.

    def set_room_secret(self, room_id, secret):
        """From now on content of this room is encrypted with this secret. Its id, and not its name."""
        self._room_keys.set(room_id, secret)

    def send_message(self, room_id, content, **options):
        """`reply_to`, `mentions`, `metadata`. The message, with its `seq`."""
        content = self._room_keys.sealed(room_id, content)
        return self.call("send_message", _given(room_id=room_id, content=content, **options))

    def thinking(self, room_id, content):
        content = self._room_keys.sealed(room_id, content)
        return self.call("thinking", {"room_id": room_id, "content": content})

    def get_history(self, room_id, limit=50, **options):
        """`since_seq`, `since`, `before`. Oldest first."""
        return self.call("get_history", _given(room_id=room_id, limit=limit, **options))["messages"]

    def set_presence(self, status, detail=None, progress=None):
        return self.call("set_presence", _given(status=status, status_detail=detail, progress=progress))

    # Votes, elections, tasks.

    def create_vote(self, room_id, title, options, description=None, duration_secs=None):
        return self.call("create_vote", _given(room_id=room_id, title=title, options=options,
                                               description=description, duration_secs=duration_secs))

    def cast_vote(self, vote_id, option_index):
        return self.call("cast_vote", {"vote_id": vote_id, "option_index": option_index})

    def get_vote_status(self, vote_id):
        return self.call("get_vote_status", {"vote_id": vote_id})

    def elect_leader(self, room_id):
        return self.call("elect_leader", {"room_id": room_id})

    def decline_election(self, room_id):
        return self.call("decline_election", {"room_id": room_id})

    def send_decision(self, room_id, content, metadata=None):
        content = self._room_keys.sealed(room_id, content)
        return self.call("decision", _given(room_id=room_id, content=content, metadata=metadata))

    def assign_task(self, room_id, title, description=None, assignee=None):
        return self.call("assign_task", _given(room_id=room_id, title=title, description=description,
                                               assignee=assignee))

    def update_task(self, task_id, **fields):
        """`status`, `assignee`, `note`."""
        return self.call("update_task", _given(task_id=task_id, **fields))

    def claim_task(self, task_id):
        """Takes a task that nobody has; of two that try at once one gets ClawChatError."""
        claim = {"task_id": task_id, "assignee": self.agent_id, "if_assignee": None}
        return self.call("update_task", claim)

    def list_tasks(self, room_id, status=None):
        return self.call("list_tasks", _given(room_id=room_id, status=status))["tasks"]


def _given(**fields):
    return {name: value for name, value in fields.items() if value is not None}


class _RoomKeys:
    """The secrets of rooms, and content that they seal and open.

    Key: HKDF-SHA256 of the secret, with the room's id. Blob: `clw1:` and unpadded base64 of a nonce and
    the ChaCha20-Poly1305 ciphertext with its tag.
    """

    def __init__(self, secret):
        self._rooms = {}
        self._others = None if secret is None else _checked(secret)

    def set(self, room_id, secret):
        self._rooms[room_id] = _checked(secret)

    def _cipher(self, room_id):
        secret = self._rooms.get(room_id, self._others)
        if secret is None:
            return None
        # HKDF of one block, without a salt.
        key = hmac.digest(bytes(32), secret.encode(), "sha256")
        info = b"clawchat-e2e-v1:" + room_id.encode() + b"\x01"
        return _chacha20_poly1305()(hmac.digest(key, info, "sha256"))

    def sealed(self, room_id, content):
        cipher = self._cipher(room_id)
        if cipher is None:
            return content
        nonce = os.urandom(NONCE_BYTES)
        blob = nonce + cipher.encrypt(nonce, content.encode(), None)
        return SEALED + base64.b64encode(blob).decode().rstrip("=")

    def opened(self, value):
        """Opens each content in a payload, in its place. One that does not open stays as it came."""
        if isinstance(value, list):
            for item in value:
                self.opened(item)
        elif isinstance(value, dict):
            content, room_id = value.get("content"), value.get("room_id")
            if isinstance(content, str) and isinstance(room_id, str):
                value["content"] = self._open(room_id, content)
            for name in ("message", "messages"):
                self.opened(value.get(name))
        return value

    def _open(self, room_id, content):
        cipher = self._cipher(room_id) if content.startswith(SEALED) else None
        if cipher is None:
            return content
        digits = content[len(SEALED):]
        try:
            blob = base64.b64decode(digits + "=" * (-len(digits) % 4), validate=True)
            return cipher.decrypt(blob[:NONCE_BYTES], blob[NONCE_BYTES:], None).decode()
        # Wrong tag, no base64, too short, no text. The library's error for a tag is not a ValueError.
        except Exception:
            return content


def _checked(secret):
    _chacha20_poly1305()
    if not secret:
        raise ValueError("a room key is not empty; `clawmesh keygen` makes one")
    return secret


def _chacha20_poly1305():
    try:
        from cryptography.hazmat.primitives.ciphers.aead import ChaCha20Poly1305
    except ImportError:
        raise ImportError("room keys need a package: pip install cryptography") from None
    return ChaCha20Poly1305


def _connect(socket_path, tcp, url, timeout):
    if url is not None:
        return _WebSocket(url, timeout)
    if tcp is not None:
        host, _, port = tcp.rpartition(":")
        return _Lines(socket.create_connection((host.strip("[]"), int(port)), timeout))
    connection = socket.socket(socket.AF_UNIX)
    connection.settimeout(timeout)
    connection.connect(str(socket_path or HOME / "clawchat.sock"))
    return _Lines(connection)


class _Lines:
    """One JSON object on each line."""

    def __init__(self, connection):
        connection.settimeout(None)
        if connection.family != socket.AF_UNIX:
            connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._connection = connection
        self._file = connection.makefile("rb")
        self._writing = threading.Lock()

    def send(self, text):
        with self._writing:
            self._connection.sendall(text.encode() + b"\n")

    def receive(self):
        line = self._file.readline()
        return line.decode() if line.endswith(b"\n") else None

    def close(self):
        _shut(self._connection)


class _WebSocket:
    """One JSON object in each text message (RFC 6455)."""

    def __init__(self, url, timeout):
        parts = urllib.parse.urlsplit(url)
        if parts.scheme not in ("ws", "wss"):
            raise ValueError(f"{url} is not a URL like ws://HOST:PORT/ws")
        port = parts.port or {"ws": 80, "wss": 443}[parts.scheme]
        connection = socket.create_connection((parts.hostname, port), timeout)
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        if parts.scheme == "wss":
            context = ssl.create_default_context()
            connection = context.wrap_socket(connection, server_hostname=parts.hostname)
        self._connection = connection
        self._file = connection.makefile("rb")
        self._writing = threading.Lock()
        self._shake_hands(parts)
        connection.settimeout(None)

    def _shake_hands(self, parts):
        nonce = base64.b64encode(secrets.token_bytes(16)).decode()
        path = parts.path or "/"
        host = parts.netloc.rpartition("@")[2]
        self._connection.sendall(
            f"GET {path} HTTP/1.1\r\nHost: {host}\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
            f"Sec-WebSocket-Key: {nonce}\r\nSec-WebSocket-Version: 13\r\n\r\n".encode())
        status = self._file.readline().decode().strip()
        headers = {}
        while (line := self._file.readline().strip()):
            name, _, value = line.decode().partition(":")
            headers[name.lower()] = value.strip()
        magic = f"{nonce}258EAFA5-E914-47DA-95CA-C5AB0DC85B11".encode()
        expected = base64.b64encode(hashlib.sha1(magic).digest()).decode()
        if " 101 " not in f"{status} " or headers.get("sec-websocket-accept") != expected:
            raise ConnectionError(f"no WebSocket there: {status}")

    def send(self, text):
        self._frame(1, text.encode())

    def _frame(self, opcode, data):
        mask = os.urandom(4)
        size = len(data)
        if size < 126:
            head = struct.pack("!BB", 0x80 | opcode, 0x80 | size)
        elif size < 1 << 16:
            head = struct.pack("!BBH", 0x80 | opcode, 0x80 | 126, size)
        else:
            head = struct.pack("!BBQ", 0x80 | opcode, 0x80 | 127, size)
        key = (mask * (size // 4 + 1))[:size]
        masked = int.from_bytes(data, "big") ^ int.from_bytes(key, "big")
        with self._writing:
            self._connection.sendall(head + mask + masked.to_bytes(size, "big"))

    def receive(self):
        whole = b""
        while True:
            head = self._file.read(2)
            if len(head) < 2:
                return None
            opcode, size = head[0] & 15, head[1] & 127
            if size == 126:
                size = struct.unpack("!H", self._file.read(2))[0]
            elif size == 127:
                size = struct.unpack("!Q", self._file.read(8))[0]
            data = self._file.read(size)
            if opcode == 8:
                return None
            if opcode == 9:
                self._frame(10, data)
            elif opcode in (0, 1):
                whole += data
                if head[0] & 0x80:
                    return whole.decode()

    def close(self):
        _shut(self._connection)


def _shut(connection):
    # It may be closed already, by the other end.
    try:
        connection.shutdown(socket.SHUT_RDWR)
    except OSError:
        pass
    connection.close()
