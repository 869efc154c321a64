"""Closed and full streams and disks cause a clear message, the right exit code, and no partial
file.
"""

import errno
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.patience import PATIENCE_S

pytestmark = pytest.mark.skipif(os.name == "nt", reason="closes and fills streams as a POSIX shell does")

FULL = Path("/dev/full")
CLOSED = "harrow: standard output is closed: send it to a file, or to /dev/null\n"


def run_in_shell(
    line: str, folder: Path, environment: dict[str, str], limit: str = ""
) -> subprocess.CompletedProcess[str]:
    """Run a command line of harrow in a shell with a *limit*."""
    return subprocess.run(
        ["/bin/sh", "-c", f'{limit}\nexec "{sys.executable}" -m harrow {line}'],
        cwd=folder,
        env=environment,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
        timeout=PATIENCE_S,
    )


@pytest.mark.parametrize("line", ["run calm.yaml", "--version", "--help"])
def test_a_closed_stdout_is_reported_and_nothing_runs(
    line: str, folder: Path, environment: dict[str, str]
) -> None:
    ended = run_in_shell(f"{line} >&-", folder, environment)
    assert (ended.returncode, ended.stderr) == (2, CLOSED)
    assert not (folder / "results").exists()


@pytest.mark.parametrize("line", ["run calm.yaml", "check run.jsonl", "list faults", "validate calm.yaml"])
def test_a_closed_pipe_does_not_exit_with_1(line: str, folder: Path, environment: dict[str, str]) -> None:
    (folder / "run.jsonl").touch()
    reader, writer = os.pipe()
    os.close(reader)
    ended = subprocess.run(
        [sys.executable, "-m", "harrow", *line.split()],
        cwd=folder,
        env=environment,
        stdout=writer,
        stderr=subprocess.PIPE,
        text=True,
        check=False,
    )
    os.close(writer)
    assert (ended.returncode, ended.stderr) == (128 + signal.SIGPIPE, "")


def test_a_run_has_its_result_with_a_closed_stderr(folder: Path, environment: dict[str, str]) -> None:
    ended = run_in_shell("run calm.yaml 2>&-", folder, environment)
    assert ended.returncode == 0
    assert "as expected" in ended.stdout


def test_a_closed_stdin_has_no_history(folder: Path, environment: dict[str, str]) -> None:
    ended = run_in_shell("check - <&-", folder, environment)
    assert ended.returncode == 3, ended.stderr
    assert "no record was sent" in ended.stdout


@pytest.mark.skipif(not FULL.exists(), reason="there is no device that is always full")
@pytest.mark.parametrize("line", ["run calm.yaml", "list faults", "--help", "--version"])
def test_a_full_stdout_is_reported_in_one_line(line: str, folder: Path, environment: dict[str, str]) -> None:
    ended = run_in_shell(f"{line} >{FULL}", folder, environment)
    assert (ended.returncode, ended.stderr) == (
        2,
        f"harrow: cannot go on: {os.strerror(errno.ENOSPC)}\n",
    )


@pytest.mark.skipif(not FULL.exists(), reason="there is no device that is always full")
@pytest.mark.parametrize(("line", "code"), [("run nothing.yaml", 2), ("run calm.yaml", 2)])
def test_the_exit_code_suffices_when_stderr_is_closed(
    line: str, code: int, folder: Path, environment: dict[str, str]
) -> None:
    assert run_in_shell(f"{line} >{FULL} 2>{FULL}", folder, environment).returncode == code


LOSING = """
name: losing
kafka: "2.4"
cluster: {brokers: 3, topics: [{name: t, replication_factor: 3}]}
workload: {duration: 2s, producers: [{name: p, rate: 4/s, settings: {enable.idempotence: false}}]}
faults:
  - rate: 60/m
    do: {broker_crash: {broker: leader of t-0, restart_after: 500ms}}
behaviours: {hw_waits_for_whole_isr: false}
"""

WRITING = [
    "new fresh",
    "regress corpus --add losing.yaml --seed 0",
    "shrink losing.yaml --seed 0 -o small.yaml --quiet",
    "run calm.yaml --no-results --format json --output run.json",
    "run calm.yaml",
    "sweep calm.yaml --seeds 0..3 --engine process --out swept --quiet",
]


@pytest.mark.parametrize("line", WRITING)
def test_a_full_disk_leaves_no_file_under_its_final_name(
    line: str, folder: Path, environment: dict[str, str]
) -> None:
    """A limit on file sizes fails at the first byte, like a full disk."""
    if line.startswith("sweep"):
        pytest.importorskip("pyarrow")
    (folder / "losing.yaml").write_text(LOSING, encoding="utf-8")
    before = set(folder.rglob("*"))
    ended = run_in_shell(line, folder, environment, limit="ulimit -f 0")
    assert ended.returncode == 2, ended.stdout + ended.stderr
    assert ended.stderr.splitlines()[-1].startswith("harrow: cannot "), ended.stderr
    assert [path for path in set(folder.rglob("*")) - before if path.is_file() and path.name != ".lock"] == []


def test_an_error_after_an_upgrade_of_harrow_mentions_the_upgrade(
    folder: Path, environment: dict[str, str]
) -> None:
    """Later imports would come from other sources than earlier ones."""
    script = (
        "import harrow.cli.commands.list as command, sys, time, types\n"
        "from pathlib import Path\n"
        "old = sys.modules['harrow.old'] = types.ModuleType('harrow.old')\n"
        "old.__file__ = 'old.py'\n"
        "def session(request):\n"
        "    time.sleep(0.05)  # the clock of file systems has coarse ticks\n"
        "    if 'releases' in sys.argv: Path('old.py').touch()\n"
        "    raise AttributeError('no such thing')\n"
        "command.session = session\n"
        "from harrow.cli.main import main\n"
        "main()\n"
    )
    Path(folder, "old.py").touch()
    time.sleep(0.05)
    for catalogue, is_reported in (("faults", False), ("releases", True)):
        ended = subprocess.run(
            [sys.executable, "-c", script, "list", catalogue],
            env={**environment, "TMPDIR": str(folder)},
            cwd=folder,
            capture_output=True,
            text=True,
            check=False,
        )
        assert ended.returncode == 4
        assert ("harrow's files changed while it ran" in ended.stderr) is is_reported, ended.stderr


def test_an_exception_that_click_calls_aborted_is_an_internal_error(
    folder: Path, environment: dict[str, str]
) -> None:
    script = (
        "import harrow.cli.commands.list as command, sys\n"
        "def session(request): raise EOFError('the other end is gone')\n"
        "command.session = session\n"
        "from harrow.cli.main import main\n"
        "sys.argv = ['harrow', 'list', 'faults']\n"
        "main()\n"
    )
    ended = subprocess.run(
        [sys.executable, "-c", script],
        env={**environment, "TMPDIR": str(folder)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert ended.returncode == 4
    assert ended.stderr.startswith("harrow: internal error: EOFError: the other end is gone")
