"""The pages of docs/ say what the code says."""

from pathlib import Path

import pytest

from docs.generate import TABLES, with_tables

DOCS = Path(__file__).parents[2] / "docs"


@pytest.mark.parametrize("page", sorted(DOCS.glob("*.md")), ids=lambda page: page.name)
def test_the_tables_of_a_page_are_those_of_the_code(page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    assert with_tables(text) == text, "make docs"


@pytest.mark.parametrize("name", TABLES)
def test_every_table_stands_somewhere(name: str) -> None:
    assert any(f"<!-- table: {name} -->" in page.read_text(encoding="utf-8") for page in DOCS.glob("*.md"))
