"""Sequences of requests are compared on two controllers, both of the model in these tests."""

import json
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest

from harrow.cluster_model.release.profiles import behaviours_in
from harrow.live_cluster.releases.kafka_release import KafkaRelease
from harrow.live_cluster.requests.comparison import ComparedSequence, difference_kind
from harrow.live_cluster.requests.controllers.comparison import compare_controllers
from harrow.live_cluster.requests.controllers.model_controller import ModelController
from harrow.live_cluster.requests.controllers.real_controller import (
    SETTINGS as CONTROLLER_SETTINGS,
)
from harrow.live_cluster.requests.controllers.sequences import controller_sequences
from harrow.live_cluster.requests.controllers.steps import (
    AlterPartitionStep,
    ControllerStep,
    HeartbeatStep,
    PreferredStep,
    RegisterStep,
)
from harrow.live_cluster.requests.drawing import seed_sequences
from harrow.live_cluster.requests.measures.measure import SETTINGS
from harrow.live_cluster.requests.measures.recording import RecordedController, recording, steps_of

FENCED = (HeartbeatStep(broker=3, want_fence=True), HeartbeatStep(broker=2, want_fence=True))
STOPS = HeartbeatStep(broker=1, want_shut_down=True)
RETURNS = (RegisterStep(broker=1), HeartbeatStep(broker=1))


def controller(release: str = "4.3.1", **switches: Any) -> ModelController:
    behaviours = behaviours_in(release).with_switches(**switches)
    settings = {**SETTINGS, **CONTROLLER_SETTINGS, "min.insync.replicas": 2}
    return ModelController(KafkaRelease(release).model_release, behaviours, settings)


def compare(steps: Sequence[ControllerStep], release: str = "4.3.1", **switches: Any) -> ComparedSequence:
    return compare_controllers(steps, controller(release), controller(release, **switches))


def answers(*steps: ControllerStep) -> list[Any]:
    """Return the answer of a model controller to each step, without the state of partitions."""
    exchanges = compare(steps).exchanges
    assert not any(exchange.differs for exchange in exchanges)
    return [
        {key: value for key, value in exchange.modelled.items() if key != "partitions_seen"}
        for exchange in exchanges
    ]


def partition(number: int, *steps: ControllerStep) -> Any:
    return compare(steps).exchanges[-1].modelled["partitions_seen"][f"t-{number}"]


@pytest.mark.parametrize("release", ["3.9.2", "4.3.1"])
def test_equal_controllers_do_not_differ(release: str) -> None:
    for steps in seed_sequences(0, controller_sequences()):
        comparison = compare(steps, release)
        assert comparison.difference is None
        assert comparison.requests == sum(not isinstance(step, PreferredStep) for step in steps)


REACHED = {
    "AlterPartition": {
        "NONE",
        "FENCED_LEADER_EPOCH",
        "INELIGIBLE_REPLICA",
        "INVALID_REQUEST",
        "INVALID_UPDATE_VERSION",
        "NOT_CONTROLLER",
        "STALE_BROKER_EPOCH",
    },
    "BrokerHeartbeat": {"NONE", "STALE_BROKER_EPOCH"},
    "BrokerRegistration": {"NONE", "DUPLICATE_BROKER_REGISTRATION"},
}


@pytest.mark.parametrize("release", ["3.9.2", "4.3.1"])
def test_sequences_reach_every_controller_answer(release: str) -> None:
    answered: Counter[tuple[str, str]] = Counter()
    for number in range(3):
        for steps in seed_sequences(number, controller_sequences()):
            answered += compare(steps, release).answered()
    assert set(answered) == {(api, error) for api, errors in REACHED.items() for error in errors}
    heartbeats, registrations = (
        sum(count for (api, _), count in answered.items() if api == counted)
        for counted in ("BrokerHeartbeat", "BrokerRegistration")
    )
    assert heartbeats > 2 * registrations


@pytest.mark.parametrize(
    ("switch", "steps", "kind"),
    [
        (
            "isr_expansion_checks_broker_epoch",
            (*RETURNS, AlterPartitionStep(partition=1, isr=(1, 2, 3), members="stale")),
            "AlterPartition",
        ),
        ("eligible_leader_replicas", FENCED, "BrokerHeartbeat"),
    ],
)
def test_a_disabled_behaviour_is_reported_as_a_difference(
    switch: str, steps: tuple[ControllerStep, ...], kind: str
) -> None:
    difference = compare(steps, "4.3.1", **{switch: False}).difference
    assert difference is not None
    assert difference_kind(difference)[0].api == kind


def test_step_epochs_are_relative_to_the_controllers() -> None:
    wants = AlterPartitionStep(isr=(1, 2))
    assert answers(
        wants,
        replace(wants, leader_epoch=-1),
        replace(wants, leader_epoch=1),
        replace(wants, isr=(1,), partition_epoch=-1),
        replace(wants, stale=True),
        replace(wants, broker=3),
    ) == [
        {"error": "NONE", "partitions": {"t-0": ["NONE", 1]}},
        {"error": "NONE", "partitions": {"t-0": ["FENCED_LEADER_EPOCH"]}},
        {"error": "NONE", "partitions": {"t-0": ["NOT_CONTROLLER"]}},
        {"error": "NONE", "partitions": {"t-0": ["INVALID_UPDATE_VERSION"]}},
        {"error": "STALE_BROKER_EPOCH", "partitions": {}},
        {"error": "NONE", "partitions": {"t-0": ["INVALID_REQUEST"]}},
    ]


def test_a_broker_stops_after_all_brokers_know_that_it_leads_nothing() -> None:
    alive = [HeartbeatStep(broker=broker) for broker in (2, 3)]
    first, again, _, _, last = answers(STOPS, STOPS, *alive, STOPS)
    # The other brokers have sent no heartbeat since they were unfenced.
    assert [answer["should_shut_down"] for answer in (first, again, last)] == [False, False, True]
    assert partition(0, STOPS) == [2, 1, [2, 3], []]


def test_a_stopping_broker_is_not_fenced_by_its_own_heartbeat() -> None:
    alive = [HeartbeatStep(broker=broker) for broker in (2, 3)]
    wants_fence, goes = HeartbeatStep(broker=1, want_fence=True), HeartbeatStep(broker=1)
    first, second, *_, last = answers(STOPS, wants_fence, *alive, goes)
    assert (first["is_fenced"], second["is_fenced"], last["should_shut_down"]) == (False, False, True)


def test_a_fenced_broker_stops_at_once() -> None:
    (answer,) = answers(replace(STOPS, want_fence=True))
    assert (answer["is_fenced"], answer["should_shut_down"]) == (True, True)


def test_a_registration_resets_the_metadata_offset() -> None:
    alive = [HeartbeatStep(broker=broker) for broker in (2, 3)]
    amends = RegisterStep(broker=3, again=True)
    *_, early, _, late = answers(*alive, amends, STOPS, STOPS, HeartbeatStep(broker=3), STOPS)
    assert (early["should_shut_down"], late["should_shut_down"]) == (False, True)


def test_a_registration_cancels_a_controlled_shutdown() -> None:
    """The broker leads no partition at its next heartbeat, so it need not wait for others
    (`ClusterControlManager.replay`).
    """
    _, _, again = answers(STOPS, RegisterStep(broker=1, again=True), STOPS)
    assert (again["is_fenced"], again["should_shut_down"]) == (True, True)
    *_, resumed = answers(STOPS, RegisterStep(broker=1, again=True), HeartbeatStep(broker=1))
    assert (resumed["is_fenced"], resumed["should_shut_down"]) == (False, False)


def test_a_repeated_registration_makes_a_new_broker_up_to_3_7_0() -> None:
    """The broker is fenced but keeps its leaderships and its places in ISRs (KAFKA-16757)."""
    again = RegisterStep(broker=2, again=True)
    fenced, back = HeartbeatStep(broker=2, want_fence=True), HeartbeatStep(broker=2)
    for release, changed in (("3.6.2", [2, 0, [1, 2, 3], []]), ("3.9.2", [3, 1, [1, 3], []])):
        _, answer, resumed = (each.modelled for each in compare((again, fenced, back), release).exchanges)
        assert answer["is_fenced"]
        assert answer["partitions_seen"]["t-1"] == changed
        assert not resumed["is_fenced"]


def test_a_broker_registered_twice_leaves_isrs_when_it_stops_up_to_3_7_0() -> None:
    """The fenced broker may stop at once, and only then leaves the ISRs (`handleBrokerFenced`)."""
    again, stops = RegisterStep(broker=3, again=True), HeartbeatStep(broker=3, want_shut_down=True)
    _, answer = (each.modelled for each in compare((again, stops), "3.6.2").exchanges)
    assert answer["should_shut_down"]
    assert answer["partitions_seen"]["t-0"] == [1, 0, [1, 2], []]


def test_an_unfencing_heartbeat_counts_for_a_stopping_broker_up_to_3_6() -> None:
    for release, stopped in (("3.6.2", True), ("3.9.2", False)):
        *_, answer = (each.modelled for each in compare((STOPS, STOPS), release).exchanges)
        assert (answer["is_fenced"], answer["should_shut_down"]) == (stopped, stopped)


def test_a_broker_unfenced_after_it_stopped_joins_no_isr_before_it_registers() -> None:
    """Fencing and unfencing do not end its controlled shutdown (`BrokerRegistration.cloneWith`)."""
    stopped = (STOPS, *(HeartbeatStep(broker=broker) for broker in (2, 3)), STOPS)
    joins = AlterPartitionStep(isr=(1, 2, 3))
    unfenced = HeartbeatStep(broker=1)
    *_, back, refused = answers(*stopped, unfenced, joins)
    assert not back["is_fenced"]
    assert refused["partitions"] == {"t-0": ["INELIGIBLE_REPLICA"]}
    # From 4.0 on the registration has to wait for the end of the session.
    registered_again: tuple[ControllerStep, ...] = (
        *stopped,
        RegisterStep(broker=1, stopped=True),
        unfenced,
        joins,
    )
    assert compare(registered_again, "3.9.2").exchanges[-1].modelled["partitions"] == {"t-0": ["NONE", 2]}


def test_a_returning_broker_leads_its_preferred_partitions() -> None:
    joins = AlterPartitionStep(isr=(1, 2, 3))
    assert partition(0, HeartbeatStep(broker=1, want_fence=True), *RETURNS, joins, PreferredStep()) == [
        1,
        2,
        [1, 2, 3],
        [],
    ]


@pytest.mark.parametrize("release", ["3.9.2", "4.3.1"])
def test_a_recorded_controller_repeats_its_answers(release: str) -> None:
    for steps in seed_sequences(7, controller_sequences()):
        recorded = json.loads(json.dumps(recording(compare(steps, release))))
        assert steps_of(recorded) == steps
        again = compare_controllers(steps, controller(release), RecordedController(recorded))
        assert again.difference is None
        assert json.loads(json.dumps(recording(again))) == recorded


def test_a_recording_of_a_different_controller_differs() -> None:
    steps = (*FENCED, HeartbeatStep(broker=1))
    recorded = recording(compare(steps))
    without = controller(eligible_leader_replicas=False)
    assert compare_controllers(steps, without, RecordedController(recorded)).difference is not None
