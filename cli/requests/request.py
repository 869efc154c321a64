"""The options of most commands: what to print, and where to."""

from dataclasses import field
from pathlib import Path

from harrow.cli import options
from harrow.cluster_model.lazy_dataclass import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class CommandRequest:
    """The values of options that a command does not have."""

    output_format: str = field(init=False, default="table")
    output: Path | None = field(init=False, default=None)
    junit: Path | None = field(init=False, default=None)
    quiet: bool = field(init=False, default=False)
    verbose: bool = field(init=False, default=False)
    no_color: bool = field(init=False, default=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class WrittenRequest(CommandRequest):
    """The request of a command whose output may go to a file."""

    output: options.Output = None
    quiet: options.Quiet = False
    no_color: options.NoColor = False
