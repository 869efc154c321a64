"""A run on real brokers ends when one of its threads fails, and names the failure."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any, Self

import pytest

from harrow.campaigns.language.loader import load_text
from harrow.campaigns.language.plan import Plan
from harrow.checks.finding import INCONCLUSIVE
from harrow.live_cluster.local.started_effects import STARTED
from harrow.live_cluster.names import SAME_NAMES
from harrow.live_cluster.releases.kafka_release import KafkaRelease
from harrow.live_cluster.target.live_run import Brokers
from harrow.live_cluster.target.real_cluster import ClusterContext
from harrow.live_cluster.watches.observed_metadata import ObservedMetadata
from harrow.live_cluster.watches.polling_thread import PollingThread


class Cluster(SimpleNamespace):
    """A cluster without brokers whose watch fails at its start, followed by the call *after*."""

    def __init__(self, context: ClusterContext, after: Callable[[ClusterContext], None]) -> None:
        empty: dict[int, Any] = {}
        super().__init__(
            **dict.fromkeys(("brokers", "servers", "logs", "security"), empty),
            **dict.fromkeys(("children", "connect", "links"), SimpleNamespace()),
            control=SimpleNamespace(controllers={}, process_names=()),
            spec=context.plan.cluster,
            names=SAME_NAMES,
            follows_logs=False,
            observed_metadata=ObservedMetadata(context.report),
            replicas_of=lambda _: (0,),
            refusals=lambda: (),
            resignations=lambda: (),
            logged_epoch=lambda *_: -1,
        )
        self._context = context
        self._after = after

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        pass

    def start(self) -> None:
        leaders: dict[str, int] = {}

        def look() -> None:
            leaders["t-0"] += 1

        watch = PollingThread("metadata", look, self._context.activity)
        watch.start()
        watch.close()
        self._after(self._context)


@dataclass(frozen=True, slots=True, kw_only=True)
class CalmBrokers(Brokers):
    after: Callable[[ClusterContext], None]
    kind = "live"
    handlers = STARTED

    def obstacles(self, plan: Plan) -> Iterator[str]:
        return iter(())

    def cluster(self, context: ClusterContext) -> Any:
        return Cluster(context, self.after)


@pytest.mark.parametrize(
    "after",
    [lambda context: context.wait("all replicas"), lambda _: None],
    ids=["while it waits", "once it has begun"],
)
def test_a_run_whose_thread_fails_is_inconclusive(
    after: Callable[[ClusterContext], None], capfd: pytest.CaptureFixture[str]
) -> None:
    plan = load_text("name: calm\ncluster: {brokers: 1, topics: [{name: t}]}\n", "calm.yaml").plans[0]
    result = CalmBrokers(release=KafkaRelease("3.9.2"), metadata="kraft", after=after).run(plan, 0, None)
    assert result.verdict.status == INCONCLUSIVE
    (reason,) = result.verdict.reasons
    assert reason.startswith("the thread `metadata` failed: KeyError: 't-0' (test_live_run.py:")
    assert capfd.readouterr() == ("", "")
