"""The files in news/ follow CONTRIBUTING.md, and the sections of the changelog are short."""

import re
import tomllib
from pathlib import Path
from typing import Final

from harrow.campaigns.version import RELEASE

ROOT: Final = Path(__file__).parents[2]
LONGEST: Final = 120
MOST_LINES: Final = 40


def mistakes(name: str, text: str) -> list[str]:
    """Return the mistakes in a news file."""
    wrong = []
    if not re.fullmatch(rf"(\+[a-z0-9-]+|\d+)\.({'|'.join(types())})\.md", name):
        wrong.append(f"{name}: the name should be like +parallel-runs.added.md ({', '.join(types())})")
    lines = text.splitlines()
    if len(lines) != 1 or not lines[0].strip():
        wrong.append(f"{name}: one line, not {len(lines)}")
    if any(len(line) > LONGEST for line in lines):
        wrong.append(f"{name}: more than {LONGEST} characters")
    if text.startswith(("-", "*", "#")):
        wrong.append(f"{name}: the changelog adds the list mark")
    if re.search(r"\bdigests?\b", text, re.IGNORECASE) and text.strip() != sentence_about_digests():
        wrong.append(f"{name}: say {sentence_about_digests()!r}, which the changelog prints once")
    return wrong


def types() -> list[str]:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    return [kind["directory"] for kind in project["tool"]["towncrier"]["type"]]


def sentence_about_digests() -> str:
    page = (ROOT / "news" / "README.md").read_text(encoding="utf-8")
    sentences = re.findall(r"^```text\n(.*)\n```$", page, re.MULTILINE)
    assert len(sentences) == 1
    return str(sentences[0])


def test_every_news_file_is_one_short_line_with_a_type_that_towncrier_knows() -> None:
    files = [path for path in (ROOT / "news").iterdir() if path.name != "README.md"]
    assert [wrong for path in files for wrong in mistakes(path.name, path.read_text(encoding="utf-8"))] == []


def test_a_malformed_news_file_is_reported() -> None:
    assert mistakes("+runs.added.md", "`harrow run -j N` runs N campaigns at once.\n") == []
    assert mistakes("7.fixed.md", sentence_about_digests()) == []
    assert len(mistakes("runs.added.md", "A line.")) == 1
    assert len(mistakes("+runs.removed.md", "A line.")) == 1
    assert len(mistakes("+runs.added.md", "A line.\nAnother.")) == 1
    assert len(mistakes("+runs.added.md", "")) == 1
    assert len(mistakes("+runs.added.md", "x" * (LONGEST + 1))) == 1
    assert len(mistakes("+runs.added.md", "- A line.")) == 1
    assert len(mistakes("+runs.changed.md", "Digests of runs with groups differ.")) == 1


def test_each_section_of_the_changelog_has_at_most_40_short_entries() -> None:
    text = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    sections = re.findall(r"^## \[(.*?)\].*?\n(.*?)(?=^## |\Z)", text, re.MULTILINE | re.DOTALL)
    assert sections[0][0] == RELEASE
    for release, section in sections:
        entries = [line for line in section.splitlines() if line and not line.startswith("#")]
        assert len(entries) <= MOST_LINES, release
        assert [line for line in entries if not line.startswith("- ") or len(line) > LONGEST] == []
