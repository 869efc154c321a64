"""The pages of docs/ agree with the code."""

import re
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from docs.generate import TABLES, with_tables

DOCS = Path(__file__).parents[1] / "docs"
PAGES = (
    *(DOCS.parent / f"{name}.md" for name in ("README", "CHANGELOG", "CONTRIBUTING", "SECURITY")),
    DOCS.parent / "results" / "README.md",
    *sorted(DOCS.rglob("*.md")),
)
PROSE = [
    page
    for page in sorted(DOCS.rglob("*.md"))
    if page.relative_to(DOCS).parts[0] not in {"reference", "evidence"}
]
"""Pages to read from beginning to end, unlike tables in reference/ and records in evidence/."""
WORDS_MAX = 1_500


@pytest.mark.parametrize("page", sorted(DOCS.rglob("*.md")), ids=lambda page: str(page.relative_to(DOCS)))
def test_the_tables_of_a_page_agree_with_the_code(page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    assert with_tables(text) == text, "make docs"


@pytest.mark.parametrize("name", TABLES)
def test_every_table_is_on_a_page(name: str) -> None:
    assert any(f"<!-- table: {name} -->" in page.read_text(encoding="utf-8") for page in DOCS.rglob("*.md"))


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(DOCS.parent)))
def test_links_have_targets(page: Path) -> None:
    broken = []
    for link in re.findall(r"\]\(([^)\s]+)\)", without_code(page)):
        name, _, anchor = link.partition("#")
        if "://" in name:
            continue
        target = page.parent / name if name else page
        if not target.exists() or (anchor and anchor not in anchors(target)):
            broken.append(link)
    assert broken == []


def test_the_index_names_every_page() -> None:
    listed = set(re.findall(r"\]\(([\w/.-]+\.md)\)", (DOCS / "README.md").read_text(encoding="utf-8")))
    pages = {str(page.relative_to(DOCS)) for page in DOCS.rglob("*.md") if page.parent.name != "findings"}
    assert pages - listed == {"README.md"}


@pytest.mark.parametrize("page", PROSE, ids=lambda page: str(page.relative_to(DOCS)))
def test_a_page_can_be_read_in_five_minutes(page: Path) -> None:
    assert len(page.read_text(encoding="utf-8").split()) < WORDS_MAX


def test_the_menu_of_the_site_names_every_page() -> None:
    menu = tomllib.loads((DOCS.parent / "zensical.toml").read_text(encoding="utf-8"))["project"]["nav"]
    assert sorted(pages_of(menu)) == sorted(str(page.relative_to(DOCS)) for page in DOCS.rglob("*.md"))


def pages_of(menu: str | list[Any] | dict[str, Any]) -> Iterator[str]:
    if isinstance(menu, str):
        yield menu
    else:
        for entry in menu.values() if isinstance(menu, dict) else menu:
            yield from pages_of(entry)


def test_the_index_of_findings_names_every_finding() -> None:
    findings = DOCS / "evidence" / "findings"
    listed = re.findall(
        r"^\| \[[\w-]+\]\(([\w.-]+)\)", (findings / "README.md").read_text(encoding="utf-8"), re.MULTILINE
    )
    assert sorted(listed) == sorted(page.name for page in findings.glob("*.md") if page.name != "README.md")


def without_code(page: Path) -> str:
    return re.sub(
        r"^```.*?^```$|`[^`\n]*`", "", page.read_text(encoding="utf-8"), flags=re.DOTALL | re.MULTILINE
    )


def anchors(page: Path) -> list[str]:
    """Return the anchors that GitHub gives to the headings of a page."""
    text = re.sub(r"^```.*?^```$", "", page.read_text(encoding="utf-8"), flags=re.DOTALL | re.MULTILINE)
    headings = re.findall(r"^#+ +(.*)$", text, re.MULTILINE)
    return [re.sub(r"[^\w -]", "", heading.lower()).strip().replace(" ", "-") for heading in headings]
