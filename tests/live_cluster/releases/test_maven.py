"""Maven, which may run for minutes, ends together with harrow."""

import os
import subprocess
import sys
import time
from contextlib import ExitStack
from pathlib import Path

import pytest

from tests.conftest import kill_after_test
from tests.marked_processes import mark_of, marked_processes
from tests.patience import PATIENCE_S
from tests.plain_environment import PYTHONPATH, plain_environment

DOWNLOAD = """
import sys
from pathlib import Path
from harrow.live_cluster.releases.maven import copy_jars
copy_jars(["a:b:1"], Path(sys.argv[1]), with_dependencies=False)
"""


@pytest.mark.skipif(not Path("/proc/self/environ").exists(), reason="looks for processes in /proc")
def test_maven_ends_when_harrow_is_killed(processes: ExitStack, tmp_path: Path) -> None:
    program = tmp_path / "mvn"
    program.write_text(f'#!/bin/sh\ntouch "{tmp_path}/begun"\nsleep {PATIENCE_S}\n', encoding="utf-8")
    program.chmod(0o755)
    path = os.pathsep.join((str(tmp_path), os.environ["PATH"]))
    harrow = kill_after_test(
        processes,
        subprocess.Popen(
            [sys.executable, "-c", DOWNLOAD, tmp_path / "made"],
            env={**plain_environment(), "PYTHONPATH": PYTHONPATH, "PATH": path, **mark_of(tmp_path)},
        ),
    )
    wait_until_s = time.monotonic() + PATIENCE_S
    while not (tmp_path / "begun").exists():
        assert time.monotonic() < wait_until_s
        time.sleep(0.05)
    harrow.kill()
    harrow.wait()
    while marked_processes(tmp_path):
        assert time.monotonic() < wait_until_s
        time.sleep(0.05)
