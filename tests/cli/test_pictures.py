"""The pictures of the pages show the current output, are small, and load nothing."""

import pytest

from docs.terminal_pictures import FOLDER, MEASUREMENTS, PAGE, PICTURES, WATCH, pictures, texts
from tests.cli.conftest import ROOT

BYTES_MAX = 60_000


def test_the_pictures_are_up_to_date() -> None:
    current = pictures()
    stored = {
        path.stem: path.read_text(encoding="utf-8")
        for path in FOLDER.glob("*.svg")
        if path.stem not in MEASUREMENTS
    }
    assert {name: texts(svg) for name, svg in stored.items()} == {
        name: texts(svg) for name, svg in current.items()
    }, "make docs"


@pytest.mark.parametrize("name", [*PICTURES, WATCH, *MEASUREMENTS])
def test_a_picture_is_small_and_loads_nothing(name: str) -> None:
    svg = (FOLDER / f"{name}.svg").read_text(encoding="utf-8")
    assert len(svg.encode()) <= BYTES_MAX
    assert svg.count("http") == 1, "except the name of the format"
    assert "@font-face" not in svg


@pytest.mark.parametrize("name", [*PICTURES, WATCH, *MEASUREMENTS])
def test_every_picture_is_shown_on_a_page(name: str) -> None:
    pages = [ROOT / "README.md", *(ROOT / "docs").rglob("*.md")]
    assert any(f"pictures/{name}.svg)" in page.read_text(encoding="utf-8") for page in pages)


def test_readme_shows_a_small_picture_of_the_page() -> None:
    assert f"pictures/{PAGE}.png)" in (ROOT / "README.md").read_text(encoding="utf-8")
    picture = (FOLDER / f"{PAGE}.png").read_bytes()
    assert picture.startswith(b"\x89PNG")
    assert len(picture) <= 250_000
