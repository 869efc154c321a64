"""What faults would do is found out without doing it."""

import pytest

from harrow.campaigns.language.loader import load_text
from harrow.cluster_model.fields import all_fields_of
from harrow.faults.catalogue import FAULTS
from harrow.live_cluster.reach.rehearsal import faults_of, rehearsed


def deeds(text: str) -> list[str]:
    plan = load_text(f"name: c\nscript: [{{do: {{{text}}}}}]\n", "c.yaml").plans[0]
    return [str(each.deed) for fault in faults_of(plan) for each in rehearsed(fault, plan)]


@pytest.mark.parametrize(
    ("text", "done"),
    [
        ("broker_crash: {broker: leader of t-0}", ["kill", "start"]),
        ("broker_crash: {broker: any, kind: power_loss}", ["lose_power", "start"]),
        ("broker_stop: {broker: 1}", ["stop", "start"]),
        ("broker_bounce: {broker: 1}", ["stop", "start"]),
        ("broker_pause: {broker: any}", ["pause", "resume"]),
        ("broker_restart: {broker: 1}", ["start"]),
        ("partition: {between: 0, and: 1, one_way: true}", ["cut", "restore"]),
        ("rolling_restart: {}", ["stop", "start"] * 3),
        ("rolling_restart: {down_for: 1s}", ["stop", "start"] * 3),
        ("session_expiry: {broker: 1}", ["expire_session"]),
        ("controller_failover: {how: delete_znode}", ["delete_controller"]),
        ("slow_follower: {broker: 1}", ["rule_messages"]),
        ("network_ack_loss: {}", ["rule_messages"]),
    ],
)
def test_a_fault_is_known_by_what_it_does(text: str, done: list[str]) -> None:
    assert deeds(text) == done


def test_an_end_of_a_link_may_be_no_broker() -> None:
    plan = load_text(
        "name: c\nscript: [{do: {broker_isolation: {broker: controller, from: zookeeper}}}]\n", "c.yaml"
    ).plans[0]
    (fault,) = faults_of(plan)
    assert {end for each in rehearsed(fault, plan) for end in each.ends} == {0, "zookeeper"}


def test_every_fault_of_the_catalogue_can_be_rehearsed() -> None:
    plan = load_text("name: c\n", "c.yaml").plans[0]
    for kind in FAULTS.values():
        if not any(item.required for item in all_fields_of(kind)):
            # Whatever it does, or where nothing is in force, nothing.
            assert isinstance(rehearsed(kind(), plan), tuple)
