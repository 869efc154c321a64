"""Sequences of requests are compared on two brokers, both of the model in these tests."""

import random
import warnings
from collections import Counter
from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from harrow.cluster_model.release.profiles import behaviours_in
from harrow.live_cluster.releases.kafka_release import KafkaRelease
from harrow.live_cluster.requests.answers import errors_in
from harrow.live_cluster.requests.brokers.comparison import compare_brokers
from harrow.live_cluster.requests.brokers.model_broker import ModelBroker
from harrow.live_cluster.requests.brokers.sequences import sequences
from harrow.live_cluster.requests.brokers.steps import (
    CLOSING,
    EpochEndStep,
    FetchStep,
    FollowerStep,
    ListOffsetsStep,
    MetadataStep,
    PartitionFetch,
    ProducerIdStep,
    ProduceStep,
    RetryStep,
    Step,
)
from harrow.live_cluster.requests.comparison import ComparedSequence, difference_kind, shrink
from harrow.live_cluster.requests.drawing import seed_sequences, weighted
from harrow.live_cluster.requests.measures.measure import SETTINGS, model_broker

CAUGHT_UP = (
    FollowerStep(does="comes"),
    FetchStep(places=(PartitionFetch(partition=0), PartitionFetch(partition=1)), follower=True),
)


def broker(release: str = "2.4.1", **switches: Any) -> ModelBroker:
    behaviours = behaviours_in(release).with_switches(**switches)
    return ModelBroker(KafkaRelease(release).model_release, behaviours, SETTINGS)


def answers(steps: Sequence[Step], release: str = "2.4.1") -> list[object]:
    """Return the answer of a model broker to each step."""
    compared = compare_brokers(steps, broker(release), broker(release))
    assert compared.difference is None
    return [exchange.modelled for exchange in compared.exchanges]


def states(first: list[object], second: list[object]) -> dict[str, object]:
    return {"states": {"t-0": first, "t-1": second}}


@pytest.mark.parametrize("release", ["0.11.0.3", "2.0.1", "2.4.1", "3.9.2"])
def test_two_model_brokers_do_not_differ(release: str) -> None:
    @settings(max_examples=15, suppress_health_check=list(HealthCheck), derandomize=True)
    @given(sequences(followed=True))
    def agrees(steps: tuple[Step, ...]) -> None:
        kafka_release = KafkaRelease(release)
        compared = compare_brokers(steps, model_broker(kafka_release), model_broker(kafka_release))
        assert compared.difference is None
        assert compared.steps == steps
        assert compared.requests == sum(not isinstance(step, FollowerStep) for step in steps)

    agrees()


def test_an_election_changes_leader_and_epoch() -> None:
    elected = FollowerStep(does="leads"), FollowerStep(does="goes"), FollowerStep(does="goes")
    assert [
        answer for answer in answers((*CAUGHT_UP, *elected)) if isinstance(answer, dict) and len(answer) == 1
    ] == [
        states([0, 0, [0]], [0, 0, [0]]),
        states([1, 1, [0, 1]], [1, 1, [0, 1]]),
        states([0, 2, [0]], [0, 2, [0]]),
        states([0, 2, [0]], [0, 2, [0]]),
    ]


def test_step_values_are_relative_to_the_brokers() -> None:
    steps = (
        ProduceStep(records=3, producer=0),
        ProduceStep(records=2, producer=0),
        RetryStep(back=1),
        ProduceStep(producer=0, sequence=1),
        ListOffsetsStep(),
        FetchStep(places=(PartitionFetch(place="end", plus=-1),)),
        EpochEndStep(requested=1),
        MetadataStep(),
        ProducerIdStep(),
        ProducerIdStep(),
    )
    responses = answers(steps)
    assert responses[:5] == [
        {"partitions": {"t-0": response}}
        for response in (
            ["NONE", 0],
            ["NONE", 3],
            ["NONE", 0],
            ["OUT_OF_ORDER_SEQUENCE_NUMBER", -1],
            ["NONE", 5],
        )
    ]
    batch = [3, 0, 1000, 0, 3, ["m3", "m4"]]
    assert responses[5] == {
        "error": "NONE",
        "session": 0,
        "partitions": {"t-0": {"error": "NONE", "hw": 5, "log_start": 0, "batches": [batch]}},
    }
    assert responses[6:] == [
        {"partitions": {"t-0": ["NONE", -1, -1]}},
        {"brokers": [0], "partitions": {"t-0": [0, 0], "t-1": [0, 0]}},
        {"error": "NONE", "producer_id": 0, "producer_epoch": 0},
        {"error": "NONE", "producer_id": 1, "producer_epoch": 0},
    ]


def test_fetch_sessions_are_compared_by_order_of_opening() -> None:
    opened, other = (
        FetchStep(session="new"),
        FetchStep(places=(PartitionFetch(partition=1),), session="new"),
    )
    steps = (
        opened,
        other,
        *(FetchStep(places=(), session=session) for session in ("first", "last", "unknown")),
    )
    sessions = [
        (answer["error"], answer["session"], list(answer["partitions"]))
        for answer in answers(steps)
        if isinstance(answer, dict)
    ]
    assert sessions == [
        ("NONE", 1, ["t-0"]),
        ("NONE", 2, ["t-1"]),
        ("NONE", 1, []),
        ("NONE", 2, []),
        ("FETCH_SESSION_ID_NOT_FOUND", 0, []),
    ]


def test_old_releases_get_no_epochs_in_requests() -> None:
    behind = ListOffsetsStep(epoch=-1), MetadataStep()
    assert answers((*CAUGHT_UP, FollowerStep(does="goes"), *behind), "2.0.1")[-2:] == [
        {"partitions": {"t-0": ["NONE", 0]}},
        {"brokers": [0], "partitions": {"t-0": [0], "t-1": [0]}},
    ]
    assert answers((*CAUGHT_UP, FollowerStep(does="goes"), *behind))[-2] == {
        "partitions": {"t-0": ["FENCED_LEADER_EPOCH", -1]}
    }


@pytest.mark.parametrize(
    ("switches", "kind", "needed"),
    [
        (
            {"producer_batches_retained": 1},
            "Produce partitions.t-n.n",
            (ProduceStep(producer=0), ProduceStep(producer=0), RetryStep(back=1)),
        ),
        (
            {"hw_waits_for_whole_isr": False},
            "Fetch partitions.t-n.hw",
            (
                FetchStep(places=(PartitionFetch(partition=0),), follower=True),
                ProduceStep(),
                FetchStep(places=(PartitionFetch(place="start"),)),
            ),
        ),
    ],
)
def test_a_differing_sequence_is_shrunk_to_the_needed_steps(
    switches: dict[str, Any], kind: str, needed: tuple[Step, ...]
) -> None:
    def compare(steps: Sequence[Step]) -> ComparedSequence:
        return compare_brokers(steps, broker(), broker(**switches))

    idle = ListOffsetsStep(partition=1), ProducerIdStep(), MetadataStep()
    steps = tuple(part for step in needed for part in (*idle, step))
    whole = compare((*steps, *CLOSING))
    assert whole.difference is not None
    assert len(whole.steps) == len(steps)
    least = shrink(whole, compare)
    assert least.steps == needed
    assert least.difference is not None
    assert least.difference.differs
    assert kind in map(str, difference_kind(least.difference))


def test_sequences_depend_only_on_the_seed() -> None:
    """Other draws of random numbers neither change the sequences nor cause a warning."""
    first = seed_sequences(7, sequences(followed=True))
    random.seed(3)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert seed_sequences(7, sequences(followed=True)) == first
    assert seed_sequences(8, sequences(followed=True)) != first
    assert all(steps[-len(CLOSING) :] == CLOSING for steps in first)
    alone = [step for steps in seed_sequences(7, sequences(followed=False)) for step in steps]
    assert not any(isinstance(step, FollowerStep) or getattr(step, "follower", False) for step in alone)


LEADER_ERRORS = {"NONE", "UNKNOWN_TOPIC_OR_PARTITION", "NOT_LEADER_FOR_PARTITION"}
FENCING_ERRORS = {"FENCED_LEADER_EPOCH", "UNKNOWN_LEADER_EPOCH"}
SESSION_ERRORS = {"FETCH_SESSION_ID_NOT_FOUND", "INVALID_FETCH_SESSION_EPOCH"}
PRODUCE_ERRORS = {"REQUEST_TIMED_OUT", "OUT_OF_ORDER_SEQUENCE_NUMBER", "INVALID_PRODUCER_EPOCH"}


@pytest.mark.parametrize(
    ("release", "fenced", "sessions", "produced"),
    [
        ("0.11.0.3", set(), set(), PRODUCE_ERRORS),
        ("2.4.1", FENCING_ERRORS, SESSION_ERRORS, {*PRODUCE_ERRORS, "UNKNOWN_PRODUCER_ID"}),
        ("4.3.1", FENCING_ERRORS, SESSION_ERRORS, PRODUCE_ERRORS),
    ],
)
def test_sequences_reach_every_broker_answer(
    release: str, fenced: set[str], sessions: set[str], produced: set[str]
) -> None:
    """A strategy with four times the weight is drawn four times as often."""
    answered: Counter[tuple[str, str]] = Counter()
    for number in range(6):
        for steps in seed_sequences(number, sequences(followed=True)):
            answered += compare_brokers(steps, broker(release), broker(release)).answered()
    reached = {
        "Produce": {*LEADER_ERRORS, *produced},
        "Fetch": {*LEADER_ERRORS, *fenced, *sessions, "OFFSET_OUT_OF_RANGE"},
        "ListOffsets": {*LEADER_ERRORS, *fenced},
        "OffsetsForLeaderEpoch": {*LEADER_ERRORS, *fenced},
        "InitProducerId": {"NONE"},
        "Metadata": {"NONE"},
    }
    assert set(answered) == {(api, error) for api, errors in reached.items() for error in errors}
    asked = {
        apis: sum(count for (api, _), count in answered.items() if api in apis)
        for apis in (("Produce",), ("Fetch",), ("InitProducerId", "Metadata"))
    }
    assert min(asked["Produce",], asked["Fetch",]) > 4 * asked["InitProducerId", "Metadata"]


def test_answers_are_counted_by_api_and_error() -> None:
    steps = (
        ProduceStep(acks=1),
        FetchStep(places=(PartitionFetch(partition=0), PartitionFetch(partition=7)), follower=False),
        MetadataStep(),
        FollowerStep(does="comes"),
    )
    compared = compare_brokers(steps, broker(), broker())
    assert compared.answered() == {
        ("Produce", "NONE"): 1,
        ("Fetch", "NONE"): 1,
        ("Fetch", "UNKNOWN_TOPIC_OR_PARTITION"): 1,
        ("Metadata", "NONE"): 1,
    }
    assert errors_in({"error": "no answer"}) == ("no answer",)
    assert errors_in({"error": "NONE", "partitions": ["t-0"]}) == ("NONE",)


def test_strategies_are_drawn_by_weight() -> None:
    drawn: list[str] = []

    @settings(max_examples=200, derandomize=True, database=None)
    @given(weighted((9, st.just("often")), (1, st.just("seldom"))))
    def draw(one: str) -> None:
        drawn.append(one)

    draw()
    assert 3 * drawn.count("seldom") < drawn.count("often")
