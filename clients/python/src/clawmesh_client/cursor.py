"""Cursor files: one number, the highest that was received. ``clawmesh wait --cursor-file`` reads and writes the same."""

from __future__ import annotations

import contextlib
import os
import pathlib

from .errors import CursorError


class CursorFile:
    """A file with one number in it."""

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = pathlib.Path(path)

    def read(self) -> int | None:
        """The number, or ``None`` if there is no file yet."""
        try:
            text = self.path.read_text(encoding="utf-8").strip()
        except FileNotFoundError:
            return None
        if not (text.isascii() and text.isdigit()):
            raise CursorError(f"{self.path} is no cursor file: delete it to begin anew")
        return int(text)

    def write(self, seq: int) -> None:
        """Replaces the number, as a whole: after a crash the file holds the old one or the new one."""
        # In the same directory, for a rename does not cross file systems.
        temporary = self.path.with_name(f".{self.path.name}.{os.getpid()}.tmp")
        try:
            with open(temporary, "w", encoding="ascii") as file:
                file.write(f"{seq}\n")
                file.flush()
                os.fsync(file.fileno())
            os.replace(temporary, self.path)
        except OSError:
            with contextlib.suppress(OSError):
                temporary.unlink()
            raise
