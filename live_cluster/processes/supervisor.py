"""The parent of every process that harrow starts. It kills them all when harrow ends.

It runs in its own process, uses only the standard library, and reads orders as lines of JSON from
standard input. When the input ends, because harrow has closed it or was killed, it kills the
sessions of all processes that it started. It writes a line for each finished order, and for each
ended process. If it is killed itself, Linux kills its children.
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
    """Carry out orders until the input ends, then kill all processes."""
    # Ctrl-C is for harrow, which then ends the processes in the right order.
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
        unread = b""
        try:
            while True:
                ready, _, _ = select.select([orders, self._wakeup], [], [])
                if self._wakeup in ready:
                    os.read(self._wakeup, 4096)
                    self._report_ended()
                if orders in ready:
                    read = os.read(orders, 65536)
                    if not read:
                        return
                    *lines, unread = (unread + read).split(b"\n")
                    for line in lines:
                        _write_message(self._answer(json.loads(line)))
        finally:
            self._kill_all()

    def _answer(self, order: dict[str, Any]) -> dict[str, Any]:
        try:
            result = self._start(order) if order["order"] == "start" else self._signal(order)
        except OSError as error:
            result = {"error": str(error)}
        return {"answer": order["number"], **result}

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
        # An ended process is reaped only with its report, so its number cannot be reused before.
        is_running = order["pid"] in self._running and self._running[order["pid"]].poll() is None
        if is_running:
            os.killpg(order["pid"], order["signal"])
        return {"running": is_running}

    def _report_ended(self) -> None:
        for pid, process in list(self._running.items()):
            code = process.poll()
            if code is not None:
                del self._running[pid]
                _write_message({"ended": pid, "code": code})

    def _kill_all(self) -> None:
        for pid, process in self._running.items():
            if process.poll() is None:
                os.killpg(pid, signal.SIGKILL)
        for process in self._running.values():
            process.wait()


def _write_message(message: dict[str, Any]) -> None:
    sys.stdout.write(json.dumps(message) + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    main()
