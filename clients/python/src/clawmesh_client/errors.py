"""Errors. All of them are :class:`ClawmeshError`."""

from __future__ import annotations


class ClawmeshError(Exception):
    """Any failure of this package."""


class Refused(ClawmeshError):
    """The node said no: ``code`` is one of the protocol's, ``message`` is for people."""

    def __init__(self, code: str, message: str, reason: str | None = None) -> None:
        super().__init__(f"{message} ({code})")
        self.code = code
        self.message = message
        #: ``mesh.reason``: ``unknown`` leaves open whether the command was done.
        self.reason = reason


class ConnectionLost(ClawmeshError):
    """The connection was lost before the answer came. It is not known whether the node acted."""


class CallTimeout(ClawmeshError):
    """No answer in time. It is not known whether the node acted."""


class Closed(ClawmeshError):
    """The agent is closed, or has given up connecting."""


class RoomLost(ClawmeshError):
    """After a reconnect the node did not let the agent back into the room."""


class CursorError(ClawmeshError):
    """A cursor file holds something else than a number."""


class SealError(ClawmeshError):
    """A content cannot be encrypted or decrypted."""
