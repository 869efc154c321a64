"""README.md is short, and its statements about releases, findings and limits are true."""

import re
from typing import Final

from harrow.cluster_model.release.profiles import RELEASES
from tests.cli.conftest import ROOT, Harrow

PAGE: Final = (ROOT / "README.md").read_text(encoding="utf-8")
WORDS_MAX: Final = 900
NUMBERS: Final = ("no", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten")


def test_readme_has_a_limited_number_of_words() -> None:
    prose = re.sub(r"^```.*?^```$", "", PAGE, flags=re.DOTALL | re.MULTILINE)
    assert len(prose.split()) <= WORDS_MAX


def test_readme_names_the_oldest_and_the_newest_release() -> None:
    oldest, *_, newest = RELEASES
    assert f"Kafka {oldest} to {newest}" in PAGE


def test_readme_counts_the_findings() -> None:
    pages = [
        path for path in (ROOT / "docs" / "evidence" / "findings").glob("*.md") if path.name != "README.md"
    ]
    assert f"It has found {NUMBERS[len(pages)]} that had no ticket" in PAGE


def test_the_limits_that_readme_names_are_real(harrow: Harrow) -> None:
    section = PAGE.partition("## What it does not do\n")[2].partition("\n## ")[0]
    names = re.findall(r"\(`([\w.]+)`\)", section)
    assert len(names) == 7
    assert [name for name in names if harrow("explain", name).returncode != 2] == []
