"""Defines the result of a run, from which reports, files and comparisons are made."""

from collections.abc import Mapping
from dataclasses import field
from functools import cached_property
from typing import Any, Final

from harrow.campaigns.clients.clients import CORE_READER, READER
from harrow.campaigns.language.plan import Plan
from harrow.checks.evidence import Evidence
from harrow.checks.finding import Verdict
from harrow.checks.index import Index
from harrow.checks.service.levels import ServiceLevels, service_levels
from harrow.cluster_model.lazy_dataclass import dataclass
from harrow.cluster_model.packed_log import digest
from harrow.faults.action import Action
from harrow.faults.fault import Fault

_READERS: Final = frozenset({READER, CORE_READER})


@dataclass(frozen=True, slots=True, kw_only=True)
class InjectedFault:
    """A fault that struck.

    ``concrete`` is the fault with all drawn values, such as its broker and duration. ``origin`` is
    the fault as the campaign writes it. ``named`` is an equivalent fault of another kind that names
    its broker, if the kind of ``origin`` looks its broker up: for a crash of the controller while
    broker 1 was the controller, it is a crash of broker 1. Otherwise ``named`` is None.
    """

    at_us: int
    fault: str
    details: tuple[tuple[str, Any], ...]
    concrete: Fault | None = None
    named: Fault | None = None
    origin: Fault | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class MissedExpectation:
    """An expectation of the campaign that was not met.

    ``line`` is the line of its step in the campaign file, and 0 if it is part of ``expect``.

    ``kind`` groups expectations whose messages differ only in details.
    """

    line: int
    message: str
    kind: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class TimedOutStep:
    """A step of the script that ran without its condition, after it had waited for `limits.step`.

    ``number`` counts from 1. ``missing`` describes what the condition lacked.
    """

    number: int
    line: int
    waited_us: int
    missing: str


SERVED: Final = "served"
"""The kind of target of a run on the model with real clients, which depends on their requests."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RealTarget:
    """The real cluster on which a run took place.

    ``metadata`` is the control plane, ``zookeeper`` or ``kraft``. ``began`` is the start of the run
    in UTC; no two runs have the same.
    """

    kind: str
    release: str
    metadata: str
    began: str

    def name(self) -> str:
        """Return the target in the form ``--target`` takes."""
        return f"{self.kind}:{self.release}-{self.metadata}"


@dataclass(frozen=True, slots=True, kw_only=True)
class ReleaseDifference:
    """The behaviour because of which a run misses expectations written for another release.

    A trial repeated the run with one change: ``switch`` had ``value``, as in the release that the
    campaign was written for. The trial met the expectations or, if ``step`` is not None, its script
    got past that step, at which the run had waited in vain. ``since`` is the first later release
    whose value of ``switch`` does not help; None if the run was on an earlier release.
    """

    switch: str
    value: Any
    since: str | None
    step: int | None


@dataclass(frozen=True, kw_only=True)
class RunResult:
    """One run of a plan with one seed.

    - ``plan`` is the plan that ran. Where the campaign left values open, ``open_plan`` is the plan
      before the seed chose them, and ``drawn`` lists the choices in words.
    - ``expected`` tells whether the run met the campaign's expectations. A campaign that states
      none expects that no promise is broken.
    - ``probes_missed`` are required probes that this run did not reach. Several runs decide
      together what follows from that (`harrow.campaigns.run.required_probes`).
    - ``unseen`` are expectations of the script that were not observed to hold on a target that can
      only be polled. Polling may have missed a short state.
    - ``other_actions`` are the actions of the script other than sends and faults, with their times.
    - ``given_up`` says why a run that would not end was stopped.
    - ``timed_out_steps`` are the steps that ran without their condition (reports call them
      ``hurried``), ``waited_us`` is the longest wait of a step for its condition, and
      ``steps_taken`` counts the steps that ran.
    - ``levels`` are the service levels in numbers, if the run measured them.
    - ``difference`` is the behaviour because of which the run misses expectations that the campaign
      states for another release.
    - ``target`` is None for a run on the model. On a real cluster, times in microseconds are not
      virtual.
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
    events: int
    simulated_us: int
    wall_ms: int = field(default=0)
    open_plan: Plan | None = None
    drawn: tuple[tuple[str, str], ...] = ()
    other_actions: tuple[tuple[int, Action], ...] = ()
    unseen: tuple[MissedExpectation, ...] = ()
    given_up: str | None = None
    timed_out_steps: tuple[TimedOutStep, ...] = ()
    waited_us: int = 0
    is_script_finished: bool = True
    steps_taken: int = 0
    target: RealTarget | None = None
    levels: ServiceLevels | None = field(default=None, compare=False)
    difference: ReleaseDifference | None = field(default=None, compare=False)

    @cached_property
    def trace_digest(self) -> str:
        """The digest of the trace, empty for a run without events.

        To compute this takes an eighth of the time of a run, and most searches do not need it.
        """
        trace = self.evidence.trace
        return digest(trace) if trace else ""

    @cached_property
    def service(self) -> ServiceLevels:
        """How well the workload's clients were served, and what caused outages.

        To compute this takes a tenth of the time of a run.
        """
        return service_levels(Index(self.evidence), _READERS)

    @property
    def measured(self) -> ServiceLevels:
        """The service levels in numbers, without the causes of outages."""
        return self.service if self.levels is None else self.levels

    def plan_digest(self) -> str:
        """Return the digest of the campaign's plan, which is the same for all seeds."""
        return (self.open_plan or self.plan).digest()


def measured_levels(index: Index) -> ServiceLevels:
    """Return the service levels in numbers, from the index with which the run is judged."""
    return service_levels(index, _READERS, explained=False)
