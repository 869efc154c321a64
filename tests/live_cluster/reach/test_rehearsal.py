"""A rehearsal lists the effects of a fault without performing them."""

import pytest

from harrow.campaigns.language.loader import load_text
from harrow.cluster_model.fields import all_fields_of
from harrow.faults.catalogue import FAULTS
from harrow.faults.effects import (
    Cut,
    DeleteController,
    ExpireSession,
    FaultEffect,
    Kill,
    LosePower,
    Pause,
    Restore,
    Resume,
    RuleMessages,
    Start,
    Stop,
    Undo,
)
from harrow.live_cluster.reach.rehearsal import faults_of, rehearse


def effects(text: str) -> list[type[FaultEffect]]:
    plan = load_text(f"name: c\nscript: [{{do: {{{text}}}}}]\n", "c.yaml").plans[0]
    return [type(each) for fault in faults_of(plan) for each in rehearse(fault, plan)]


@pytest.mark.parametrize(
    ("text", "done"),
    [
        ("broker_crash: {broker: leader of t-0}", [Kill, Start]),
        ("broker_crash: {broker: any, kind: power_loss}", [LosePower, Start]),
        ("broker_stop: {broker: 1}", [Stop, Start]),
        ("broker_bounce: {broker: 1}", [Stop, Start]),
        ("broker_pause: {broker: any}", [Pause, Resume]),
        ("broker_restart: {broker: 1}", [Start]),
        ("partition: {between: 0, and: 1, one_way: true}", [Cut, Restore]),
        ("rolling_restart: {}", [Stop, Start] * 3),
        ("rolling_restart: {down_for: 1s}", [Stop, Start] * 3),
        ("session_expiry: {broker: 1}", [ExpireSession]),
        ("controller_failover: {how: delete_znode}", [DeleteController]),
        ("slow_follower: {broker: 1}", [RuleMessages, Undo]),
        ("network_ack_loss: {}", [RuleMessages, Undo]),
    ],
)
def test_a_rehearsal_lists_the_effects_of_a_fault(text: str, done: list[type[FaultEffect]]) -> None:
    assert effects(text) == done


def test_a_rehearsed_link_may_end_at_zookeeper() -> None:
    plan = load_text(
        "name: c\nscript: [{do: {broker_isolation: {broker: controller, from: zookeeper}}}]\n", "c.yaml"
    ).plans[0]
    (fault,) = faults_of(plan)
    assert rehearse(fault, plan) == (
        *(Cut(0, "zookeeper"), Cut("zookeeper", 0)),
        *(Restore(0, "zookeeper"), Restore("zookeeper", 0)),
    )


def test_every_fault_of_the_catalogue_can_be_rehearsed() -> None:
    plan = load_text("name: c\n", "c.yaml").plans[0]
    for kind in FAULTS.values():
        if not any(item.required for item in all_fields_of(kind)):
            # A fault that ends others has no effect without them.
            assert isinstance(rehearse(kind(), plan), tuple)
