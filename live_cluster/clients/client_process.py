"""The other end of a client under test: it starts its process, tells it what it is, and hears what it does."""

import contextlib
import json
import secrets
import socket
import sys
import threading
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Final

from harrow.live_cluster.clients import worker
from harrow.live_cluster.errors import LiveError
from harrow.live_cluster.processes.child_processes import ChildProcess, ChildProcesses
from harrow.live_cluster.processes.ports import LOOPBACK

_PATIENCE_S: Final = 60.0


class ClientError(LiveError):
    """A client did not start; the message has what it said."""


class ClientProcess:
    """A client that runs. Each of its reports goes to *on_report*, in a thread of its own; what that returns is sent back."""

    def __init__(
        self,
        children: ChildProcesses,
        folder: Path,
        client: Mapping[str, Any],
        on_report: Callable[[dict[str, Any]], Any],
    ) -> None:
        """Start it, in a folder of its own, and tell it what client it is.

        Raises:
            ClientError: it did not connect.

        """
        folder.mkdir(parents=True, exist_ok=True)
        token = secrets.token_hex(16)
        with socket.create_server((LOOPBACK, 0)) as server:
            server.settimeout(1.0)
            # Without the folder of the file (-P): its neighbours are no modules of their own.
            command = [sys.executable, "-P", worker.__file__, LOOPBACK, str(server.getsockname()[1]), token]
            self.process: ChildProcess = children.start(command, folder=folder, log=folder / "log")
            self._connection, self._rest = self._accept(server, token)
        self._on_report = on_report
        self._ordering = threading.Lock()
        self._is_wanted = True
        self.order(**client)
        self._wait_until_ready()
        self._reader = threading.Thread(target=self._read, name=f"client {client['name']}", daemon=True)
        self._reader.start()

    def order(self, **what: Any) -> None:
        """Tell it something; one that has ended hears nothing."""
        with self._ordering, contextlib.suppress(OSError):
            self._connection.sendall(json.dumps(what).encode() + b"\n")

    def check(self) -> None:
        """See whether it still runs, unless it was killed.

        Raises:
            ClientError: it has ended by itself.

        """
        if self._is_wanted and not self.process.is_running:
            raise ClientError(f"a client has ended: {self._said()}")

    def kill(self) -> None:
        """End it, and wait until all that it reported has been heard."""
        self._is_wanted = False
        self.process.kill()
        self._reader.join()
        self._connection.close()

    def pause(self) -> None:
        """Stop it (SIGSTOP)."""
        self.process.pause()

    def resume(self) -> None:
        """Let it go on."""
        self.process.resume()

    def _accept(self, server: socket.socket, token: str) -> tuple[socket.socket, bytes]:
        """Return the connection of the process that was started, and not of another that knows the port."""
        for _ in range(int(_PATIENCE_S)):
            try:
                connection, _ = server.accept()
            except TimeoutError:
                if self.process.is_running:
                    continue
                break
            connection.settimeout(_PATIENCE_S)
            connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            line, rest = _line(connection)
            if line == json.dumps({"token": token}).encode():
                connection.settimeout(None)
                return connection, rest
            connection.close()
        raise ClientError(f"a client did not start: {self._said()}")

    def _wait_until_ready(self) -> None:
        """Wait until it is what it was told to be: a library may refuse settings that harrow takes."""
        self._connection.settimeout(_PATIENCE_S)
        while b"\n" not in self._rest:
            try:
                received = self._connection.recv(65536)
            except OSError:
                received = b""
            if not received:
                raise ClientError(f"a client did not start: {self._said()}")
            self._rest += received
        self._connection.settimeout(None)
        _, _, self._rest = self._rest.partition(b"\n")

    def _said(self) -> str:
        self.process.wait(1.0)
        said = self.process.log.read_text(encoding="utf-8", errors="backslashreplace").strip()
        return said.splitlines()[-1] if said else "it said nothing"

    def _read(self) -> None:
        # What came together with its being ready is read first: nothing may follow it.
        received, rest = self._rest, b""
        while True:
            *lines, rest = (rest + received).split(b"\n")
            for line in lines:
                answer = self._on_report(json.loads(line))
                if answer is not None:
                    self.order(**answer)
            try:
                received = self._connection.recv(65536)
            except OSError:
                return
            if not received:
                return


def _line(connection: socket.socket) -> tuple[bytes, bytes]:
    data = b""
    while b"\n" not in data:
        try:
            received = connection.recv(4096)
        except OSError:
            return b"", b""
        if not received:
            return b"", b""
        data += received
    line, _, rest = data.partition(b"\n")
    return line, rest
