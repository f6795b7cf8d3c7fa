"""End-to-end encryption: clients encrypt, and no node has the secret.

Key: HKDF-SHA256 of the shared secret, without a salt, info ``clawchat-e2e-v1:`` and the room's id. Blob:
``clw1:`` and unpadded base64 of a nonce and the ChaCha20-Poly1305 ciphertext with its tag.
"""

from __future__ import annotations

import base64
import binascii
import hmac
import os
from typing import Any

from .errors import SealError

#: The beginning of encrypted content.
MARK = "clw1:"
NONCE_BYTES = 12
TAG_BYTES = 16


def _cipher(key: bytes) -> Any:
    try:
        from cryptography.hazmat.primitives.ciphers.aead import ChaCha20Poly1305
    except ImportError:
        raise ImportError("room keys need a package: pip install 'clawmesh-client[encryption]'") from None
    return ChaCha20Poly1305(key)


class RoomKey:
    """The key of one room, made of the secret that its agents share."""

    def __init__(self, secret: str, room_id: str) -> None:
        # HKDF of one block, without a salt.
        key = hmac.digest(bytes(32), secret.encode(), "sha256")
        info = b"clawchat-e2e-v1:" + room_id.encode() + b"\x01"
        self._cipher = _cipher(hmac.digest(key, info, "sha256"))

    def __repr__(self) -> str:
        return "RoomKey(hidden)"

    def seal(self, text: str, nonce: bytes | None = None) -> str:
        """The blob of a text. The nonce is drawn; one of your own is for tests."""
        nonce = os.urandom(NONCE_BYTES) if nonce is None else nonce
        blob: bytes = nonce + self._cipher.encrypt(nonce, text.encode(), None)
        return MARK + base64.b64encode(blob).decode().rstrip("=")

    def open(self, content: str) -> str:
        """The text of a blob, or :class:`SealError`."""
        if not content.startswith(MARK):
            raise SealError("it is not encrypted")
        digits = content[len(MARK) :]
        try:
            blob = base64.b64decode(digits + "=" * (-len(digits) % 4), validate=True)
        except (binascii.Error, ValueError):
            raise SealError("it is no base64") from None
        # One form alone: no padding, and no other digits for the same bytes.
        if base64.b64encode(blob).decode().rstrip("=") != digits:
            raise SealError("it is no base64 in its one form")
        if len(blob) < NONCE_BYTES + TAG_BYTES:
            raise SealError("it is too short")
        try:
            text: bytes = self._cipher.decrypt(blob[:NONCE_BYTES], blob[NONCE_BYTES:], None)
        # The library's error for a wrong tag is of its own.
        except Exception:
            raise SealError("it does not open with this secret") from None
        try:
            return text.decode()
        except UnicodeDecodeError:
            raise SealError("it is no text") from None


class Secrets:
    """Which rooms are encrypted, and with which secret.

    Where a secret applies every content that is sent is encrypted, whatever the node says of the room. A blob
    that does not open stays as it came, so that one bad message hides no other.
    """

    def __init__(self, for_all: str | None = None) -> None:
        self._rooms: dict[str, str] = {}
        self._others = None if for_all is None else _checked(for_all)

    def __repr__(self) -> str:
        return "Secrets(hidden)"

    def set_room(self, room_id: str, secret: str) -> None:
        """From now on this is the room's. Its id, and not its name."""
        self._rooms[room_id] = _checked(secret)

    def applies(self, room_id: str) -> bool:
        """Whether content of this room is encrypted."""
        return self._others is not None or room_id in self._rooms

    def key(self, room_id: str) -> RoomKey | None:
        """The key of a room, if a secret applies to it."""
        secret = self._rooms.get(room_id, self._others)
        return None if secret is None else RoomKey(secret, room_id)

    def sealed(self, room_id: str, content: str) -> str:
        """A content as it is sent."""
        key = self.key(room_id)
        return content if key is None else key.seal(content)

    def opened(self, value: Any) -> None:
        """Opens each content in a payload, in its place."""
        if isinstance(value, list):
            for item in value:
                self.opened(item)
        elif isinstance(value, dict):
            content, room_id = value.get("content"), value.get("room_id")
            if isinstance(content, str) and isinstance(room_id, str) and content.startswith(MARK):
                key = self.key(room_id)
                if key is not None:
                    try:
                        value["content"] = key.open(content)
                    except SealError:
                        pass
            for name in ("message", "messages"):
                self.opened(value.get(name))


def _checked(secret: str) -> str:
    if not secret:
        raise ValueError("a room key is not empty; `clawmesh keygen` makes one")
    # Without the package nothing may leave unencrypted: better an error now.
    _cipher(bytes(32))
    return secret
