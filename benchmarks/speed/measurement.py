"""Measures the run of a cluster with the code in a folder, in a separate process."""

import json
import os
import re
import shutil
import subprocess
import sys
import tarfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

from benchmarks.speed.clusters import TABLE, WORK_TREE, MeasuredCluster
from harrow.cluster_model.release.former_names import FORMER_NAMES
from harrow.compilation import PURE

_RUN_ONCE: Final = Path(__file__).with_name("run_once.py")
_VALGRIND: Final = ("valgrind", "--tool=cachegrind", "--cache-sim=no", "--cachegrind-out-file=/dev/null")
_COUNTING_LIMIT_S: Final = 3_600
"""Long, because valgrind makes a process fifty times slower."""
_WARM_UP: Final = replace(TABLE[0], name="warm-up", duration_s=5)


class CommitError(Exception):
    """There is no such commit; the message says so."""


class UnrunnableCodeError(Exception):
    """Some code cannot run a cluster; the message says why."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Cost:
    """The result of a measurement.

    If a run was stopped at its limit, only the peak is known. ``bare_events_per_s`` is the speed of
    the barest event loop in the same process, directly before and after the run.
    """

    over: bool
    cpu_s: float
    judge_s: float
    events: int
    simulated_s: float
    verdicts: list[str]
    peak_mib: float
    bare_events_per_s: float
    runner: str

    @property
    def us_per_event(self) -> float:
        return self.cpu_s * 1e6 / self.events

    @property
    def bare_events_per_event(self) -> float:
        """How many events of the barest loop take as long as one event of the run."""
        return self.us_per_event * self.bare_events_per_s / 1e6


@contextmanager
def checked_out(commit: str) -> Iterator[Path]:
    """Put the files of a commit into a temporary folder, which is always removed at the end.

    They come from `git archive`, because git records its worktrees: if this process was killed, the
    record of a worktree would stay.
    """
    with TemporaryDirectory(prefix="harrow-compare-") as name:
        archive, root = Path(name) / "commit.tar", Path(name) / "commit"
        git("archive", "--format=tar", f"--output={archive}", resolved(commit))
        with tarfile.open(archive) as files:
            files.extractall(root, filter="data")
        archive.unlink()
        yield root


def resolved(commit: str) -> str:
    """Return the full hash of a commit."""
    return git("rev-parse", "--verify", "--quiet", "--end-of-options", f"{commit}^{{commit}}")


def git(*arguments: str) -> str:
    """Run git in this repository, and return the output."""
    completed = subprocess.run(  # noqa: S603 - arguments of our own, and a commit behind --end-of-options
        ["git", "-C", str(WORK_TREE), *arguments],  # noqa: S607 - the user's git
        check=False,
        capture_output=True,
        text=True,
    )
    if completed.returncode:
        raise CommitError(
            f"git {' '.join(arguments)}: {completed.stderr.strip() or 'there is no such commit'}"
        )
    return completed.stdout.strip()


def measure(root: Path, cluster: MeasuredCluster, limit_s: int, *, compiled: bool = False) -> Cost:
    """Run a cluster with the code below *root*: the work tree or the checkout of a commit."""
    return Cost(**json.loads(_run_once(root, cluster, cluster.seeds, limit_s, compiled=compiled).stdout))


def instructions(root: Path, cluster: MeasuredCluster, *, compiled: bool = False) -> float | None:
    """Return the instructions of a run in millions, on average, None without valgrind.

    valgrind counts a process with the seeds of the cluster, and one without runs. The difference
    does not include the start of Python and the warm-up. Seeds differ in cost, so every machine
    counts the same ones.
    """
    if shutil.which("valgrind") is None:
        return None
    counts = []
    for seeds in (0, cluster.seeds):
        report = _run_once(
            root, cluster, seeds, _COUNTING_LIMIT_S, compiled=compiled, counter=_VALGRIND
        ).stderr
        line = re.search(r"I +refs: +([0-9,]+)", report)
        assert line is not None, report
        counts.append(int(line[1].replace(",", "")))
    return (counts[1] - counts[0]) / cluster.seeds / 1e6


def how_it_runs(root: Path, *, compiled: bool) -> str:
    """Return whether the core below *root* runs compiled; some commits have no such core."""
    if not _below_harrow(root):
        return PURE  # An installed harrow may be found, which says nothing about the commit.
    script = "from harrow.compilation import compilation; print(compilation()[0])"
    completed = subprocess.run(  # noqa: S603 - our own script
        [sys.executable, "-P", "-c", script],
        env=_environment(root, compiled=compiled),
        capture_output=True,
        text=True,
        check=False,
    )
    return completed.stdout.strip() or PURE


def compile_core(root: Path) -> None:
    """Compile the checkout of a commit, if its core can be compiled; it takes minutes."""
    script = root / "hatch_build.py"
    if script.is_file() and "def compile_core" in script.read_text(encoding="utf-8"):
        subprocess.run(  # noqa: S603 - the build of the commit
            [sys.executable, str(script)],
            cwd=root,
            env=_environment(root, compiled=True),
            capture_output=True,
            check=True,
        )


def _below_harrow(root: Path) -> bool:
    """Return whether a commit has its code in the package `harrow`; early ones have not."""
    return (root / "src" / "harrow").is_dir()


def _environment(root: Path, *, compiled: bool) -> dict[str, str]:
    source = root / "src" if _below_harrow(root) else root
    # Each round starts a process, which would compile harrow if it could not write bytecode.
    python = {"PYTHONPATH": str(source), "PYTHONHASHSEED": "0", "PYTHONDONTWRITEBYTECODE": ""}
    return {**os.environ, **python, "HARROW_PURE": "" if compiled else "1"}


def _run_once(
    root: Path,
    cluster: MeasuredCluster,
    seeds: int,
    limit_s: int,
    *,
    compiled: bool,
    counter: Sequence[str] = (),
) -> subprocess.CompletedProcess[str]:
    request = {
        "root": str(root),
        "campaign": cluster.text_for(root),
        "warm_up": _WARM_UP.text(),
        "former_names": FORMER_NAMES,
        "warm_up_seeds": [*range(cluster.seeds, cluster.seeds + cluster.warm_up_seeds)],
        "seeds": seeds,
        "limit_s": limit_s,
    }
    completed = subprocess.run(  # noqa: S603 - a file of this folder
        # -P, because this folder has modules with the names of modules of a commit.
        [*counter, sys.executable, "-P", str(_RUN_ONCE)],
        input=json.dumps(request),
        env=_environment(root, compiled=compiled),
        capture_output=True,
        text=True,
        check=False,
    )
    if completed.returncode:
        why = completed.stderr.strip().splitlines() or [f"it ended with code {completed.returncode}"]
        raise UnrunnableCodeError(f"{cluster.name} cannot be run with the code in {root}: {why[-1]}")
    return completed
