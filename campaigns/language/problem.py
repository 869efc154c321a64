"""Defines mistakes in a file, with their positions, and the errors that carry them."""

from collections.abc import Iterable

from harrow.cluster_model.lazy_dataclass import dataclass


@dataclass(frozen=True, slots=True)
class Problem:
    """One mistake. ``line`` and ``column`` count from 1; both are 0 if it has no position."""

    file: str
    line: int
    column: int
    message: str

    def __str__(self) -> str:
        """Return the problem as ``file:line:column: message``, which editors turn into a link."""
        if self.line == 0:
            return f"{self.file}: {self.message}"
        return f"{self.file}:{self.line}:{self.column}: {self.message}"


class FileError(Exception):
    """A file cannot be used. ``problems`` are its mistakes in order of position."""

    def __init__(self, problems: Iterable[Problem]) -> None:
        self.problems = tuple(problems)
        super().__init__(self.problems)

    def __str__(self) -> str:
        return "\n".join(str(problem) for problem in self.problems)


class CampaignError(FileError):
    """A campaign file cannot be used."""


class PartGivenError(CampaignError):
    """A file was given that a campaign can name, where a campaign file is needed."""


class ClusterFileGivenError(PartGivenError):
    """A cluster file was given where a campaign file is needed."""


class WorkloadFileGivenError(PartGivenError):
    """A workload file was given where a campaign file is needed."""


class UnsuitedError(CampaignError):
    """A correct campaign does not suit the release or control plane that an option names."""
