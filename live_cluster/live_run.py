"""Runs of campaigns on brokers that are started for them."""

import shutil
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

from harrow.campaigns.language.plan import Plan
from harrow.campaigns.record.report import run_name_of
from harrow.campaigns.record.results_folder import CLUSTER
from harrow.campaigns.run.run_result import MissedExpectation, RealTarget, RunResult
from harrow.campaigns.run.runner import Run
from harrow.campaigns.run.swarm import draw_for_seed
from harrow.checks.evidence import Evidence
from harrow.checks.finding import INCONCLUSIVE, SKIPPED, Verdict
from harrow.cluster_model.sim.choices import Choices
from harrow.live_cluster.clients.live_clients import LIVE
from harrow.live_cluster.errors import LiveError
from harrow.live_cluster.feasible import as_real, obstacles
from harrow.live_cluster.getting.kafka_release import KafkaRelease
from harrow.live_cluster.live_target import LiveTarget

_BEGAN: Final = "%Y%m%dT%H%M%S.%fZ"


@dataclass(frozen=True, slots=True, kw_only=True)
class StartedBrokers:
    """What brokers are started from: a release, with its *jars*, and where it keeps its metadata."""

    release: KafkaRelease
    metadata: str
    java: Path
    jars: Path

    def run(
        self, plan: Plan, seed: int, results: Path | None, check: Callable[[], None] = lambda: None
    ) -> RunResult:
        """Run a plan on brokers of its own, or skip it; what they leave goes below *results*.

        Where they do not come up, or do not hold out, the run is inconclusive.
        """
        began_s = time.monotonic()
        target = RealTarget(
            kind=LIVE,
            release=self.release.name,
            metadata=self.metadata,
            began=datetime.now(UTC).strftime(_BEGAN),
        )
        made = draw_for_seed(plan, seed)
        reasons = tuple(self._obstacles(made.plan))
        if reasons:
            return _without(plan, seed, SKIPPED, reasons, target)
        real, repairs = as_real(made.plan)
        choices = Choices.from_seed(seed)
        try:
            with (
                _folder(plan, seed, target, results) as folder,
                LiveTarget(
                    real, choices, java=self.java, jars=self.jars, metadata=self.metadata, folder=folder
                ) as cluster,
            ):
                result = Run(real, seed, choices, cluster, check=check).result()
        except LiveError as error:
            return _without(plan, seed, INCONCLUSIVE, (str(error),), target)
        unseen = [
            MissedExpectation(line=0, message=f"brokers are as they are: {name} is not set")
            for name in repairs
        ]
        if result.probes_missed:
            message = f"not reached, or not to be seen: {', '.join(result.probes_missed)}"
            unseen.append(MissedExpectation(line=0, message=message))
        return replace(
            result,
            plan=made.plan,
            given=None if made.plan is plan else plan,
            drawn=() if made.plan is plan else made.values,
            unseen=(*result.unseen, *unseen),
            probes_missed=(),
            target=target,
            wall_ms=round((time.monotonic() - began_s) * 1_000),
        )

    def _obstacles(self, plan: Plan) -> Iterator[str]:
        known = self.release.model_release
        if plan.kafka != known:
            yield f"it is about Kafka {plan.kafka}: --set kafka={known} runs it as of {self.release.name}"
            return
        yield from obstacles(plan, self.release, self.metadata)


@contextmanager
def _folder(plan: Plan, seed: int, target: RealTarget, results: Path | None) -> Iterator[Path]:
    """Return where brokers have their folders: with the run's other files, or nowhere for long."""
    if results is not None:
        folder = results / plan.campaign / run_name_of(plan.digest(), seed, target) / CLUSTER
        folder.mkdir(parents=True)
        yield folder.absolute()
        return
    temporary = Path(tempfile.mkdtemp(prefix="harrow-"))
    try:
        yield temporary
    finally:
        shutil.rmtree(temporary, ignore_errors=True)


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
