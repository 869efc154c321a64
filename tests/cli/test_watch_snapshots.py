"""Live views match their snapshots at two sizes, with and without colours.

If you change the output on purpose, ``HARROW_WRITE_SNAPSHOTS=1`` rewrites them; read them
before you commit them.
"""

import os
import re
from pathlib import Path

import pytest

from harrow.cli.watch.canvas import Canvas
from harrow.cli.watch.run_screen import frame
from tests.cli.conftest import ROOT
from tests.played_runs import library_run, rendered, scene_at

SNAPSHOTS = Path(__file__).parent / "snapshots" / "watch"
MOMENTS = (
    ("loss-by-hw-truncation", (1_000, 25_024_300, 32_100_000, 40_015_000, 41_000_000)),
    ("standard", (4_600_000, 8_000_000, 23_000_000, 60_000_000)),
    ("controller-split-brain", (6_000_000, 12_000_000, 18_000_000)),
    ("quorum-lost", (500_000, 8_500_000, 30_000_000)),
    ("quorum-lost[combined]", (500_000, 8_500_000, 30_000_000)),
)
ESCAPE = re.compile(r"\x1b\[[0-9;]*m")


@pytest.mark.parametrize(("width", "height"), [(80, 24), (120, 40)])
@pytest.mark.parametrize(("campaign", "moments"), MOMENTS, ids=str)
def test_a_moment_of_a_run_matches_its_snapshot(
    campaign: str, moments: tuple[int, ...], width: int, height: int
) -> None:
    name, _, variant = campaign.removesuffix("]").partition("[")
    result, canvas = library_run(name, variant or None), Canvas(width=width, height=height)
    frames = [frame(scene_at(result, at_us), canvas, speed=", 5x") for at_us in moments]
    text = "\n".join(rendered(each, width=width) for each in frames)
    matches(f"{name}{variant and f'-{variant}'}-{width}.txt", text)


@pytest.mark.parametrize(("width", "height"), [(80, 24), (120, 40)])
def test_colours_only_repeat_words(width: int, height: int) -> None:
    scene = scene_at(library_run("loss-by-hw-truncation"), 32_100_000)
    shown = frame(scene, Canvas(width=width, height=height))
    coloured = rendered(shown, width=width, colours=True)
    plain = "".join(f"{line.rstrip()}\n" for line in ESCAPE.sub("", coloured).splitlines())
    assert plain == rendered(shown, width=width)
    matches(f"loss-by-hw-truncation-colours-{width}.txt", coloured)


def test_the_docs_show_the_real_view() -> None:
    page = (ROOT / "docs" / "how-to" / "watch.md").read_text(encoding="utf-8")
    shown = page.partition(" --watch\n")[2].partition("```")[0]
    scene = scene_at(library_run("loss-by-hw-truncation"), 32_040_100)
    assert shown == rendered(frame(scene, Canvas(width=80, height=24), speed=", 5x"), width=80)


def matches(name: str, text: str) -> None:
    snapshot = SNAPSHOTS / name
    if os.environ.get("HARROW_WRITE_SNAPSHOTS") == "1":
        snapshot.write_text(text, encoding="utf-8")
    assert text == snapshot.read_text(encoding="utf-8")
