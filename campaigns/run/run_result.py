"""What a run leaves behind: everything that reports, files and comparisons are made of."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Final

from harrow.campaigns.clients.clients import CORE_READER, READER
from harrow.campaigns.language.plan import Plan
from harrow.checks.evidence import Evidence
from harrow.checks.finding import Verdict
from harrow.checks.index import Index
from harrow.checks.service.levels import ServiceLevels, service_levels
from harrow.faults.action import Action
from harrow.faults.fault import Fault

_READERS: Final = frozenset({READER, CORE_READER})


@dataclass(frozen=True, slots=True, kw_only=True)
class InjectedFault:
    """A fault that struck.

    ``concrete`` is the same fault with nothing left to draw or to look up: the broker that it
    struck, the time that it lasted. ``named`` is the fault that says so of a broker which this
    one looks for by itself. ``given`` is the fault as the campaign has it.
    """

    at_us: int
    fault: str
    details: tuple[tuple[str, Any], ...]
    concrete: Fault | None = None
    named: Fault | None = None
    given: Fault | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class MissedExpectation:
    """An expectation of the campaign that was not met; ``line`` is 0 for the one at the end.

    ``kind`` is what it has in common with others of its kind, where the message says more than that.
    """

    line: int
    message: str
    kind: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class HurriedStep:
    """A step of the script that was taken although it still waited for its condition (`limits.step`).

    ``number`` counts from 1, ``missing`` says what the step waited for, in words.
    """

    number: int
    line: int
    waited_us: int
    missing: str


@dataclass(frozen=True, slots=True, kw_only=True)
class RealTarget:
    """Where a run took place that was not on the model.

    ``metadata`` is where brokers keep theirs (``zookeeper`` or ``kraft``), ``began`` when it began, in UTC: no other run is the same.
    """

    kind: str
    release: str
    metadata: str
    began: str

    def name(self) -> str:
        """Return the target as ``--target`` has it."""
        return f"{self.kind}:{self.release}-{self.metadata}"


@dataclass(frozen=True, slots=True, kw_only=True)
class ReleaseDifference:
    """What keeps a run from going as its campaign says of another release: one behaviour, tried by setting it back.

    With ``value``, as the other release has it, ``switch`` lets the run go as the campaign says, or at least lets a ``step`` of
    the script come about that waited in vain. ``since`` is the first release whose value does not, None where the
    other release is the later one.
    """

    switch: str
    value: Any
    since: str | None
    step: int | None


@dataclass(frozen=True, kw_only=True)
class RunResult:
    """One run of a plan with one seed.

    ``plan`` is what was run. Where the campaign left something open, ``given`` is the plan before
    the seed decided, and ``drawn`` what it decided, in words. ``expected`` says whether the
    campaign's own expectations were met; a campaign that has none expects that no promise is
    broken. ``probes_missed`` are the probes that the campaign requires and this run did not
    reach; what follows from that, several runs decide together (`harrow.campaigns.run.required_probes`).
    ``unseen`` is what a script expected in passing and a target that is looked at now and then did not show.
    ``operated`` is what a script did beside sends and faults, and when. ``given_up`` says why a run
    was ended that would have gone on and on. ``hurried`` are the steps of the script that were taken without their condition,
    ``waited_us`` is the longest time for which a step waited for its own, and ``steps_taken`` counts the steps. ``levels`` are the
    service levels in numbers, where they were measured with the run. ``difference`` is why a run goes otherwise than its campaign
    says of another release. ``target`` is None for a run on the model; of another its time in microseconds is no virtual time.
    """

    plan: Plan
    seed: int
    verdict: Verdict
    expected: bool
    missed: tuple[MissedExpectation, ...]
    evidence: Evidence
    faults: tuple[InjectedFault, ...]
    probes: Mapping[str, int]
    probes_missed: tuple[str, ...] = ()
    trace_digest: str
    events: int
    simulated_us: int
    wall_ms: int = field(default=0)
    given: Plan | None = None
    drawn: tuple[tuple[str, str], ...] = ()
    operated: tuple[tuple[int, Action], ...] = ()
    unseen: tuple[MissedExpectation, ...] = ()
    given_up: str | None = None
    hurried: tuple[HurriedStep, ...] = ()
    waited_us: int = 0
    is_script_finished: bool = True
    steps_taken: int = 0
    target: RealTarget | None = None
    levels: ServiceLevels | None = field(default=None, compare=False)
    difference: ReleaseDifference | None = field(default=None, compare=False)

    @cached_property
    def service(self) -> ServiceLevels:
        """How well the clients of the workload were served, and what outages came from.

        To find out takes a tenth of the time of a run.
        """
        return service_levels(Index(self.evidence), _READERS)

    @property
    def measured(self) -> ServiceLevels:
        """The numbers of ``service``."""
        return self.service if self.levels is None else self.levels

    def plan_digest(self) -> str:
        """Return the digest of the campaign's plan: the same for all seeds."""
        return (self.given or self.plan).digest()


def measured_levels(index: Index) -> ServiceLevels:
    """Return the service levels of a run in numbers, from the index that it is judged by."""
    return service_levels(index, _READERS, explained=False)
