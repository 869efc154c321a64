"""Runs programs in other languages on a served cluster, if their tools and libraries are there."""

import re
import shutil
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


def prepare(folder: Path, *command: str) -> None:
    """Download libraries. Skip the test if the tool is missing or cannot reach its repository."""
    if shutil.which(command[0]) is None:
        pytest.skip(f"{command[0]} is missing")
    done = _run(folder, command)
    if done.returncode and (reason := _OFFLINE.search(done.stdout)):
        pytest.skip(f"{command[0]} has no libraries: {reason[0]}")
    assert done.returncode == 0, done.stdout


def serve(folder: Path, campaign: Path, *command: str, options: Sequence[str] = ()) -> tuple[int, str]:
    """Run a program on a served cluster. Return the exit code and what both print."""
    serving = ("serve", str(campaign), "--no-results", "--control", "0", *options)
    done = _run(folder, (sys.executable, "-m", "harrow", *serving, "--", *command))
    return done.returncode, done.stdout


def _run(folder: Path, command: Sequence[str]) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        command,
        cwd=folder,
        env={**plain_environment(), "PYTHONPATH": PYTHONPATH},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        encoding="utf-8",
        timeout=PATIENCE_S,
        check=False,
    )
