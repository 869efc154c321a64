"""Runs programs in other languages on a served cluster, if their tools and libraries are there."""

import os
import re
import shutil
import signal
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Final

import pytest

from tests.patience import PATIENCE_S
from tests.plain_environment import PYTHONPATH, ROOT, plain_environment

SERVICES: Final = ROOT / "examples" / "services"
_OFFLINE: Final = re.compile(
    "Could not (?:resolve|transfer)|no such host|dial tcp|proxyconnect|40[0-9] Forbidden|GOPROXY=off"
    "|npm (?:error|ERR!) code (?:EAI_AGAIN|ENOTFOUND|ECONN[A-Z]+|ETIMEDOUT|E40[0-9])|requires go >=|invalid go version|toolchain not available"
)
"""What the tools print if they cannot download a library, or are too old for it."""
DOWNLOAD_S: Final = 300
"""A repository that takes longer counts as out of reach."""


def prepare(folder: Path, *command: str) -> None:
    """Download libraries. Skip the test if the tool is missing or cannot reach its repository."""
    if shutil.which(command[0]) is None:
        pytest.skip(f"{command[0]} is missing")
    try:
        code, printed = _run(folder, command, DOWNLOAD_S)
    except subprocess.TimeoutExpired:
        pytest.skip(f"{command[0]} has no libraries after {DOWNLOAD_S} s")
    if code and (reason := _OFFLINE.search(printed)):
        pytest.skip(f"{command[0]} has no libraries: {reason[0]}")
    assert code == 0, printed


def prepare_maven(project: Path) -> None:
    """Download what a Maven project needs, with what Surefire downloads when it runs a test."""
    test = project / "src" / "test" / "java" / "DownloadTest.java"
    test.write_text(
        "class DownloadTest { @org.junit.jupiter.api.Test void downloads() {} }", encoding="utf-8"
    )
    prepare(project, "mvn", "-B", "-q", "test", "-Dtest=DownloadTest")
    test.unlink()
    shutil.rmtree(project / "target" / "test-classes")


def serve(folder: Path, campaign: Path, *command: str, options: Sequence[str] = ()) -> tuple[int, str]:
    """Run a program on a served cluster. Return the exit code and what both print."""
    serving = ("serve", str(campaign), "--no-results", "--control", "0", *options)
    return _run(folder, (sys.executable, "-m", "harrow", *serving, "--", *command), PATIENCE_S)


def _run(folder: Path, command: Sequence[str], limit_s: float) -> tuple[int, str]:
    """Return the exit code and the output. Kill the command with its children at the time limit."""
    with subprocess.Popen(
        command,
        cwd=folder,
        env={**plain_environment(), "PYTHONPATH": PYTHONPATH},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        encoding="utf-8",
        start_new_session=True,
    ) as process:
        try:
            printed, _ = process.communicate(timeout=limit_s)
        except BaseException:
            os.killpg(process.pid, signal.SIGKILL)
            raise
    return process.returncode, printed
