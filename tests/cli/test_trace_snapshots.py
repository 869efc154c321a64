"""Stories of losses and divergences match their snapshots at several widths and piped.

If you change the output on purpose, ``HARROW_WRITE_SNAPSHOTS=1`` rewrites them; read them
before you commit them.
"""

import os
from pathlib import Path

import pytest

from harrow.cli.commands.trace import session
from harrow.cli.requests.results import TraceRequest
from tests.written_runs import written_run

SNAPSHOTS = Path(__file__).parent / "snapshots" / "trace"
PIPED = "piped"

LOSSES = (
    ("loss-by-hw-truncation", "base", "m1"),
    ("divergence-by-hw", "base", "m2"),
    ("acks-1-leader-crash", "base", "m1"),
    ("unclean-election", "base", "m1"),
    ("power-loss", "base", "m0"),
    ("epochs-do-not-save-a-double-failure", "base", "m1"),
    ("controller-split-brain", "no-fencing", "m2"),
)


def story_text(results: Path, monkeypatch: pytest.MonkeyPatch, run: Path, width: str, **options: str) -> str:
    for name in ("NO_COLOR", "FORCE_COLOR", "TTY_COMPATIBLE", "COLUMNS"):
        monkeypatch.delenv(name, raising=False)
    if width != PIPED:
        monkeypatch.setenv("COLUMNS", width)
    output = results / "story.txt"
    request = TraceRequest(
        run=str(run),
        results=results,
        record=options.get("record"),
        around=options.get("around"),
        output=output,
        quiet=True,
    )
    assert session(request) == 0
    return output.read_text(encoding="utf-8")


@pytest.mark.parametrize("width", ["80", "120", "200", PIPED])
@pytest.mark.parametrize(("campaign", "variant", "lost"), LOSSES, ids=str)
def test_a_story_matches_its_snapshot(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, campaign: str, variant: str, lost: str, width: str
) -> None:
    run = written_run(tmp_path, campaign, variant)
    texts = [
        story_text(tmp_path, monkeypatch, run, width, around="lost-write"),
        story_text(tmp_path, monkeypatch, run, width, record=lost),
    ]
    text = "\n".join(texts)
    assert text.isprintable() or "\x1b" not in text
    if width != PIPED:
        assert max(map(len, body(text))) <= int(width)
    assert not [line for line in text.splitlines() if line != line.rstrip()]
    snapshot = SNAPSHOTS / f"{campaign}-{width}.txt"
    if os.environ.get("HARROW_WRITE_SNAPSHOTS") == "1":
        snapshot.write_text(text, encoding="utf-8")
    assert text == snapshot.read_text(encoding="utf-8")


def body(text: str) -> list[str]:
    """Return the lines without titles, which are not wrapped."""
    return [line for line in text.splitlines() if not line.startswith("  finding ")]


def test_the_story_shows_every_cause_of_the_loss(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The story names the ack, the truncation and the election behind the loss."""
    run = written_run(tmp_path, "loss-by-hw-truncation")
    lines = story_text(tmp_path, monkeypatch, run, PIPED, around="lost-write").splitlines()
    marked = [line.split("▶", 1)[1].split(maxsplit=2) for line in lines if "▶" in line]
    marked_links = [(f"{kind} {number}", text) for kind, number, text in marked]
    assert ("broker 0", "acked m1: all of the ISR [0, 1] had it") in marked_links
    assert ("broker 1", "truncated to its own high watermark, 1, removing m1") in marked_links
    assert ("broker 1", "was elected from the ISR [0, 1], without m1 (epoch 1)") in marked_links
    assert any("KIP-101" in line for line in lines)
    record = story_text(tmp_path, monkeypatch, run, PIPED, record="m1")
    assert "at the end: in no log" in record
    assert "never below its HW, truncated (high watermark) at 32.040s" in record
    assert "judged: lost-write, violated, despite acks=all (--around 1)" in record


def test_a_record_that_only_a_follower_has_is_marked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run = written_run(tmp_path, "divergence-by-hw", "unclean-election")
    story = story_text(tmp_path, monkeypatch, run, PIPED, record="m2")
    assert (
        "in the log of broker 0, but not of its leader, broker 1, which has m3 at offset 1 instead" in story
    )
