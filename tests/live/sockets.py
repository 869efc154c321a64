"""The connections between processes of this machine, from Linux's ``/proc``."""

import os
from collections.abc import Collection, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Final, NamedTuple

_PROC: Final = Path("/proc")
_ESTABLISHED: Final = "01"
_SOCKET: Final = "socket:["


class Connection(NamedTuple):
    """A connection with the processes and ports of both ends."""

    one: int
    one_port: int
    other: int
    other_port: int


def descendants(ancestor: int) -> set[int]:
    """Return the direct and indirect children of a process."""
    parents = dict(_parents())
    return {pid for pid in parents if ancestor in _ancestors(pid, parents)}


def connections_among(processes: Collection[int]) -> set[Connection]:
    """Return the connections with both ends in a set of processes."""
    owners = {inode: pid for pid in processes for inode in _sockets_of(pid)}
    ends = {ports: owners[inode] for inode, ports in _established() if inode in owners}
    return {
        Connection(pid, own, ends[peer, own], peer)
        for (own, peer), pid in ends.items()
        if (peer, own) in ends and own < peer
    }


def count_connections(processes: Collection[int]) -> int:
    """Return the number of connections of processes, to any peer."""
    owned = {inode for pid in processes for inode in _sockets_of(pid)}
    return sum(inode in owned for inode, _ in _established())


def command_of(pid: int) -> str:
    """Return the last arguments of a process, and nothing after its end."""
    with suppress(OSError):
        return " ".join((_PROC / str(pid) / "cmdline").read_text().split("\0")[-3:]).strip()
    return ""


def _parents() -> Iterator[tuple[int, int]]:
    for folder in _PROC.glob("[0-9]*"):
        with suppress(OSError):
            yield int(folder.name), int((folder / "stat").read_text().rpartition(")")[2].split()[1])


def _ancestors(pid: int, parents: dict[int, int]) -> Iterator[int]:
    while pid in parents:
        pid = parents[pid]
        yield pid


def _sockets_of(pid: int) -> Iterator[int]:
    with suppress(OSError):
        for entry in os.scandir(_PROC / str(pid) / "fd"):
            with suppress(OSError):
                target = os.readlink(entry.path)  # noqa: PTH115 - of many thousands
                if target.startswith(_SOCKET):
                    yield int(target.removeprefix(_SOCKET)[:-1])


def _established() -> Iterator[tuple[int, tuple[int, int]]]:
    """Yield the inode, the port and the peer's port of each connection's end on this machine."""
    # Java opens IPv6 sockets for IPv4 addresses.
    for name in ("tcp", "tcp6"):
        for line in (_PROC / "net" / name).read_text().splitlines()[1:]:
            (
                _,
                own,
                peer,
                state,
                *_,
            ) = fields = line.split()
            if state == _ESTABLISHED:
                yield int(fields[9]), (_port(own), _port(peer))


def _port(address: str) -> int:
    return int(address.rpartition(":")[2], 16)
