"""The pictures of the pages show what harrow prints today, small and without anything from
elsewhere."""

import pytest

from docs.terminal_pictures import FOLDER, MEASURED, PAGE, PICTURES, WATCHED, pictures, said
from tests.cli.conftest import ROOT

BYTES_MAX = 60_000


def test_the_pictures_are_up_to_date() -> None:
    drawn = pictures()
    kept = {
        path.stem: path.read_text(encoding="utf-8")
        for path in FOLDER.glob("*.svg")
        if path.stem not in MEASURED
    }
    assert {name: said(svg) for name, svg in kept.items()} == {
        name: said(svg) for name, svg in drawn.items()
    }, "make docs"


@pytest.mark.parametrize("name", [*PICTURES, WATCHED, *MEASURED])
def test_a_picture_stands_by_itself(name: str) -> None:
    svg = (FOLDER / f"{name}.svg").read_text(encoding="utf-8")
    assert len(svg.encode()) <= BYTES_MAX
    assert svg.count("http") == 1, "but for the name of the format"
    assert "@font-face" not in svg


@pytest.mark.parametrize("name", [*PICTURES, WATCHED, *MEASURED])
def test_a_page_shows_the_picture(name: str) -> None:
    pages = [ROOT / "README.md", *(ROOT / "docs").rglob("*.md")]
    assert any(f"pictures/{name}.svg)" in page.read_text(encoding="utf-8") for page in pages)


def test_readme_shows_the_picture_of_the_page_which_is_small() -> None:
    assert f"pictures/{PAGE}.png)" in (ROOT / "README.md").read_text(encoding="utf-8")
    picture = (FOLDER / f"{PAGE}.png").read_bytes()
    assert picture.startswith(b"\x89PNG")
    assert len(picture) <= 250_000
