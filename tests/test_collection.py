"""Tests get the fixtures of their folder, whatever the order of the files on the command line."""

import subprocess
import sys
from pathlib import Path

from tests.patience import PATIENCE_S

ROOT = Path(__file__).parents[1]


def test_files_in_any_order_get_the_fixtures_of_their_folder() -> None:
    first, other, last = "tests/cli/test_text.py", "tests/test_imports.py", "tests/cli/test_readme.py"
    shown = subprocess.run(
        [sys.executable, "-m", "pytest", "-n", "0", "--fixtures-per-test", first, other, last],
        cwd=ROOT,
        capture_output=True,
        text=True,
        encoding="utf-8",
        timeout=PATIENCE_S,
        check=True,
    )
    assert "harrow -- tests/cli/conftest.py" in shown.stdout
