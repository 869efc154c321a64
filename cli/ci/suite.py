"""Test suites and test cases, from which harrow writes JUnit files and GitHub annotations.

A suite is a campaign or a variant. A case is a rule that judged its runs, or the expectations of
the campaign.
"""

from collections import Counter
from collections.abc import Iterable, Sequence
from enum import StrEnum
from typing import Final

from harrow.campaigns.language.problem import Problem
from harrow.campaigns.language.spelling import printable
from harrow.cluster_model.lazy_dataclass import dataclass

EXPECTATIONS: Final = "expectations"
"""The case that passes if the run meets the expectations of the campaign."""

REPRODUCE: Final = "reproduce"
"""The property with the command that runs the case again."""

MS_PER_S: Final = 1_000


class Status(StrEnum):
    """The status of a case. ``SKIPPED`` stands for an undecided case."""

    PASSED = "passed"
    FAILED = "failed"
    ERROR = "error"
    SKIPPED = "skipped"


_WORST_FIRST: Final = (Status.ERROR, Status.FAILED, Status.SKIPPED, Status.PASSED)
_OUTCOMES: Final = {
    Status.PASSED: "as expected",
    Status.FAILED: "failed",
    Status.ERROR: "cannot be run",
    Status.SKIPPED: "undecided",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """A test case. ``message`` is one line of text, and ``details`` are several.

    ``line`` and ``column`` are a place in the suite's file, 0 if it is unknown.

    If several seeds ran, ``seeds`` is the number of seeds with this status. All texts are
    printable.
    """

    name: str
    status: Status = Status.PASSED
    message: str = ""
    details: tuple[str, ...] = ()
    line: int = 0
    column: int = 0
    time_s: float = 0.0
    seeds: int = 0
    properties: tuple[tuple[str, str], ...] = ()

    def __post_init__(self) -> None:
        _escape(self, "name", "message")
        object.__setattr__(self, "details", tuple(map(printable, self.details)))


@dataclass(frozen=True, slots=True, kw_only=True)
class Suite:
    """The cases of one campaign or variant. ``file`` may be empty.

    ``summary`` says briefly what happened, and ``reproduce`` is the command that repeats it. If
    several seeds ran, ``total`` has the number of seeds that did not pass, which no single rule
    shows. The cases of an ``independent`` suite, such as mistakes in a file, are unrelated, and
    each has its own line.
    """

    name: str
    cases: tuple[Case, ...]
    file: str = ""
    summary: str = ""
    total: str = ""
    reproduce: str = ""
    properties: tuple[tuple[str, str], ...] = ()
    independent: bool = False

    def __post_init__(self) -> None:
        _escape(self, "name", "file", "summary", "total", "reproduce")

    @property
    def status(self) -> Status:
        """The worst status of the cases; undecided without cases.

        If nothing failed, the case for the expectations decides, because a run may meet its
        expectations although a rule is undecided.
        """
        status = worst_status(case.status for case in self.cases)
        expectations = next((case.status for case in self.cases if case.name == EXPECTATIONS), status)
        return expectations if status is Status.SKIPPED else status

    def count(self, status: Status) -> int:
        return sum(case.status is status for case in self.cases)

    def rerun_command(self) -> str:
        """Return the command that reproduces the first failure."""
        failures = [] if self.total else self.not_passed()
        return dict(failures[0].properties).get(REPRODUCE, self.reproduce) if failures else self.reproduce

    def not_passed(self) -> list[Case]:
        """Return the cases that did not pass, by status from the worst, then by number of seeds."""
        cases = [case for case in self.cases if case.status is not Status.PASSED]
        return sorted(cases, key=lambda case: (_WORST_FIRST.index(case.status), -case.seeds))


def _escape(item: Case | Suite, *names: str) -> None:
    """Escape the texts, so that each is printable and on one line in every kind of report."""
    for name in names:
        object.__setattr__(item, name, printable(getattr(item, name)))
    properties = tuple((name, printable(value)) for name, value in item.properties)
    object.__setattr__(item, "properties", properties)


def worst_status(statuses: Iterable[Status]) -> Status:
    """Return the worst of several statuses. Without any, the status is undecided."""
    return min(statuses, key=_WORST_FIRST.index, default=Status.SKIPPED)


def note_suite(name: str, message: str, status: Status = Status.SKIPPED) -> Suite:
    """Return a suite with a message about the whole report, for example that it is incomplete."""
    return Suite(name="harrow", summary=message, cases=(Case(name=name, status=status, message=message),))


def problem_suites(problems: Iterable[Problem]) -> list[Suite]:
    """Return a suite for each file that cannot be used, with a case for each mistake."""
    by_file: dict[str, list[Problem]] = {}
    for problem in problems:
        by_file.setdefault(problem.file, []).append(problem)
    return [
        Suite(
            name=file,
            file=file,
            summary=mistakes[0].message,
            independent=True,
            cases=tuple(
                Case(
                    name=f"line {problem.line}, column {problem.column}" if problem.line else "file",
                    status=Status.ERROR,
                    message=problem.message,
                    details=(str(problem),),
                    line=problem.line,
                    column=problem.column,
                )
                for problem in mistakes
            ),
        )
        for file, mistakes in by_file.items()
    ]


def in_total(suites: Sequence[Suite], noun: str) -> str:
    """Return the number of suites by outcome, as in ``3 entries: 2 as expected, 1 failed``."""
    parts = by_outcome(suite.status for suite in suites)
    nouns = f"{noun[:-1]}ies" if noun.endswith("y") else f"{noun}s"
    return f"{len(suites)} {noun if len(suites) == 1 else nouns}: {parts}"


def by_outcome(statuses: Iterable[Status]) -> str:
    """Return the count of each outcome, as in ``2 as expected, 1 failed``."""
    counts = Counter(statuses)
    parts = [f"{counts[status]} {_OUTCOMES[status]}" for status in reversed(_WORST_FIRST) if counts[status]]
    return ", ".join(parts) or "nothing ran"
