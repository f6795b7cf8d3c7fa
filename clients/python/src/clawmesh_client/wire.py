"""Frames over a Unix socket, TCP or a WebSocket, for asyncio."""

from __future__ import annotations

import asyncio
import base64
import hashlib
import os
import pathlib
import ssl
import struct
import urllib.parse
from typing import Protocol

from .policy import FRAME_READ_BYTES_MAX

#: Where `clawmeshd up` listens for the agents of this user, and their key.
HOME = pathlib.Path.home() / ".clawchat"
DEFAULT_ADDRESS = str(HOME / "clawchat.sock")

#: Longest head of an answer to a WebSocket's request.
_HEAD_LINES_MAX = 100


def read_api_key(path: str | os.PathLike[str] | None = None) -> str:
    """The key that ``clawmeshd up`` made for the agents of this machine."""
    return pathlib.Path(path or HOME / "auth.key").read_text(encoding="utf-8").strip()


class Wire(Protocol):
    """One frame after the other, both ways."""

    def write(self, text: str) -> None:
        """Queues a frame."""

    async def drain(self) -> None:
        """Waits until what is queued is not too much."""

    async def receive(self) -> str | None:
        """The next frame, or ``None`` at the end."""

    def close(self) -> None:
        """Ends it when what is queued is sent."""

    def abort(self) -> None:
        """Ends it at once."""


async def connect(address: str, tls: ssl.SSLContext | None = None) -> Wire:
    """``HOST:PORT``, ``ws://…``, ``wss://…`` (or ``http(s)://…`` of the same node), or the path of a socket."""
    if "://" in address:
        return await _WebSocket.connect(address, tls)
    limit = FRAME_READ_BYTES_MAX
    if "/" in address:
        return _Lines(*await asyncio.open_unix_connection(address, limit=limit))
    host, port = split_endpoint(address)
    return _Lines(*await asyncio.open_connection(host, port, limit=limit))


def split_endpoint(address: str) -> tuple[str, int]:
    """``HOST:PORT`` in parts, an IPv6 host without its brackets."""
    host, colon, port = address.rpartition(":")
    if not colon or not host or not port.isdigit() or not 0 < int(port) < 65_536:
        raise ValueError(f"{address!r} is not HOST:PORT, a URL like ws://HOST:PORT/ws, or the path of a socket")
    return host.strip("[]"), int(port)


def split_url(url: str) -> tuple[bool, str, int, str, str]:
    """A WebSocket's URL: whether TLS is spoken, host and port to connect to, the ``host`` header, the path."""
    parts = urllib.parse.urlsplit(url)
    schemes = {"ws": False, "http": False, "wss": True, "https": True}
    if parts.scheme not in schemes or not parts.hostname:
        raise ValueError(f"{url!r} is not a URL like ws://HOST:PORT/ws or wss://HOST/ws")
    tls = schemes[parts.scheme]
    port = parts.port or (443 if tls else 80)
    path = parts.path + (f"?{parts.query}" if parts.query else "")
    # Nodes, and ClawChat's server, have it there and nowhere else.
    path = "/ws" if path in ("", "/") else path
    return tls, parts.hostname, port, parts.netloc.rpartition("@")[2], path


class _Stream:
    """What both forms have in common."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader = reader
        self._writer = writer

    async def drain(self) -> None:
        await self._writer.drain()

    def close(self) -> None:
        self._writer.close()

    def abort(self) -> None:
        self._writer.transport.abort()


class _Lines(_Stream):
    """One JSON object on each line."""

    def write(self, text: str) -> None:
        self._writer.write(text.encode() + b"\n")

    async def receive(self) -> str | None:
        line = await self._reader.readline()
        return line.decode() if line.endswith(b"\n") else None


class _WebSocket(_Stream):
    """One JSON object in each text message (RFC 6455)."""

    @classmethod
    async def connect(cls, url: str, tls: ssl.SSLContext | None) -> _WebSocket:
        secure, host, port, shown, path = split_url(url)
        context = (tls or ssl.create_default_context()) if secure else None
        limit = FRAME_READ_BYTES_MAX
        reader, writer = await asyncio.open_connection(host, port, ssl=context, limit=limit)
        socket = cls(reader, writer)
        try:
            await socket._shake_hands(shown, path)
        except BaseException:
            writer.close()
            raise
        return socket

    async def _shake_hands(self, host: str, path: str) -> None:
        nonce = base64.b64encode(os.urandom(16)).decode()
        self._writer.write(
            f"GET {path} HTTP/1.1\r\nHost: {host}\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
            f"Sec-WebSocket-Key: {nonce}\r\nSec-WebSocket-Version: 13\r\n\r\n".encode()
        )
        status = (await self._reader.readline()).decode("latin-1").strip()
        headers: dict[str, str] = {}
        for _ in range(_HEAD_LINES_MAX):
            line = (await self._reader.readline()).decode("latin-1").strip()
            if not line:
                break
            name, _, value = line.partition(":")
            headers[name.lower()] = value.strip()
        magic = f"{nonce}258EAFA5-E914-47DA-95CA-C5AB0DC85B11".encode()
        expected = base64.b64encode(hashlib.sha1(magic).digest()).decode()
        if " 101 " not in f"{status} " or headers.get("sec-websocket-accept") != expected:
            raise ConnectionError(f"no WebSocket there: {status}")

    def write(self, text: str) -> None:
        self._frame(1, text.encode())

    def _frame(self, opcode: int, data: bytes) -> None:
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
        self._writer.write(head + mask + masked.to_bytes(size, "big"))

    async def receive(self) -> str | None:
        whole = b""
        while True:
            try:
                head = await self._reader.readexactly(2)
                opcode, size = head[0] & 15, head[1] & 127
                if size == 126:
                    size = struct.unpack("!H", await self._reader.readexactly(2))[0]
                elif size == 127:
                    size = struct.unpack("!Q", await self._reader.readexactly(8))[0]
                if len(whole) + size > FRAME_READ_BYTES_MAX:
                    raise ConnectionError("the node sent a frame that is too long")
                data = await self._reader.readexactly(size)
            except asyncio.IncompleteReadError:
                return None
            if opcode == 8:
                return None
            if opcode == 9:
                self._frame(10, data)
            elif opcode in (0, 1):
                whole += data
                if head[0] & 0x80:
                    return whole.decode()
