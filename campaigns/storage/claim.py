"""Keeps a folder to one process: with a lock on this machine, and with claims in shared storage.

Object stores have no locks. Each process writes a claim, and then lists all claims. Of two
processes that begin at once, at least one sees the claim of the other: object stores show a file as
soon as it is written. A live process renews a second file beside its claim, the pulse. A claim is
void if its process ran on this machine and has ended, or if its pulse stands still for a while.
Then the next process deletes it.

A process checks that its claim is still there before it replaces or deletes files. A frozen
process may thaw between that check and the change that follows. `SweepFolder.end` therefore also
checks that no file has vanished.
"""

import json
import os
import socket
import threading
import time
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import field
from typing import Final

from filelock import FileLock, Timeout

from harrow.campaigns.storage.location import LocalLocation, Location
from harrow.cluster_model.lazy_dataclass import dataclass

LOCK: Final = ".lock"
CLAIMS: Final = ".claims"

_PULSE: Final = ".pulse"
_BEAT_S: Final = 5.0
_LOST_AFTER_S: Final = 6 * _BEAT_S
_LOOK_S: Final = 0.5
"""How long a waiting process waits before it looks at the pulse of another again."""


class ClaimError(Exception):
    """Another process uses the folder."""


@dataclass(slots=True)
class Claim:
    """The claim of this process to a folder, from `exclusively`."""

    folder: Location
    name: str = field(default_factory=lambda: uuid.uuid4().hex)
    _ended: threading.Event = field(default_factory=threading.Event)
    _pulse: threading.Thread | None = None
    _lost: bool = False

    def is_lost(self) -> bool:
        """Return whether this process has noticed that another one took the folder."""
        return self._lost

    def check(self) -> None:
        """Check that the folder still belongs to this process.

        Raises:
            ClaimError: Another process took it.
            OSError: The storage does not respond.

        """
        self._lost = self._lost or not self._file.exists()
        if self._lost:
            raise ClaimError("another harrow took over, because this one had been silent for too long")

    def acquire(self, on_wait: Callable[[str], None]) -> None:
        self._beat(0)
        self._file.write_text(json.dumps({"machine": _machine(), "pid": os.getpid()}))
        self._pulse = threading.Thread(target=self._beat_on, daemon=True)
        self._pulse.start()
        for other in sorted(self._others()):
            self._outlive(other, on_wait)

    def release(self) -> None:
        self._ended.set()
        if self._pulse is not None:
            self._pulse.join()
        with suppress(OSError):
            self._remove(self.name)

    @property
    def _file(self) -> Location:
        return self.folder / CLAIMS / self.name

    def _others(self) -> set[str]:
        names = (self.folder / CLAIMS).names()
        return {name for name in names if not name.startswith(".") and not name.endswith(_PULSE)} - {
            self.name
        }

    def _remove(self, name: str) -> None:
        """Remove a claim, and then its pulse. A claim without a pulse stands still."""
        (self.folder / CLAIMS / name).delete()
        (self.folder / CLAIMS / f"{name}{_PULSE}").delete()

    def _beat(self, number: int) -> None:
        (self.folder / CLAIMS / f"{self.name}{_PULSE}").write_text(str(number))

    def _beat_on(self) -> None:
        number = 0
        while not self._ended.wait(_BEAT_S):
            number += 1
            # The storage may be away for a while. Others see no pulse then either.
            with suppress(OSError, ClaimError):
                self.check()
                self._beat(number)

    def _outlive(self, other: str, on_wait: Callable[[str], None]) -> None:
        """Return once another claim is void.

        Raises:
            ClaimError: The other process lives.

        """
        claim, pulse = (self.folder / CLAIMS / f"{other}{ending}" for ending in ("", _PULSE))
        owner = _read(claim)
        if not _has_ended_here(owner):
            on_wait(f"checking whether {_in_words(owner)} still uses {self.folder}")
            first, begun_s = _read(pulse), time.monotonic()
            while time.monotonic() - begun_s < _LOST_AFTER_S and claim.exists():
                if _read(pulse) != first:
                    raise ClaimError(f"{_in_words(owner)} uses this folder now")
                time.sleep(_LOOK_S)
        self._remove(other)


@contextmanager
def exclusively(folder: Location, on_wait: Callable[[str], None] = lambda _: None) -> Iterator[Claim | None]:
    """Keep a folder to this process. *on_wait* gets a message if that takes a while.

    Raises:
        ClaimError: Another process has the folder.
        OSError: The folder cannot be read and written.

    """
    if isinstance(folder, LocalLocation):
        folder.path.mkdir(parents=True, exist_ok=True)
        try:
            lock = FileLock(folder.path / LOCK).acquire(blocking=False)
        except Timeout:
            raise ClaimError("another harrow uses this folder now") from None
        with lock:
            yield None
        return
    claim = Claim(folder)
    try:
        claim.acquire(on_wait)
        yield claim
    finally:
        claim.release()


def _machine() -> str:
    """Return what tells this machine, or container, from others that may have the same name."""
    try:
        namespace = os.readlink("/proc/self/ns/pid")  # noqa: PTH115 - it does not lead to a file
    except OSError:
        namespace = ""
    return f"{socket.gethostname()} {namespace}".strip()


def _read(place: Location) -> str:
    try:
        return place.read_text()
    except (FileNotFoundError, UnicodeDecodeError):
        return ""


def _owner(text: str) -> tuple[str, int]:
    """Return the machine and the process of a claim. Both are empty if the claim is damaged."""
    try:
        claim = json.loads(text)
        return str(claim["machine"]), int(claim["pid"])
    except (ValueError, KeyError, TypeError):
        return "", 0


def _in_words(text: str) -> str:
    machine, pid = _owner(text)
    return f"process {pid} on {machine.partition(' ')[0]}" if machine else "another harrow"


def _has_ended_here(text: str) -> bool:
    machine, pid = _owner(text)
    if machine != _machine() or os.name == "nt":
        return False
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return True
    except OSError:
        return False
    return False
