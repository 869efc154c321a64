"""Commands refuse hostile cluster files and sources with exit code 2 and a brief reason."""

import subprocess
import sys

import pytest

from tests.patience import PATIENCE_S
from tests.plain_environment import PYTHONPATH, ROOT, plain_environment

pytest.importorskip("pyarrow")
pytest.importorskip("kafka")
pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="uses devices and folders of Linux")


@pytest.mark.soak(size=1, rounds_in_test=1, rounds_in_soak=6)
def test_no_hostile_file_is_taken_for_a_cluster_or_crashes_a_command(numbers: range) -> None:
    words = ("--first", str(numbers.start), "--rounds", str(len(numbers)))
    completed = subprocess.run(
        [sys.executable, "-m", "tests.hostile.cluster_files", *words],
        cwd=ROOT,
        env={**plain_environment(), "PYTHONPATH": PYTHONPATH},
        capture_output=True,
        text=True,
        timeout=PATIENCE_S,
        check=False,
    )
    assert completed.returncode == 0, completed.stdout + completed.stderr
