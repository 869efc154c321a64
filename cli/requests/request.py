"""The options of most commands: what to print, and to which file."""

from dataclasses import field
from pathlib import Path

from harrow.campaigns.language.spelling import CLUSTER_OPTION
from harrow.cli import options
from harrow.cluster_model.lazy_dataclass import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class CommandRequest:
    """A parsed command line. Its fields are the defaults of options that the command lacks."""

    output_format: str = field(init=False, default="table")
    output: Path | None = field(init=False, default=None)
    junit: Path | None = field(init=False, default=None)
    quiet: bool = field(init=False, default=False)
    verbose: bool = field(init=False, default=False)
    no_color: bool = field(init=False, default=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class OnCluster(CommandRequest):
    """The request of a command whose campaigns can run on a cluster file (``--cluster``).

    In a class with several bases, this one comes last, so that the fields of the others win.
    """

    overrides: list[str] | None = field(init=False, default=None)
    cluster: Path | None = field(init=False, default=None)

    def __post_init__(self) -> None:
        """Put the cluster file among the options that the language reads."""
        if self.cluster is not None:
            object.__setattr__(
                self, "overrides", [f"{CLUSTER_OPTION}={self.cluster}", *(self.overrides or ())]
            )


@dataclass(frozen=True, slots=True, kw_only=True)
class WrittenRequest(CommandRequest):
    """The request of a command whose output can be written to a file."""

    output: options.Output = None
    quiet: options.Quiet = False
    no_color: options.NoColor = False
