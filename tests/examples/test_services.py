"""The test of each example service fails on the service with a bug, and passes without the bug."""

import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.examples.toolchains import SERVICES, prepare, prepare_maven, serve
from tests.patience import PATIENCE_S
from tests.plain_environment import PYTHONPATH, ROOT, plain_environment

CAMPAIGN = SERVICES / "orders.yaml"
PAGE = (ROOT / "docs" / "how-to" / "example-services.md").read_text(encoding="utf-8")


@pytest.mark.parametrize("language", ["yaml", "python", "java", "go"])
def test_the_page_shows_the_files_as_they_are(language: str) -> None:
    files = [file for file in SERVICES.rglob("*.*") if file.suffix in {".yaml", ".py", ".java", ".go"}]
    texts = [file.read_text(encoding="utf-8") for file in files]
    shown = re.findall(rf"```{language}[^\n]*\n(.*?)```", PAGE, re.DOTALL)
    assert shown
    for block in shown:
        assert any(block in text for text in texts), block


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
    prepare_maven(project)
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
