"""`harrow explain SWITCH` advises a run that depends on the switch."""

import subprocess
import sys

from tests.patience import PATIENCE_S
from tests.plain_environment import ROOT, plain_environment


def test_the_advised_run_of_a_switch_reads_the_switch() -> None:
    completed = subprocess.run(
        [sys.executable, "-m", "tests.quality.switch_reads"],
        cwd=ROOT,
        env={**plain_environment(), "HARROW_PURE": "1"},
        capture_output=True,
        text=True,
        timeout=PATIENCE_S,
        check=False,
    )
    assert (completed.returncode, completed.stdout, completed.stderr) == (0, "", "")
