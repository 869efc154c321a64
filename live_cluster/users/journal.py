"""The faults in force on a user's cluster, on disk before they are: whatever happens to harrow, it is known what to undo."""

import hashlib
import json
import os
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from types import TracebackType
from typing import Any, Final, Self, TextIO

from filelock import FileLock, Timeout
from platformdirs import user_state_path

from harrow.live_cluster.errors import LiveError
from harrow.live_cluster.users.command import CommandName, FilledCommand

STATE_VARIABLE: Final = "HARROW_STATE"
_SUFFIX: Final = ".journal"
_ONLY_MINE: Final = 0o600


class JournalError(LiveError):
    """Somebody else is at work on the cluster, or has left something in force there; the message says what."""


@dataclass(frozen=True, slots=True, kw_only=True)
class JournalledFault:
    """Something that was done, or is about to be, to a *broker*, or to what a *peer* sends to it.

    ``cure`` undoes it; ``start`` is for a broker that was paused and is found dead. The broker listens at ``address``; ``pid``
    is that of the command that does it, once it is known.
    """

    number: int
    deed: CommandName
    broker: int
    peer: int | None
    address: tuple[str, int]
    cure: FilledCommand
    pid: int | None = None
    start: FilledCommand | None = None

    def __str__(self) -> str:
        if self.peer is not None:
            return f"{self.deed} of what broker {self.peer} sends to broker {self.broker}"
        return f"{self.deed} of broker {self.broker}"


def state_folder() -> Path:
    """Return where journals are: below HARROW_STATE, or where the system keeps the state of programs."""
    given = os.environ.get(STATE_VARIABLE)
    return (Path(given) if given else user_state_path("harrow", appauthor=False)) / "faults"


def journals(folder: Path) -> Iterator[Path]:
    """Yield the journals in a folder, oldest first."""
    yield from sorted(folder.glob(f"*{_SUFFIX}"), key=lambda path: (path.stat().st_mtime_ns, path.name))


class Journal:
    """The journal of a cluster. While this is open no other process has it, also not on behalf of a process that was killed."""

    def __init__(self, path: Path, cluster_file: Path, folder: Path) -> None:
        """Open it, and read what is in force; *cluster_file* and the *folder* for commands are noted in one that is new.

        Raises:
            JournalError: another process has it, or it cannot be read.

        """
        self.path = path
        self.cluster_file = cluster_file
        self.folder = folder
        self._in_force: dict[int, JournalledFault] = {}
        self._topics: dict[str, None] = {}
        self._next = 1
        path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        with ExitStack() as opened:
            # A file of its own: the journal itself goes when nothing is in force.
            try:
                opened.enter_context(FileLock(path.with_suffix(".lock")).acquire(blocking=False))
            except Timeout:
                raise JournalError("another harrow is at work on this cluster") from None
            self._file: TextIO = opened.enter_context(open(path, "a+", opener=_opened))
            self._read()
            if not self._file.tell():
                self._write(cluster_file=str(cluster_file.absolute()), folder=str(folder.absolute()))
            self._open = opened.pop_all()

    @classmethod
    def of(cls, state: Path, cluster_id: str, cluster_file: Path) -> Self:
        """Return the journal of a cluster below the user's state.

        Raises:
            JournalError: another process has it.

        """
        name = hashlib.sha256(cluster_id.encode()).hexdigest()[:16]
        # Without `..`: the folder that the run began in may be gone when somebody heals.
        folder = cluster_file.parent.resolve()
        return cls(state / f"{name}{_SUFFIX}", folder / cluster_file.name, folder)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        """Close it, and delete one in which nothing is in force."""
        with self._open:
            if not self._in_force and not self._topics:
                self.path.unlink()

    def in_force(self) -> list[JournalledFault]:
        """Return what has been done and not been undone, newest first."""
        return [self._in_force[number] for number in sorted(self._in_force, reverse=True)]

    def topics(self) -> list[str]:
        """Return the topics that were created and not deleted."""
        return list(self._topics)

    def strikes(
        self,
        deed: CommandName,
        broker: int,
        address: tuple[str, int],
        cure: FilledCommand,
        peer: int | None = None,
        *,
        start: FilledCommand | None = None,
    ) -> JournalledFault:
        """Take note of what is about to be done; once this is back it is on disk."""
        fault = JournalledFault(
            number=self._next,
            deed=deed,
            broker=broker,
            peer=peer,
            address=address,
            cure=cure,
            start=start,
        )
        self._next += 1
        self._in_force[fault.number] = fault
        self._write(in_force=asdict(fault))
        return fault

    def is_done_by(self, fault: JournalledFault, pid: int) -> None:
        """Take note of the process that does it: as long as that is there, it may still be done."""
        self._in_force[fault.number] = replace(self._in_force[fault.number], pid=pid)
        self._write(number=fault.number, pid=pid)

    def is_over(self, fault: JournalledFault) -> None:
        """Strike out what was undone."""
        del self._in_force[fault.number]
        self._write(over=fault.number)

    def creates(self, topic: str) -> None:
        """Take note of a topic that is about to be created."""
        self._topics[topic] = None
        self._write(topic=topic)

    def has_deleted(self, topic: str) -> None:
        """Strike out a topic."""
        del self._topics[topic]
        self._write(deleted=topic)

    def _write(self, **entry: Any) -> None:
        self._file.write(json.dumps(entry) + "\n")
        self._file.flush()
        os.fsync(self._file.fileno())

    def _read(self) -> None:
        self._file.seek(0)
        number = 0
        try:
            whole, _, torn = self._file.read().rpartition("\n")
            for line in whole.splitlines():
                number += 1
                self._take(json.loads(line))
        except (KeyError, TypeError, ValueError):
            raise JournalError(
                f"{self.path}:{number}: this is not what harrow writes; look at the lines before for what is in force, undo "
                "that, and delete the file"
            ) from None
        if torn:
            # harrow was killed while it wrote; nothing had been done by then. What is written next begins a line.
            self._file.truncate(len(whole) + 1 if whole else 0)
            self._file.seek(0, os.SEEK_END)

    def _take(self, entry: Any) -> None:
        match entry:
            case {"cluster_file": file, "folder": folder}:
                self.cluster_file, self.folder = Path(file), Path(folder)
            case {"in_force": fault}:
                host, port = fault["address"]
                known = {
                    **fault,
                    "deed": CommandName(fault["deed"]),
                    "address": (host, port),
                    "cure": _command(fault["cure"]),
                    # A journal of an older harrow has none.
                    "start": _command(fault["start"]) if fault.get("start") else None,
                }
                self._in_force[fault["number"]] = JournalledFault(**known)
                self._next = fault["number"] + 1
            case {"number": number, "pid": pid}:
                self._in_force[number] = replace(self._in_force[number], pid=pid)
            case {"over": number}:
                del self._in_force[number]
            case {"topic": topic}:
                self._topics[topic] = None
            case {"deleted": topic}:
                del self._topics[topic]
            case _:
                raise ValueError(entry)


def _command(entry: Any) -> FilledCommand:
    return FilledCommand(tuple(entry["argv"]), entry["limit_s"])


def _opened(path: str, flags: int) -> int:
    return os.open(path, flags, _ONLY_MINE)
