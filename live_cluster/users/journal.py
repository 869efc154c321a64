"""Records the faults in force on the user's cluster, on disk, before they strike.

So harrow knows which faults to undo, even after it was killed.
"""

import hashlib
import json
import os
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import asdict
from pathlib import Path
from typing import Any, Final, Self, TextIO

from filelock import FileLock, Timeout
from platformdirs import user_state_path

from harrow.cluster_model.lazy_dataclass import dataclass, replace
from harrow.live_cluster.errors import LiveError
from harrow.live_cluster.users.command import CommandName, FilledCommand

STATE_VARIABLE: Final = "HARROW_STATE"
_SUFFIX: Final = ".journal"
_OWNER_ONLY: Final = 0o600


class JournalError(LiveError):
    """The journal is damaged, in use, or has faults of an earlier run; the message says which."""


@dataclass(frozen=True, slots=True, kw_only=True)
class JournalledFault:
    """A fault of a broker, or of its link from a *peer*, that has struck or is about to strike.

    ``cure`` is the command that undoes it; ``start`` starts a paused broker that has died. The
    broker listens at ``address``. ``pid`` is the process of the command, once it is known.
    """

    number: int
    command: CommandName
    broker: int
    peer: int | None
    address: tuple[str, int]
    cure: FilledCommand
    pid: int | None = None
    start: FilledCommand | None = None

    def __str__(self) -> str:
        if self.peer is not None:
            return f"{self.command} of the link from broker {self.peer} to broker {self.broker}"
        return f"{self.command} of broker {self.broker}"


def state_folder() -> Path:
    """Return the folder of journals, in HARROW_STATE or the system's folder for program state."""
    folder = os.environ.get(STATE_VARIABLE)
    return (Path(folder) if folder else user_state_path("harrow", appauthor=False)) / "faults"


def journals(folder: Path) -> Iterator[Path]:
    """Yield the journals in a folder, oldest first."""
    yield from sorted(folder.glob(f"*{_SUFFIX}"), key=lambda path: (path.stat().st_mtime_ns, path.name))


class Journal:
    """The journal of a cluster, which only one process can have open."""

    def __init__(self, path: Path, cluster_file: Path, folder: Path) -> None:
        """Open the journal; write the *cluster_file* and the *folder* of commands into a new one.

        Raise `JournalError` if another process has it open, or if it is damaged.
        """
        self.path = path
        self.cluster_file = cluster_file
        self.folder = folder
        self._in_force: dict[int, JournalledFault] = {}
        self._topics: dict[str, None] = {}
        self._next_number = 1
        path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        with ExitStack() as opened:
            # The lock is another file, because the journal is deleted when no fault is in force.
            try:
                opened.enter_context(FileLock(path.with_suffix(".lock")).acquire(blocking=False))
            except Timeout:
                raise JournalError("another harrow process uses this cluster") from None
            self._file: TextIO = opened.enter_context(open(path, "a+", opener=_open_private))
            self._read()
            if not self._file.tell():
                self._write(cluster_file=str(cluster_file.absolute()), folder=str(folder.absolute()))
            self._open = opened.pop_all()

    @classmethod
    def of(cls, state: Path, cluster_id: str, cluster_file: Path) -> Self:
        """Open the journal of a cluster below the state folder."""
        name = hashlib.sha256(cluster_id.encode()).hexdigest()[:16]
        # Store an absolute path: the working directory of the run may be gone when harrow heals.
        folder = cluster_file.parent.resolve()
        return cls(state / f"{name}{_SUFFIX}", folder / cluster_file.name, folder)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        """Close the journal, and delete it if nothing is in force."""
        with self._open:
            if not self._in_force and not self._topics:
                self.path.unlink()

    def in_force(self) -> list[JournalledFault]:
        """Return the faults that have not been undone, newest first."""
        return [self._in_force[number] for number in sorted(self._in_force, reverse=True)]

    def topics(self) -> list[str]:
        """Return the topics that have not been deleted."""
        return list(self._topics)

    def record_fault(
        self,
        command: CommandName,
        broker: int,
        address: tuple[str, int],
        cure: FilledCommand,
        peer: int | None = None,
        *,
        start: FilledCommand | None = None,
    ) -> JournalledFault:
        """Record a fault on disk before it strikes."""
        fault = JournalledFault(
            number=self._next_number,
            command=command,
            broker=broker,
            peer=peer,
            address=address,
            cure=cure,
            start=start,
        )
        self._next_number += 1
        self._in_force[fault.number] = fault
        entry = asdict(fault)
        self._write(in_force={"deed": entry.pop("command"), **entry})
        return fault

    def record_pid(self, fault: JournalledFault, pid: int) -> None:
        """Record the process of a command. While the process runs, the fault may still strike."""
        self._in_force[fault.number] = replace(self._in_force[fault.number], pid=pid)
        self._write(number=fault.number, pid=pid)

    def record_end(self, fault: JournalledFault) -> None:
        """Record that a fault was undone."""
        del self._in_force[fault.number]
        self._write(over=fault.number)

    def record_topic(self, topic: str) -> None:
        """Record a topic that is about to be created."""
        self._topics[topic] = None
        self._write(topic=topic)

    def record_deletion(self, topic: str) -> None:
        """Record that a topic was deleted."""
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
            complete, _, incomplete = self._file.read().rpartition("\n")
            for line in complete.splitlines():
                number += 1
                self._apply(json.loads(line))
        except (KeyError, TypeError, ValueError):
            raise JournalError(
                f"{self.path}:{number}: the journal is damaged here; the lines above show the faults in force: undo them, "
                "and delete the file"
            ) from None
        if incomplete:
            # harrow was killed while it wrote, before the fault struck. The next entry begins a
            # line.
            self._file.truncate(len(complete) + 1 if complete else 0)
            self._file.seek(0, os.SEEK_END)

    def _apply(self, entry: Any) -> None:
        match entry:
            case {"cluster_file": file, "folder": folder}:
                self.cluster_file, self.folder = Path(file), Path(folder)
            case {"in_force": fault}:
                host, port = fault["address"]
                fields = {
                    **{key: value for key, value in fault.items() if key != "deed"},
                    "command": CommandName(fault["deed"]),
                    "address": (host, port),
                    "cure": _command(fault["cure"]),
                    # Journals of older versions of harrow lack ``start``.
                    "start": _command(fault["start"]) if fault.get("start") else None,
                }
                self._in_force[fault["number"]] = JournalledFault(**fields)
                self._next_number = fault["number"] + 1
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


def _open_private(path: str, flags: int) -> int:
    return os.open(path, flags, _OWNER_ONLY)
