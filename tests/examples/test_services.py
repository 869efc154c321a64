"""The test of each example service fails on the service with a bug, and passes on the one without."""

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.examples.toolchains import SERVICES, prepare, serve
from tests.patience import PATIENCE_S
from tests.plain_environment import PYTHONPATH, plain_environment

CAMPAIGN = SERVICES / "orders.yaml"


def copy_of(language: str, folder: Path) -> Path:
    """Return a copy of a service, because its tools write into its folder."""
    return Path(shutil.copytree(SERVICES / language, folder / language))


def test_pytest_finds_a_payment_that_a_killed_service_has_lost() -> None:
    pytest.importorskip("confluent_kafka")

    def run(service: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [sys.executable, "-m", "pytest", "-p", "no:cacheprovider"],
            cwd=SERVICES / "python",
            env={**plain_environment(), "PYTHONPATH": PYTHONPATH, "SERVICE": service},
            capture_output=True,
            text=True,
            timeout=PATIENCE_S,
            check=False,
        )

    good, bad = run("payments.py"), run("payments_with_bug.py")
    assert (good.returncode, bad.returncode) == (0, 1), good.stdout
    assert "At index 2 diff: b'paid order 3' != b'paid order 2'" in bad.stdout


def test_junit_finds_a_payment_that_a_retry_has_doubled(tmp_path: Path) -> None:
    project = copy_of("java", tmp_path)
    prepare(project, "mvn", "-B", "-q", "test", "-Dtest=None", "-Dsurefire.failIfNoSpecifiedTests=false")
    maven = ("mvn", "-B", "-q", "-o", "test")
    code, printed = serve(project, CAMPAIGN, *maven)
    assert code == 0, printed
    code, printed = serve(project, CAMPAIGN, *maven, "-Dsettings=payments-with-bug.properties")
    assert code == 1, printed
    assert "but was: <[paid order 0, paid order 1, paid order 2, paid order 2, " in printed


def test_go_finds_a_payment_that_is_not_in_the_ledger(tmp_path: Path) -> None:
    project = copy_of("go", tmp_path)
    prepare(project, "go", "mod", "download")
    code, printed = serve(project, CAMPAIGN, "go", "test", "-count=1", "./...")
    assert code == 0, printed
    code, printed = serve(project, CAMPAIGN, "go", "test", "-count=1", "-tags=bug", "./...")
    assert code == 1, printed
    assert 'ledger: ["paid order 1" "paid order 2" "paid order 3" "paid order 4"]' in printed
