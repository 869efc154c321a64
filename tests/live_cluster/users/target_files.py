"""A user's cluster whose commands are shell lines that record their arguments."""

from pathlib import Path
from typing import Final

NOTES: Final = "notes"
TEXT: Final = """\
bootstrap: ["127.0.0.1:1"]
commands:
  kill: echo kill {broker} >>notes
  stop: echo stop {broker} >>notes
  start: echo start {broker} >>notes
  pause: echo pause {broker} >>notes
  resume: echo resume {broker} >>notes
  cut: [sh, -c, 'echo cut "$1" "$2" >>notes', sh, "{peer}", "{broker}"]
  restore: [sh, -c, 'echo restore "$1" "$2" >>notes', sh, "{peer}", "{broker}"]
timeout: 30s
"""


def write_target_file(folder: Path, text: str = TEXT) -> Path:
    file = folder / "cluster.yaml"
    file.write_text(text, encoding="utf-8")
    return file


def notes(folder: Path) -> list[str]:
    """Return the recorded commands in order."""
    file = folder / NOTES
    return file.read_text(encoding="utf-8").splitlines() if file.exists() else []
