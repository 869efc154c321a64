"""A folder in shared storage belongs to one process at a time, until that process ends."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from harrow.campaigns.storage import claim
from harrow.campaigns.storage.claim import CLAIMS, Claim, ClaimError
from harrow.campaigns.storage.location import Location, location
from tests.plain_environment import PYTHONPATH, plain_environment


@pytest.fixture
def folder(tmp_path: Path) -> Location:
    """Return a folder of a local disk, because claims need only what all locations have."""
    return location(tmp_path)


def acquired(folder: Location) -> tuple[Claim, list[str]]:
    """Return a new claim, and the messages of its wait."""
    messages: list[str] = []
    mine = Claim(folder)
    mine.acquire(messages.append)
    return mine, messages


def test_a_claim_whose_process_lives_is_respected(folder: Location, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(claim, "_BEAT_S", 0.1)
    mine, messages = acquired(folder)
    other = Claim(folder)
    with pytest.raises(ClaimError, match=r"process \d+ on .+ uses this folder now"):
        other.acquire(messages.append)
    other.release()
    assert "checking whether process" in messages[0]
    mine.check()
    mine.release()
    again, messages = acquired(folder)
    assert messages == []
    again.release()
    assert folder.names() == []


def test_a_process_that_ended_on_this_machine_leaves_a_claim_that_nobody_waits_for(
    folder: Location, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(claim, "_LOST_AFTER_S", float("inf"))
    script = (
        "import os, sys; from harrow.campaigns.storage.claim import Claim; "
        "from harrow.campaigns.storage.location import location; "
        "Claim(location(sys.argv[1])).acquire(print); os._exit(0)"
    )
    environment = {**plain_environment(), "PYTHONPATH": PYTHONPATH}
    subprocess.run([sys.executable, "-c", script, str(folder)], env=environment, check=True)
    assert folder.names()
    mine, messages = acquired(folder)
    assert messages == []
    mine.release()
    assert folder.names() == []


@pytest.mark.parametrize("text", [json.dumps({"machine": "elsewhere", "pid": 1}), "{", ""])
def test_a_silent_claim_is_void_and_its_owner_notices(
    folder: Location, monkeypatch: pytest.MonkeyPatch, text: str
) -> None:
    monkeypatch.setattr(claim, "_LOST_AFTER_S", 0.0)
    frozen = Claim(folder)
    (folder / CLAIMS / frozen.name).write_text(text)
    frozen.check()
    mine, _ = acquired(folder)
    with pytest.raises(ClaimError, match="another harrow took over"):
        frozen.check()
    assert frozen.is_lost()
    mine.check()
    mine.release()
