"""Hostile texts in any field of any file: each command ends well, and prints no control character and no command."""

import subprocess
import sys

import pytest

from tests.patience import PATIENCE_S
from tests.plain_environment import PYTHONPATH, ROOT, plain_environment

pytest.importorskip("pyarrow")
pytest.importorskip("kafka")


@pytest.mark.soak(size=50, test=1, soak=100)
def test_hostile_cases_end_well(numbers: range) -> None:
    ended = subprocess.run(
        [sys.executable, "-m", "tests.hostile", "--first", str(numbers.start), "--cases", str(len(numbers))],
        cwd=ROOT,
        env={**plain_environment(), "PYTHONPATH": PYTHONPATH},
        capture_output=True,
        text=True,
        timeout=PATIENCE_S,
        check=False,
    )
    assert ended.returncode == 0, ended.stdout + ended.stderr
