"""Keeps what a program writes for as long as a view is drawn on the terminal."""

import os
from tempfile import TemporaryFile
from typing import Final, TextIO

_PART_BYTES: Final = 1 << 16


class HeldOutput:
    """Takes the place of a terminal, on which it writes everything when `release` is called."""

    def __init__(self, terminal: TextIO) -> None:
        self.file = TemporaryFile()  # noqa: SIM115 - `close` closes it
        self._terminal = terminal
        self._released = 0

    def release(self) -> None:
        """Write what has been held since the last call."""
        self._terminal.flush()
        # The program shares the position of the file, so this must not move it.
        while part := os.pread(self.file.fileno(), _PART_BYTES, self._released):
            self._released += os.write(self._terminal.fileno(), part)

    def close(self) -> None:
        self.release()
        self.file.close()
