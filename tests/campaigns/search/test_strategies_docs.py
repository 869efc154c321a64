"""The examples in docs/how-to/hypothesis.md pass, and harrow works without Hypothesis."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.plain_environment import PYTHONPATH

ROOT = Path(__file__).parents[3]
EXAMPLES = re.findall(
    r"```python\n(.*?)```",
    (ROOT / "docs" / "how-to" / "hypothesis.md").read_text(encoding="utf-8"),
    re.DOTALL,
)

WITHOUT = f"""
import sys
sys.path.insert(0, {str(ROOT / "src")!r})
sys.modules["hypothesis"] = None
"""


@pytest.mark.parametrize("number", range(len(EXAMPLES)))
def test_an_example_passes(number: int, tmp_path: Path) -> None:
    file = tmp_path / f"test_example_{number}.py"
    file.write_text(EXAMPLES[number], encoding="utf-8")
    ended = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", file.name],
        cwd=tmp_path,
        env={"PYTHONPATH": PYTHONPATH, "PATH": ""},
        capture_output=True,
        text=True,
        check=False,
    )
    assert ended.returncode == 0, ended.stdout + ended.stderr
    assert "1 passed" in ended.stdout


def test_without_hypothesis_the_strategies_report_in_one_line_what_to_install() -> None:
    ended = _python(f"{WITHOUT}\nimport harrow.campaigns.search.strategies")
    assert ended.stderr.splitlines()[-1] == (
        "ImportError: harrow.campaigns.search.strategies needs Hypothesis: pip install 'kafka-harrow[hypothesis]'"
    )


def test_a_run_without_strategies_needs_no_hypothesis() -> None:
    arguments = ["harrow", "run", "ack-lost", "--no-results"]
    ended = _python(f"{WITHOUT}\nsys.argv = {arguments!r}\nfrom harrow.cli.main import main\nmain()")
    assert ended.returncode == 0, ended.stderr


def _python(script: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False)
