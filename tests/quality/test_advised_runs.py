"""`harrow explain SWITCH` advises a run: it has to show something of the switch."""

import subprocess
import sys

from tests.patience import PATIENCE_S
from tests.plain_environment import ROOT, plain_environment


def test_the_run_that_explain_advises_for_a_switch_reads_that_switch() -> None:
    ended = subprocess.run(
        [sys.executable, "-m", "tests.quality.switch_reads"],
        cwd=ROOT,
        env={**plain_environment(), "HARROW_PURE": "1"},
        capture_output=True,
        text=True,
        timeout=PATIENCE_S,
        check=False,
    )
    assert (ended.returncode, ended.stdout, ended.stderr) == (0, "", "")
