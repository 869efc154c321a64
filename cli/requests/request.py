"""What most commands can be asked: how to print, and where to."""

from dataclasses import dataclass, field
from pathlib import Path

from harrow.cli import options


@dataclass(frozen=True, slots=True, kw_only=True)
class CommandRequest:
    """How to print. A command without one of these options has the value that stands here."""

    output_format: str = field(init=False, default="table")
    output: Path | None = field(init=False, default=None)
    quiet: bool = field(init=False, default=False)
    verbose: bool = field(init=False, default=False)
    no_color: bool = field(init=False, default=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class WrittenRequest(CommandRequest):
    """What a command prints can go to a file instead, and be less."""

    output: options.Output = None
    quiet: options.Quiet = False
    no_color: options.NoColor = False
