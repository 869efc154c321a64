"""harrow's end of a client under test: starts its process, sends orders and receives reports."""

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

_WAIT_MAX_S: Final = 60.0


class ClientError(LiveError):
    """A client did not start, or has ended; the message has its last line of output."""


class ClientProcess:
    """A running client. A thread calls *on_report* with each report, and returns its answer."""

    def __init__(
        self,
        children: ChildProcesses,
        folder: Path,
        client: Mapping[str, Any],
        on_report: Callable[[dict[str, Any]], Any],
    ) -> None:
        """Start the process in its own folder, and send it the description of its *client*.

        Raise `ClientError` if the process does not start.
        """
        folder.mkdir(parents=True, exist_ok=True)
        token = secrets.token_hex(16)
        with socket.create_server((LOOPBACK, 0)) as server:
            server.settimeout(1.0)
            # -P keeps the worker's folder off `sys.path`: the files beside it are not top-level
            # modules.
            command = [sys.executable, "-P", worker.__file__, LOOPBACK, str(server.getsockname()[1]), token]
            self.process: ChildProcess = children.start(command, folder=folder, log=folder / "log")
            self._connection, self._unread = self._accept(server, token)
        self._on_report = on_report
        self._order_lock = threading.Lock()
        self._should_run = True
        self.order(**client)
        self._wait_until_ready()
        self._reader = threading.Thread(target=self._read, name=f"client {client['name']}", daemon=True)
        self._reader.start()

    def begin(self, zero_ns: int) -> None:
        """Let the client work. Its times count from this reading of the monotonic clock."""
        self.order(zero_ns=zero_ns)

    def order(self, **fields: Any) -> None:
        """Send an order, which is lost if the process has ended."""
        with self._order_lock, contextlib.suppress(OSError):
            self._connection.sendall(json.dumps(fields).encode() + b"\n")

    def check(self) -> None:
        """Raise `ClientError` if the process has ended by itself."""
        if self._should_run and not self.process.is_running:
            raise ClientError(f"a client has ended: {self._last_line()}")

    def kill(self) -> None:
        """Kill the process, and wait until all of its reports are handled."""
        self._should_run = False
        self.process.kill()
        self._reader.join()
        self._connection.close()

    def pause(self) -> None:
        self.process.pause()

    def resume(self) -> None:
        self.process.resume()

    def _accept(self, server: socket.socket, token: str) -> tuple[socket.socket, bytes]:
        """Return the connection of the started process. Only that process knows the *token*."""
        for _ in range(int(_WAIT_MAX_S)):
            try:
                connection, _ = server.accept()
            except TimeoutError:
                if self.process.is_running:
                    continue
                break
            connection.settimeout(_WAIT_MAX_S)
            connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            line, rest = _first_line(connection)
            if line == json.dumps({"token": token}).encode():
                connection.settimeout(None)
                return connection, rest
            connection.close()
        raise ClientError(f"a client did not start: {self._last_line()}")

    def _wait_until_ready(self) -> None:
        """Wait until the client is ready: its library may refuse settings that harrow accepts."""
        self._connection.settimeout(_WAIT_MAX_S)
        while b"\n" not in self._unread:
            try:
                received = self._connection.recv(65536)
            except OSError:
                received = b""
            if not received:
                raise ClientError(f"a client did not start: {self._last_line()}")
            self._unread += received
        self._connection.settimeout(None)
        _, _, self._unread = self._unread.partition(b"\n")

    def _last_line(self) -> str:
        self.process.wait(1.0)
        output = self.process.log.read_text(encoding="utf-8", errors="backslashreplace").strip()
        return output.splitlines()[-1] if output else "it printed nothing"

    def _read(self) -> None:
        # Begin with the bytes that arrived together with the first line.
        received, rest = self._unread, b""
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


def _first_line(connection: socket.socket) -> tuple[bytes, bytes]:
    data = b""
    with contextlib.suppress(OSError):
        while b"\n" not in data:
            received = connection.recv(4096)
            if not received:
                break
            data += received
    line, _, rest = data.partition(b"\n")
    return line, rest
