"""Hostile texts in any field of a file cause no failure, and command no terminal or CI system."""

import subprocess
import sys

import pytest

from tests.patience import PATIENCE_S
from tests.plain_environment import PYTHONPATH, ROOT, plain_environment

pytest.importorskip("pyarrow")
pytest.importorskip("kafka")


@pytest.mark.soak(size=50, rounds_in_test=1, rounds_in_soak=100)
def test_commands_end_cleanly_in_hostile_cases(numbers: range) -> None:
    completed = subprocess.run(
        [sys.executable, "-m", "tests.hostile", "--first", str(numbers.start), "--cases", str(len(numbers))],
        cwd=ROOT,
        env={**plain_environment(), "PYTHONPATH": PYTHONPATH},
        capture_output=True,
        text=True,
        timeout=PATIENCE_S,
        check=False,
    )
    assert completed.returncode == 0, completed.stdout + completed.stderr
