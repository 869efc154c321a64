"""What docs/shrink.md shows is what one gets.

A seed of the swarm draws something else whenever swarm.yaml changes. Then the example needs another
one that fails: `python -m benchmarks.shrink zombie-keeps-its-isr`.
"""

import re
import shlex
from pathlib import Path

import pytest

from tests.cli.conftest import ROOT, Harrow

PAGE = (ROOT / "docs" / "shrink.md").read_text(encoding="utf-8")
COMMANDS = re.findall(r"^\$ harrow (.*?)(?: +#.*)?$", PAGE, re.MULTILINE)
(SMALL,) = re.findall(r"```yaml\n(.*?)```", PAGE, re.DOTALL)


@pytest.mark.parametrize("place", [0, 2])
def test_both_campaigns_fail(harrow: Harrow, folder: Path, place: int) -> None:
    (folder / "small.yaml").write_text(SMALL, encoding="utf-8")
    ended = harrow(*shlex.split(COMMANDS[place]), "--no-results")
    assert ended.returncode == 1, ended.stderr
    assert "despite acks=all" in " ".join(ended.stdout.split())


def test_the_one_becomes_the_other(harrow: Harrow, folder: Path) -> None:
    ended = harrow(*shlex.split(COMMANDS[1]))
    assert ended.returncode == 0, ended.stderr
    assert ended.stdout == SMALL
    assert (folder / "small.yaml").read_text(encoding="utf-8") == SMALL
