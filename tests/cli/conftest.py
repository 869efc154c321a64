"""The command line as a process: on pipes, on a terminal, and interrupted."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.cli import warm_process
from tests.plain_environment import plain_environment

ROOT = Path(__file__).parents[2]
TIMEOUT_S = 120

CAMPAIGNS = {
    "calm": """
cluster: {brokers: 1, topics: [{name: t}]}
workload: {producers: [{name: producer-0}]}
script:
  - do: {send: m0}
  - when: {acked: m0}
""",
    "permitted": """
description: With acks=0 nobody waits for an answer.
settings: {acks: 0}
cluster:
  brokers: 3
  controller: 2
  topics: [{name: t, assignment: [[0, 1]]}]
workload: {producers: [{name: producer-0}]}
script:
  - do:
      - partition: {between: [0], and: [1]}
      - send: m0
  - when: {replicas: {t-0: {0: {leo: 1}}}}
    do: {broker_crash: {broker: 0}}
    only: [base]
  - when: {replicas: {t-0: {1: {role: leader}}}}
    only: [base]
expect: {verdict: permitted, lost: [m0]}
variants:
  acks-all:
    settings: {acks: all}
    expect: {verdict: held, lost: []}
""",
    "failing": """
cluster: {brokers: 1, topics: [{name: t}]}
workload: {producers: [{name: producer-0}]}
script:
  - do: {send: m0}
  - when: {acked: m0}
    do: {expect: {replicas: {t-0: {0: {leo: 2}}}}}
expect: {verdict: permitted, lost: [m0]}
""",
    "unreached": """
cluster: {brokers: 2, topics: [{name: t}]}
workload: {producers: [{name: producer-0}]}
script:
  - do: {send: m0}
  - when: {acked: m0}
expect: {probes: [fetch-waited-in-purgatory, unclean-election]}
variants:
  reached:
    expect: {probes: fetch-waited-in-purgatory}
""",
    "undecided": """
cluster: {brokers: 1, topics: [{name: t}]}
workload: {producers: [{name: producer-0}]}
script:
  - do: {send: m0}
  - when: {acked: m1}
limits: {script: 5s}
""",
    "endless": """
cluster: {brokers: 3, topics: [{name: t, replication_factor: 3}]}
workload:
  duration: 60s
  producers: [{rate: 20/s}]
""",
    "wrong": """
kafka: "0.12"
clutser: {brokers: 1}
cluster:
  brokers: many
  topics: [{name: t}]
""",
}

Harrow = Callable[..., subprocess.CompletedProcess[str]]


def wait_until_it_has_worked(process: subprocess.Popen[str], cpu_s: float) -> None:
    """Wait until a process has used so many seconds of a core: how far it is, however busy the machine is."""
    stat = Path(f"/proc/{process.pid}/stat")
    if not stat.exists():
        time.sleep(2 * cpu_s)
        return
    ticks_per_s = os.sysconf("SC_CLK_TCK")
    while process.poll() is None:
        user, system = stat.read_text(encoding="utf-8").rpartition(")")[2].split()[11:13]
        if (int(user) + int(system)) / ticks_per_s >= cpu_s:
            return
        time.sleep(0.05)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Return a folder with campaigns for tests."""
    for name, text in CAMPAIGNS.items():
        (tmp_path / f"{name}.yaml").write_text(f"name: {name}{text}", encoding="utf-8")
    return tmp_path


@pytest.fixture
def environment() -> dict[str, str]:
    """Return an environment in which nothing says how output should look."""
    return {**plain_environment(), "PYTHONPATH": str(ROOT), "TERM": "xterm-256color"}


@pytest.fixture
def harrow(folder: Path, environment: dict[str, str]) -> Harrow:
    """Return a function that runs the command in the folder, and on no terminal."""

    def run(*arguments: str, **variables: str) -> subprocess.CompletedProcess[str]:
        # Some variables are read while modules are imported, and a sweep starts processes itself.
        if not variables and arguments[:1] != ("sweep",):
            return warm_process.run(arguments, folder, environment, TIMEOUT_S)
        return subprocess.run(
            [sys.executable, "-m", "cli", *arguments],
            cwd=folder,
            env={**environment, **variables},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            encoding="utf-8",
            timeout=TIMEOUT_S,
            check=False,
        )

    return run


@pytest.fixture
def on_terminal(folder: Path, environment: dict[str, str]) -> Callable[..., tuple[int, str]]:
    """Return a function that runs the command on a terminal, and returns its exit code and what is shown.

    It interrupts the command as soon as *interrupt_at* is shown.
    """
    fcntl = pytest.importorskip("fcntl")
    termios = pytest.importorskip("termios")

    def run(
        *arguments: str,
        columns: int = 80,
        lines: int = 24,
        interrupt_at: str | None = None,
        **variables: str,
    ) -> tuple[int, str]:
        ours, theirs = os.openpty()
        fcntl.ioctl(
            theirs, termios.TIOCSWINSZ, b"".join(n.to_bytes(2, "little") for n in (lines, columns, 0, 0))
        )
        process = subprocess.Popen(
            [sys.executable, "-m", "cli", *arguments],
            cwd=folder,
            env={**environment, **variables},
            stdin=theirs,
            stdout=theirs,
            stderr=theirs,
        )
        os.close(theirs)
        shown = bytearray()
        try:
            while piece := os.read(ours, 65536):
                shown += piece
                if interrupt_at is not None and interrupt_at.encode() in shown:
                    process.send_signal(signal.SIGINT)
                    interrupt_at = None
        except OSError:
            pass  # Linux says so when the other end is closed
        os.close(ours)
        return process.wait(timeout=60), shown.decode("utf-8").replace("\r\n", "\n")

    return run
