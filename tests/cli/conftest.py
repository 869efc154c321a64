"""The command line as a process: on pipes, on a terminal, and interrupted."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path

import pytest

from tests.cli import warm_process
from tests.conftest import kill_after_test
from tests.patience import PATIENCE_S
from tests.plain_environment import PYTHONPATH, plain_environment

ROOT = Path(__file__).parents[2]

CAMPAIGNS = {
    "calm": """
cluster: {brokers: 1, topics: [{name: t}]}
workload: {producers: [{name: producer-0}]}
script:
  - do: {send: m0}
  - when: {acked: m0}
""",
    "permitted": """
description: With acks=0 no client waits for an answer.
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


SIGNALLING_SCRIPT = """
import sys
from contextlib import ExitStack
from pathlib import Path
from harrow.campaigns.run.runner import Run
from harrow.cli.__main__ import main

begin, left = Run.__init__, int(sys.argv.pop(1))
campaign, sign = sys.argv.pop(1), Path(sys.argv.pop(1))

def marked(self, plan, *rest, **named):
    global left
    begin(self, plan, *rest, **named)
    left -= plan.campaign == campaign
    if not left:
        sign.touch()

Run.__init__ = marked
main()
"""


def interrupted_in_a_run(
    arguments: Sequence[str], folder: Path, environment: Mapping[str, str], *, campaign: str, run: int
) -> tuple[int, str, str]:
    """Run the command and interrupt it when a campaign begins its *run*-th run.

    Return its exit code and its output.
    """
    started_file = folder / "begun"
    process = subprocess.Popen(
        [sys.executable, "-c", SIGNALLING_SCRIPT, str(run), campaign, str(started_file), *arguments],
        cwd=folder,
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    with ExitStack() as ended:
        kill_after_test(ended, process)
        while not started_file.exists() and process.poll() is None:
            time.sleep(0.05)
        process.send_signal(signal.SIGINT)
        stdout, stderr = process.communicate(timeout=PATIENCE_S)
    return process.returncode, stdout, stderr


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Return a folder with campaigns for tests."""
    for name, text in CAMPAIGNS.items():
        (tmp_path / f"{name}.yaml").write_text(f"name: {name}{text}", encoding="utf-8")
    return tmp_path


@pytest.fixture
def environment() -> dict[str, str]:
    """Return an environment without settings for output."""
    return {**plain_environment(), "PYTHONPATH": PYTHONPATH, "TERM": "xterm-256color"}


@pytest.fixture
def harrow(folder: Path, environment: dict[str, str]) -> Harrow:
    """Return a function that runs the command in the folder without a terminal."""

    def run(*arguments: str, **variables: str) -> subprocess.CompletedProcess[str]:
        # Python reads its own variables only when it starts.
        if not any(name.startswith("PYTHON") for name in variables):
            return warm_process.run(arguments, folder, {**environment, **variables}, PATIENCE_S)
        return subprocess.run(
            [sys.executable, "-m", "harrow", *arguments],
            cwd=folder,
            env={**environment, **variables},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            encoding="utf-8",
            timeout=PATIENCE_S,
            check=False,
        )

    return run


@pytest.fixture
def on_terminal(
    processes: ExitStack, folder: Path, environment: dict[str, str]
) -> Callable[..., tuple[int, str]]:
    """Return a function that runs the command on a terminal and returns its exit code and output.

    It interrupts the command when *interrupt_at* appears.
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
        terminal_fd, process_fd = os.openpty()
        fcntl.ioctl(
            process_fd, termios.TIOCSWINSZ, b"".join(n.to_bytes(2, "little") for n in (lines, columns, 0, 0))
        )
        process = subprocess.Popen(
            [sys.executable, "-m", "harrow", *arguments],
            cwd=folder,
            env={**environment, **variables},
            stdin=process_fd,
            stdout=process_fd,
            stderr=process_fd,
        )
        kill_after_test(processes, process)
        os.close(process_fd)
        output = bytearray()
        try:
            while piece := os.read(terminal_fd, 65536):
                output += piece
                if interrupt_at is not None and interrupt_at.encode() in output:
                    process.send_signal(signal.SIGINT)
                    interrupt_at = None
        except OSError:
            pass  # Linux reports the closed other end
        os.close(terminal_fd)
        return process.wait(timeout=PATIENCE_S), output.decode("utf-8").replace("\r\n", "\n")

    return run


@pytest.fixture(scope="module")
def s3() -> Iterator[dict[str, str]]:
    """Return the environment in which a command finds an object store that runs on this machine."""
    from tests.s3_server import s3_server

    with s3_server() as environment:
        yield environment
