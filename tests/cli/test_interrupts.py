"""Ctrl-C ends a command at any moment without a traceback."""

import gc
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from harrow.cli.interrupts import Interrupts, end_at_once_when_interrupted
from tests.cli.conftest import interrupted_in_a_run
from tests.patience import PATIENCE_S

pytestmark = pytest.mark.skipif(os.name == "nt", reason="signals are a POSIX matter")


@pytest.fixture(autouse=True)
def default_handler() -> Iterator[None]:
    """Restore the signal handler of the process."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


def press_ctrl_c() -> None:
    signal.raise_signal(signal.SIGINT)


def press_in_block(interrupts: Interrupts, done: list[int], times: int) -> None:
    with interrupts.shielded():
        for number in range(times):
            press_ctrl_c()
            done.append(number)


def test_an_interrupt_waits_for_the_end_of_a_shielded_block() -> None:
    done: list[int] = []
    with Interrupts() as interrupts, pytest.raises(KeyboardInterrupt):
        press_in_block(interrupts, done, times=1)
    assert done == [0]
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


def test_a_second_interrupt_does_not_wait() -> None:
    done: list[int] = []
    with Interrupts() as interrupts, pytest.raises(KeyboardInterrupt):
        press_in_block(interrupts, done, times=3)
    assert done == [0]


def test_after_hold_an_interrupt_waits_until_the_end() -> None:
    with Interrupts() as interrupts:
        interrupts.defer_to_the_end()
        press_ctrl_c()
        with interrupts.shielded():
            pass


def test_code_in_a_noted_block_can_poll_for_interrupts() -> None:
    with Interrupts() as interrupts:
        with interrupts.deferred():
            assert not interrupts.is_pending()
            press_ctrl_c()
            assert interrupts.is_pending()
        with pytest.raises(KeyboardInterrupt):
            interrupts.check()


def test_a_background_process_with_brokers_obeys_interrupts() -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    with Interrupts() as interrupts:
        press_ctrl_c()
        interrupts.handle_also(signal.SIGTERM)
        for number in (signal.SIGINT, signal.SIGTERM):
            with pytest.raises(KeyboardInterrupt):
                signal.raise_signal(number)
    assert signal.getsignal(signal.SIGINT) is signal.SIG_IGN


def test_a_lost_interrupt_is_raised_again(monkeypatch: pytest.MonkeyPatch) -> None:
    """Python drops an exception that is raised in a callback of the garbage collector."""

    def pressing(_phase: str, _info: object) -> None:
        press_ctrl_c()

    monkeypatch.setattr(sys, "unraisablehook", lambda lost: None)
    with Interrupts() as interrupts:
        interrupts.check()
        gc.callbacks.append(pressing)
        try:
            gc.collect()
        finally:
            gc.callbacks.remove(pressing)
        with pytest.raises(KeyboardInterrupt):
            interrupts.check()


def test_a_process_that_ignores_interrupts_keeps_ignoring_them() -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    end_at_once_when_interrupted()
    with Interrupts():
        press_ctrl_c()
    assert signal.getsignal(signal.SIGINT) is signal.SIG_IGN


def test_an_interrupt_before_the_first_run_ends_silently(environment: dict[str, str]) -> None:
    script = (
        "import harrow.cli.__main__, harrow.cli.interrupts, os, signal\n"
        "harrow.cli.interrupts.end_at_once_when_interrupted()\n"
        "signal.raise_signal(signal.SIGINT)\n"
    )
    ended = subprocess.run(
        [sys.executable, "-c", script], env=environment, capture_output=True, text=True, check=False
    )
    assert (ended.returncode, ended.stdout, ended.stderr) == (130, "", "")


@pytest.mark.skipif(not Path("/proc").exists(), reason="looks at the signals of another process")
def test_workers_of_a_sweep_ignore_interrupts(environment: dict[str, str]) -> None:
    """An interrupt of their fork server has no effect either, even while it starts."""
    script = (
        "import os, signal, time\n"
        "from multiprocessing import forkserver\n"
        "from harrow.campaigns.sweep.process_engine import ProcessEngine\n"
        "engine = ProcessEngine([], 1)\n"
        "engine._living_pool()\n"
        "server = forkserver._forkserver._forkserver_pid\n"
        "os.kill(server, signal.SIGINT)\n"
        "time.sleep(3)\n"
        "assert os.waitpid(server, os.WNOHANG) == (0, 0)\n"
        "assert signal.SIGINT not in signal.pthread_sigmask(signal.SIG_BLOCK, ())\n"
        "engine.close()\n"
    )
    pytest.importorskip("pyarrow")
    ended = subprocess.run(
        [sys.executable, "-c", script], env=environment, capture_output=True, text=True, check=False
    )
    assert (ended.returncode, ended.stderr) == (0, "")


def test_a_sweep_interrupted_before_its_first_run_prints_one_line(
    folder: Path, environment: dict[str, str]
) -> None:
    pytest.importorskip("pyarrow")
    command = ["sweep", "calm.yaml", "--seeds", "0..3000", "--engine", "process", "--out", "s"]
    script = (
        "import harrow.campaigns.sweep.process_engine as e, signal, sys, threading\n"
        "from harrow.cli.main import main\n"
        # Several threads hand out chunks, but a second interrupt would not wait.
        "pressed = threading.Lock()\n"
        "def press(self, chunk):\n"
        "    if pressed.acquire(blocking=False):\n"
        "        signal.raise_signal(signal.SIGINT)\n"
        "    raise e.ChunkLostError('interrupted')\n"
        "e.ProcessEngine.run = press\n"
        f"sys.argv = ['harrow', *{command!r}]\n"
        "main()\n"
    )
    ended = subprocess.run(
        [sys.executable, "-c", script],
        cwd=folder,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
        timeout=PATIENCE_S,
    )
    assert (ended.returncode, ended.stdout) == (130, "")
    assert ended.stderr == "harrow: interrupted before a run finished\n"


def test_an_interrupt_ends_a_search_by_hypothesis(folder: Path, environment: dict[str, str]) -> None:
    search = ("run", "swarm", "--engine", "hypothesis", "--max-examples", "100000")
    code, _, stderr = interrupted_in_a_run(search, folder, environment, campaign="swarm", run=50)
    assert code == 130
    assert stderr.endswith("harrow: interrupted: 0 searches finished\n")
    assert "ignored" not in stderr


def test_heeded_signals_are_interrupts_until_the_context_closes() -> None:
    before = signal.getsignal(signal.SIGTERM)
    with Interrupts() as interrupts:
        interrupts.handle_also(signal.SIGTERM)
        with pytest.raises(KeyboardInterrupt):
            signal.raise_signal(signal.SIGTERM)
    assert signal.getsignal(signal.SIGTERM) is before


def test_an_ignored_signal_stays_ignored(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(signal, "getsignal", lambda _: signal.SIG_IGN)
    interrupts = Interrupts()
    interrupts.handle_also(signal.SIGHUP)
    monkeypatch.undo()
    assert signal.getsignal(signal.SIGHUP) is signal.SIG_DFL
