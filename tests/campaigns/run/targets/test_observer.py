"""An observer reports the outcomes of sends, and the brokers that a fault impairs."""

import pytest

from harrow.campaigns.language.loader import load_text
from harrow.campaigns.run.targets.model_target import ModelTarget
from harrow.cluster_model.history import FAIL, INFO, INVOKE, OK, TXN
from harrow.cluster_model.sim.choices import Choices
from tests.campaigns.run.cluster_harness import ClusterHarness


@pytest.mark.parametrize(
    ("type_", "acked", "failed"), [(OK, True, False), (FAIL, False, True), (INFO, False, True)]
)
def test_every_send_of_a_transaction_is_acked_or_failed_with_it(
    type_: str, acked: bool, failed: bool
) -> None:
    harness = ClusterHarness()
    sends = (("poll", {"t-0": [(0, "read")]}), ("send", "t-0", "x"), ("send", "t-0", "y"))
    harness.cluster.history.add(7, INVOKE, TXN, (("poll",), *sends[1:]), 0)
    assert not harness.target.observer.is_acked("x")
    harness.cluster.history.add(7, type_, TXN, sends, 1)
    for value in ("x", "y"):
        assert (harness.target.observer.is_acked(value), harness.target.observer.is_failed(value)) == (
            acked,
            failed,
        )
    assert not harness.target.observer.is_acked("read")
    assert not harness.target.observer.is_failed("read")


def test_replicas_with_equal_empty_logs_have_one_object_as_their_final_log() -> None:
    _, first, second = ClusterHarness().target.observer.final_logs(["t-0"])["t-0"].values()
    assert not first.batches
    assert first is second


ZOOKEEPER = "kafka: 2.4\n"
ENSEMBLE = "kafka: 2.4\ncluster: {zookeeper: {servers: 3}}\n"
KRAFT = "kafka: 4.3\n"
COMBINED = "kafka: 4.3\ncluster: {brokers: 4, kraft: {combined: true}}\n"
FIVE_VOTERS = "kafka: 4.3\ncluster: {brokers: 5, kraft: {combined: true, voters: 5}}\n"
ONE_VOTER = "kafka: 4.3\ncluster: {kraft: {combined: true, voters: 1}}\n"


@pytest.mark.parametrize(
    ("cluster", "broker", "cut_from", "is_impaired"),
    [
        (ZOOKEEPER, 0, (), False),
        (ZOOKEEPER, 0, ("broker-1",), True),
        (ZOOKEEPER, 0, ("broker-1", "zookeeper"), False),
        (ENSEMBLE, 0, ("zookeeper-1", "zookeeper-2"), True),
        (ENSEMBLE, 0, ("zookeeper-1", "zookeeper-2", "zookeeper-3"), False),
        (KRAFT, 0, ("controller-3000", "controller-3001"), True),
        (KRAFT, 0, ("controller-3000", "controller-3001", "controller-3002"), False),
        # A voter may be the active controller while it reaches another one.
        (COMBINED, 0, ("broker-1",), True),
        (COMBINED, 0, ("broker-1", "broker-2"), False),
        (COMBINED, 3, ("broker-1", "broker-2"), True),
        (COMBINED, 3, ("broker-0", "broker-1", "broker-2"), False),
        # There is no majority, but the remaining voter may be the active controller.
        (FIVE_VOTERS, 0, ("broker-1", "broker-2", "broker-3"), True),
        (FIVE_VOTERS, 0, ("broker-1", "broker-2", "broker-3", "broker-4"), False),
        (ONE_VOTER, 0, ("broker-1", "broker-2"), True),
        (ONE_VOTER, 1, ("broker-0",), False),
    ],
)
def test_a_disturbed_broker_is_impaired_while_it_can_keep_its_session(
    cluster: str, broker: int, cut_from: tuple[str, ...], is_impaired: bool
) -> None:
    plan = load_text(cluster, "campaign.yaml").plans[0]
    target = ModelTarget(plan, Choices.from_seed(0), ())
    target.start()
    for name in cut_from:
        target.cluster.network.cut(f"broker-{broker}", name)
    assert target.observer.is_impaired(broker) == is_impaired
