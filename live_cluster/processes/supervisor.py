"""The parent of every process that harrow starts: it ends them all when harrow is gone.

It runs as a process of its own, on the standard library alone, and reads a line of JSON for each order from standard input.
When that ends, because harrow has closed it or was killed, it kills what it has started, and what those have started, each of
which is a session of its own. It writes a line for each order that it has carried out, and for each process that has ended.
Should it be killed itself, Linux kills its children.
"""

import contextlib
import ctypes
import json
import os
import select
import signal
import subprocess
import sys
from typing import Any, Final

_PR_SET_PDEATHSIG: Final = 1
_ENDED_SIGNALS: Final = tuple(each for each in signal.Signals if each.name in {"SIGINT", "SIGTERM", "SIGHUP"})


def main() -> None:
    """Carry out orders until there are no more, then end everything."""
    # A terminal's Ctrl-C is for harrow, which then says what is to end, and in which order.
    for number in _ENDED_SIGNALS:
        signal.signal(number, signal.SIG_IGN)
    reader, writer = os.pipe()
    os.set_blocking(writer, False)
    signal.set_wakeup_fd(writer, warn_on_full_buffer=False)
    signal.signal(signal.SIGCHLD, lambda *_: None)
    with contextlib.suppress(BrokenPipeError):  # The reader has gone.
        _Supervisor(reader).run()


class _Supervisor:
    def __init__(self, wakeup: int) -> None:
        self._wakeup = wakeup
        self._running: dict[int, subprocess.Popen[bytes]] = {}
        self._libc = ctypes.CDLL(None) if sys.platform == "linux" else None

    def run(self) -> None:
        orders = sys.stdin.fileno()
        rest = b""
        try:
            while True:
                ready, _, _ = select.select([orders, self._wakeup], [], [])
                if self._wakeup in ready:
                    os.read(self._wakeup, 4096)
                    self._tell_of_ended()
                if orders in ready:
                    read = os.read(orders, 65536)
                    if not read:
                        return
                    *lines, rest = (rest + read).split(b"\n")
                    for line in lines:
                        _tell(self._answer(json.loads(line)))
        finally:
            self._end_all()

    def _answer(self, order: dict[str, Any]) -> dict[str, Any]:
        try:
            told = self._start(order) if order["order"] == "start" else self._signal(order)
        except OSError as error:
            told = {"error": str(error)}
        return {"answer": order["number"], **told}

    def _start(self, order: dict[str, Any]) -> dict[str, Any]:
        with open(order["log"], "ab") as log:  # noqa: PTH123 - a path of harrow's own
            process = subprocess.Popen(  # noqa: S603 - harrow's own orders
                order["command"],
                cwd=order["folder"],
                env=order["environment"],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
                preexec_fn=self._die_with_parent,  # noqa: PLW1509 - there are no threads here
            )
        self._running[process.pid] = process
        return {"pid": process.pid, "log": order["log"]}

    def _die_with_parent(self) -> None:
        for number in _ENDED_SIGNALS:
            signal.signal(number, signal.SIG_DFL)
        if self._libc is not None:
            self._libc.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)

    def _signal(self, order: dict[str, Any]) -> dict[str, Any]:
        # One that has ended is not waited for before it is told of: its number belongs to no other process.
        is_running = order["pid"] in self._running and self._running[order["pid"]].poll() is None
        if is_running:
            os.killpg(order["pid"], order["signal"])
        return {"running": is_running}

    def _tell_of_ended(self) -> None:
        for pid, process in list(self._running.items()):
            code = process.poll()
            if code is not None:
                del self._running[pid]
                _tell({"ended": pid, "code": code})

    def _end_all(self) -> None:
        for pid, process in self._running.items():
            if process.poll() is None:
                os.killpg(pid, signal.SIGKILL)
        for process in self._running.values():
            process.wait()


def _tell(message: dict[str, Any]) -> None:
    sys.stdout.write(json.dumps(message) + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    main()
