"""Runs of campaigns on real brokers."""

import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Final, Protocol

from harrow.campaigns.language.plan import Plan
from harrow.campaigns.record.report import mended_flaws, run_name_of
from harrow.campaigns.record.results_folder import CLUSTER
from harrow.campaigns.run.run_result import MissedExpectation, RealTarget, RunResult
from harrow.campaigns.run.runner import Run, RunStopped
from harrow.campaigns.run.swarm import draw_for_seed
from harrow.campaigns.temporary_folder import temporary_folder
from harrow.checks.evidence import Evidence
from harrow.checks.finding import INCONCLUSIVE, SKIPPED, Verdict
from harrow.cluster_model.sim.choices import Choices
from harrow.faults.handlers import Handlers
from harrow.live_cluster.errors import LiveError
from harrow.live_cluster.reach.feasible import as_real
from harrow.live_cluster.reach.narrowed_swarm import narrowed
from harrow.live_cluster.releases.kafka_release import KafkaRelease
from harrow.live_cluster.target.live_environment import LiveEnvironment
from harrow.live_cluster.target.live_target import LiveTarget
from harrow.live_cluster.target.real_cluster import MakeCluster

_BEGAN: Final = "%Y%m%dT%H%M%S.%fZ"
Tell = Callable[[Callable[[], str]], None]


class NotAwaitedError(LiveError):
    """The run was ended before the cluster was there; the message says what it waited for."""


class Brokers(Protocol):
    """What campaigns run on, one after the other."""

    @property
    def release(self) -> KafkaRelease:
        """Return the release that the brokers are of."""

    def run(
        self,
        plan: Plan,
        seed: int,
        results: Path | None,
        check: Callable[[], None] = lambda: None,
        tell: Tell = lambda _: None,
    ) -> RunResult:
        """Run a plan, or skip it; what brokers and clients leave goes below *results*.

        Where brokers do not come up, or do not hold out, the run is inconclusive. So is one that *check* ends with `RunStopped`;
        *tell* is called now and then with a function that says what the run waits for.
        """

    def drawn(self, plan: Plan, seed: int) -> Plan:
        """Return what a seed draws of an open plan, of what these brokers can do; a plan without a swarm is as it is."""

    def as_modelled(self, plan: Plan) -> Plan:
        """Return a plan as the model has to run it to do what these brokers do."""


def time_of_beginning() -> str:
    """Return the time as the name of a run has it."""
    return datetime.now(UTC).strftime(_BEGAN)


def live_run(
    plan: Plan,
    seed: int,
    results: Path | None,
    check: Callable[[], None],
    tell: Tell,
    target: RealTarget,
    release: KafkaRelease,
    *,
    obstacles_of: Callable[[Plan], Iterable[str]],
    make: MakeCluster,
    handlers: Handlers[LiveEnvironment],
) -> RunResult:
    """Run a plan on the cluster of a *release* that *make* returns, or skip it where something is in its way.

    Where the cluster does not come up, or does not hold out, the run is inconclusive.
    """
    began_s = time.monotonic()
    possible, not_drawn = narrowed(plan, obstacles_of)
    made = draw_for_seed(possible, seed)
    reasons = tuple(obstacles_of(made.plan))
    if reasons:
        return _without(plan, seed, SKIPPED, reasons, target)
    real, left_out = as_real(made.plan, release)
    choices = Choices.from_seed(seed)

    def wait(what: str) -> None:
        tell(lambda: f"waits for {what}")
        try:
            check()
        except RunStopped as stopped:
            raise NotAwaitedError(f"{stopped} came while the run waited for {what}") from stopped

    try:
        with (
            _folder(possible, seed, target, results) as folder,
            LiveTarget(real, choices, folder, make, handlers, wait) as cluster,
        ):
            result = Run(real, seed, choices, cluster, check=check, tell=tell).result()
    except LiveError as error:
        return _without(plan, seed, INCONCLUSIVE, (str(error),), target)
    unseen = [
        *(MissedExpectation(line=0, message=str(unset)) for unset in left_out),
        *(MissedExpectation(line=0, message=f"no seed draws this here: {reason}") for reason in not_drawn),
    ]
    if result.probes_missed:
        message = f"not reached, or not to be seen: {', '.join(result.probes_missed)}"
        unseen.append(MissedExpectation(line=0, message=message))
    result = replace(
        result,
        plan=made.plan,
        given=None if plan.swarm is None else possible,
        drawn=made.values,
        unseen=(*result.unseen, *unseen),
        probes_missed=(),
        target=target,
        wall_ms=round((time.monotonic() - began_s) * 1_000),
    )
    if switches := mended_flaws(result):
        written_for = f"brokers with {', '.join(switches)}"
        return replace(result, plan=replace(made.plan, written_for=written_for))
    return result


@contextmanager
def _folder(plan: Plan, seed: int, target: RealTarget, results: Path | None) -> Iterator[Path]:
    """Return where brokers have their folders: with the run's other files, or nowhere for long."""
    if results is not None:
        folder = results / plan.campaign / run_name_of(plan.digest(), seed, target) / CLUSTER
        folder.mkdir(parents=True)
        yield folder.absolute()
        return
    with temporary_folder() as folder:
        yield folder


def _without(plan: Plan, seed: int, status: str, reasons: tuple[str, ...], target: RealTarget) -> RunResult:
    """Return the result of a run that did not take place."""
    nothing = Evidence(
        release=plan.kafka,
        operations=(),
        trace=(),
        process_names={},
        producers={},
        partitions={},
        replicas={},
        read_back=frozenset(),
    )
    return RunResult(
        plan=plan,
        seed=seed,
        verdict=Verdict(status=status, rules={}, reasons=reasons),
        expected=False,
        missed=(),
        evidence=nothing,
        faults=(),
        probes={},
        trace_digest="",
        events=0,
        simulated_us=0,
        target=target,
    )
