"""Suites of test cases, which JUnit files and GitHub annotations are made of.

A suite is a campaign, or one of its variants; a case is a rule that judged it, or what the campaign
expects by itself.
"""

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from harrow.campaigns.language.problem import Problem
from harrow.campaigns.language.spelling import printable

EXPECTATIONS: Final = "expectations"
"""The case of a suite that says whether all went as the campaign expects."""

REPRODUCE: Final = "reproduce"
"""The property with the command that runs it again."""

MS_PER_S: Final = 1_000


class Status(StrEnum):
    """How a case came out; ``SKIPPED`` is undecided."""

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
    """A test case. ``message`` is one line, ``details`` are lines; ``line`` and ``column`` 0 are unknown.

    ``seeds`` is how many seeds came out so, where it is about several. All texts are printable.
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
    """The cases of one campaign or variant; ``file`` is empty where none is known.

    ``summary`` says in short what happened, ``reproduce`` is the command that does it again. Where it is
    about several seeds, ``total`` says how many of them did not pass: no rule alone tells that. Cases that are ``apart``
    have each a place of its own in the file, and nothing to do with one another.
    """

    name: str
    cases: tuple[Case, ...]
    file: str = ""
    summary: str = ""
    total: str = ""
    reproduce: str = ""
    properties: tuple[tuple[str, str], ...] = ()
    apart: bool = False

    def __post_init__(self) -> None:
        _escape(self, "name", "file", "summary", "total", "reproduce")

    @property
    def status(self) -> Status:
        """The worst of its cases; a suite without any is undecided.

        Where nothing failed, it is what the expectations say: a campaign may come out as it expects though
        one of its rules is undecided.
        """
        status = worst_status(case.status for case in self.cases)
        expectations = next((case.status for case in self.cases if case.name == EXPECTATIONS), status)
        return expectations if status is Status.SKIPPED else status

    def count(self, status: Status) -> int:
        """Return how many of its cases came out so."""
        return sum(case.status is status for case in self.cases)

    def again(self) -> str:
        """Return the command that shows the first thing that the suite reports."""
        wrong = [] if self.total else self.not_passed()
        return dict(wrong[0].properties).get(REPRODUCE, self.reproduce) if wrong else self.reproduce

    def not_passed(self) -> list[Case]:
        """Return the cases that did not pass, the worst first, and of those what most seeds met."""
        cases = [case for case in self.cases if case.status is not Status.PASSED]
        return sorted(cases, key=lambda case: (_WORST_FIRST.index(case.status), -case.seeds))


def _escape(item: Case | Suite, *names: str) -> None:
    """Make texts of data printable, and one line each, whatever reports make of them."""
    for name in names:
        object.__setattr__(item, name, printable(getattr(item, name)))
    properties = tuple((name, printable(value)) for name, value in item.properties)
    object.__setattr__(item, "properties", properties)


def worst_status(statuses: Iterable[Status]) -> Status:
    """Return the worst of several; without any it is undecided."""
    return min(statuses, key=_WORST_FIRST.index, default=Status.SKIPPED)


def note_suite(name: str, message: str, status: Status = Status.SKIPPED) -> Suite:
    """Return a suite about a whole report, such as that it is not complete."""
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
            summary=found[0].message,
            apart=True,
            cases=tuple(
                Case(
                    name=f"line {problem.line}, column {problem.column}" if problem.line else "file",
                    status=Status.ERROR,
                    message=problem.message,
                    details=(str(problem),),
                    line=problem.line,
                    column=problem.column,
                )
                for problem in found
            ),
        )
        for file, found in by_file.items()
    ]


def in_total(suites: Sequence[Suite], noun: str) -> str:
    """Return how many suites came out how, as in ``3 entries: 2 as expected, 1 failed``."""
    parts = by_outcome(suite.status for suite in suites)
    nouns = f"{noun[:-1]}ies" if noun.endswith("y") else f"{noun}s"
    return f"{len(suites)} {noun if len(suites) == 1 else nouns}: {parts}"


def by_outcome(statuses: Iterable[Status]) -> str:
    """Return how often what came out, as in ``2 as expected, 1 failed``."""
    counts = Counter(statuses)
    parts = [f"{counts[status]} {_OUTCOMES[status]}" for status in reversed(_WORST_FIRST) if counts[status]]
    return ", ".join(parts) or "nothing ran"
