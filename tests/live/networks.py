"""The addresses of brokers started by hand, and the commands that cut links between them.

With network namespaces (Linux, as root) each broker is a host of its own on a bridge. A cut is a
route of the sender that drops packets to the receiver. Elsewhere all brokers listen on the
loopback, where the system cannot distinguish them, and a cut is only recorded.
"""

import os
import secrets
import subprocess
from contextlib import suppress
from pathlib import Path
from typing import Final, Protocol

from harrow.live_cluster.processes.ports import LOOPBACK

_NETWORK: Final = "10.213"
_SUBNETS: Final = 256
_FIRST_HOST: Final = 10


class Network(Protocol):
    """Hosts by name, with the commands of a target file that cut one host off from another."""

    really_cuts: bool

    def host(self, name: str) -> str:
        """Return the address of a host, which the first call creates."""

    def runs_on(self, name: str) -> str:
        """Return the prefix of a command line that lets the command run on a host."""

    def commands(self) -> str:
        """Return the lines ``cut`` and ``restore`` of a target file."""

    def cuts(self) -> list[str]:
        """Return the cuts in force, as ``cut-SENDER-RECEIVER``."""

    def end(self) -> None:
        """Remove all hosts and cuts."""


class Loopback:
    """One host with one address; cuts are files in a *folder*."""

    really_cuts = False

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def host(self, name: str) -> str:
        return LOOPBACK

    def runs_on(self, name: str) -> str:
        return ""

    def commands(self) -> str:
        cut = '  cut: [touch, "cut-{peer}-{broker}"]\n'
        return f'{cut}  restore: [rm, -f, "cut-{{peer}}-{{broker}}"]\n'

    def cuts(self) -> list[str]:
        return sorted(path.name for path in self._folder.glob("cut-*"))

    def end(self) -> None:
        """Do nothing: the files are removed with their folder."""


class Namespaces:
    """A network namespace for each host, on one bridge with the machine itself as another host."""

    really_cuts = True

    def __init__(self) -> None:
        # The name of an interface has at most 15 characters.
        self._name = f"hw{secrets.token_hex(3)}"
        self._hosts: dict[str, str] = {}
        self._subnet = _free_subnet()
        _ip("link", "add", self._name, "type", "bridge")
        try:
            _ip("address", "add", f"{self._subnet}.1/24", "dev", self._name)
            _ip("link", "set", self._name, "up")
        except BaseException:
            self.end()
            raise

    def host(self, name: str) -> str:
        if name not in self._hosts:
            number = _FIRST_HOST + len(self._hosts)
            self._hosts[name] = f"{self._subnet}.{number}"
            space, outer = self._space(name), self._outer(self._hosts[name])
            _ip("netns", "add", space)
            _ip("link", "add", outer, "type", "veth", "peer", "name", "eth0", "netns", space)
            _ip("link", "set", outer, "master", self._name, "up")
            _ip("-n", space, "address", "add", f"{self._hosts[name]}/24", "dev", "eth0")
            _ip("-n", space, "link", "set", "eth0", "up")
            _ip("-n", space, "link", "set", "lo", "up")
        return self._hosts[name]

    def runs_on(self, name: str) -> str:
        return f"ip netns exec {self._space(name)} "

    def commands(self) -> str:
        routes = f"ip -n {self._name}-broker-{{peer}} route"
        return (
            f'  cut: {routes} replace blackhole "{{host}}"\n'
            f'  restore: while {routes} del blackhole "{{host}}" 2>/dev/null; do :; done\n'
        )

    def cuts(self) -> list[str]:
        names = {address: name for name, address in self._hosts.items()}
        return sorted(
            f"cut-{sender.removeprefix('broker-')}-{names[line.split()[1]].removeprefix('broker-')}"
            for sender in self._hosts
            for line in _ip("-n", self._space(sender), "route", "show", "type", "blackhole").splitlines()
        )

    def end(self) -> None:
        """Remove all hosts and cuts.

        Each link is removed too, because a namespace lasts until its processes end.
        """
        for name, address in self._hosts.items():
            with suppress(subprocess.CalledProcessError):
                _ip("link", "del", self._outer(address))
            with suppress(subprocess.CalledProcessError):
                _ip("netns", "del", self._space(name))
        with suppress(subprocess.CalledProcessError):
            _ip("link", "del", self._name)

    def _outer(self, address: str) -> str:
        """Return the name of a link's end on the bridge; its removal removes the other end."""
        return f"{self._name}-{address.rpartition('.')[2]}"

    def _space(self, name: str) -> str:
        return f"{self._name}-{name}"


def _free_subnet() -> str:
    """Return a subnet that no other cluster on this machine uses, or packets would go there."""
    taken = _ip("-o", "-4", "address")
    first = secrets.randbelow(_SUBNETS)
    subnets = (f"{_NETWORK}.{(first + number) % _SUBNETS}" for number in range(_SUBNETS))
    return next(subnet for subnet in subnets if f" {subnet}." not in taken)


def network(folder: Path) -> Network:
    """Return the best network permitted to the user."""
    if hasattr(os, "geteuid") and os.geteuid() == 0:
        with suppress(OSError, subprocess.CalledProcessError):
            return Namespaces()
    return Loopback(folder)


def _ip(*arguments: str) -> str:
    command = ["ip", *arguments]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout
