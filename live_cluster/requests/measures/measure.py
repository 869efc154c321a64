"""Compares the answers of the model and of a real server to many requests, in drawn sequences."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import field
from itertools import cycle
from typing import Any, Final, Literal

from harrow.cluster_model.lazy_dataclass import dataclass
from harrow.cluster_model.release.profiles import behaviours_in
from harrow.cluster_model.settings import BROKER, Value
from harrow.cluster_model.settings import SETTINGS as KAFKA_SETTINGS
from harrow.live_cluster.releases.kafka_release import KafkaRelease
from harrow.live_cluster.requests.brokers.comparison import compare_brokers
from harrow.live_cluster.requests.brokers.model_broker import ModelBroker
from harrow.live_cluster.requests.brokers.real_broker import RealBrokers
from harrow.live_cluster.requests.brokers.sequences import sequences
from harrow.live_cluster.requests.comparison import (
    ComparedSequence,
    DifferingPlace,
    SequenceEndedError,
    difference_kind,
    shrink,
)
from harrow.live_cluster.requests.controllers.comparison import compare_controllers
from harrow.live_cluster.requests.controllers.model_controller import ModelController
from harrow.live_cluster.requests.controllers.real_controller import (
    SETTINGS as CONTROLLER_SETTINGS,
)
from harrow.live_cluster.requests.controllers.sequences import controller_sequences
from harrow.live_cluster.requests.coordinators.comparison import compare_coordinators
from harrow.live_cluster.requests.coordinators.model_coordinator import ModelCoordinator
from harrow.live_cluster.requests.coordinators.real_coordinator import RealCoordinators
from harrow.live_cluster.requests.coordinators.sequences import coordinator_sequences
from harrow.live_cluster.requests.coordinators.steps import Coordinated
from harrow.live_cluster.requests.drawing import all_sequences

SETTINGS: Final[dict[str, Value]] = {
    "replica.lag.time.max.ms": 600_000,
    "replica.fetch.backoff.ms": 200,
    "auto.leader.rebalance.enable": False,
    "max.incremental.fetch.session.cache.slots": 1_000_000,
}
"""Nothing happens by itself: no follower is too slow, no leader moves, no session is evicted."""

COORDINATOR_SETTINGS: Final[dict[str, Value]] = {
    "offsets.topic.num.partitions": 1,
    "offsets.topic.replication.factor": 1,
    "transaction.state.log.num.partitions": 1,
    "transaction.state.log.replication.factor": 1,
    "transaction.state.log.min.isr": 1,
    "group.initial.rebalance.delay.ms": 0,
}
"""One broker coordinates everything, and an empty group does not wait for more members."""
CONSUMER_GROUP_SETTINGS: Final[dict[str, Value]] = {
    "group.consumer.assignors": "range,uniform",
    "group.consumer.assignment.interval.ms": 0,
    "group.consumer.max.size": 3,
}
"""For consumer groups (KIP-848): assignments are immediate and depend only on the members' names,
and a group can be full."""
_SINGLE_THREADED: Final[dict[str, Value]] = {
    "num.network.threads": 1,
    "num.io.threads": 1,
    "log.cleaner.enable": False,
}
"""The broker reads and handles one request after the other, so pending requests are known."""
_IMMEDIATE_ASSIGNMENT: Final[dict[str, Value]] = {
    **CONSUMER_GROUP_SETTINGS,
    "group.consumer.assignor.offload.enable": False,
    "group.consumer.session.timeout.ms": 600_000,
    "group.consumer.max.session.timeout.ms": 600_000,
}
"""The coordinator assigns before it answers, and no session ends, even on a busy machine."""


def real_coordinator_settings(release: KafkaRelease) -> dict[str, Value]:
    """Return the settings of a real coordinator: the model's and some more."""
    assigns = behaviours_in(release.name).groups.consumer_group_protocol
    return {**COORDINATOR_SETTINGS, **_SINGLE_THREADED, **(_IMMEDIATE_ASSIGNMENT if assigns else {})}


Compare = Callable[[Sequence[Any]], ComparedSequence]
"""Takes steps on the model and on the real side."""

Recipient = Literal["broker", "controller", "groups", "transactions"]
"""The recipient of a sequence: a broker, a KRaft controller, or a coordinator."""


@dataclass(slots=True)
class RequestTally:
    """The number of requests to one recipient, and of sequences that ended in a difference."""

    sequences: int = 0
    requests: int = 0
    differing: int = 0
    answered: dict[str, dict[str, int]] = field(default_factory=dict)
    """The number of answers by API and error, which shows what the requests reach."""


@dataclass(slots=True)
class Measure:
    """Tallies by recipient, and the shortest sequence for each kind of difference.

    Broker and controller have separate tallies: with KRaft they take turns.
    """

    tallies: dict[Recipient, RequestTally] = field(default_factory=dict)
    differing: dict[tuple[DifferingPlace, ...], int] = field(default_factory=dict)
    """The number of sequences that ended in a difference, by its kind."""
    shortest: dict[tuple[DifferingPlace, ...], ComparedSequence] = field(default_factory=dict)
    ended_in: ComparedSequence | None = None
    """The sequence in which the real side failed; it is not a difference and does not count."""

    @property
    def sequences(self) -> int:
        return sum(tally.sequences for tally in self.tallies.values())

    @property
    def requests(self) -> int:
        return sum(tally.requests for tally in self.tallies.values())

    def add(self, recipient: Recipient, compared: ComparedSequence) -> None:
        """Count a sequence."""
        tally = self.tallies.setdefault(recipient, RequestTally())
        tally.sequences += 1
        tally.requests += compared.requests
        tally.differing += compared.difference is not None
        for (api, error), count in sorted(compared.answered().items()):
            error_counts = tally.answered.setdefault(api, {})
            error_counts[error] = error_counts.get(error, 0) + count


def model_broker(release: KafkaRelease) -> ModelBroker:
    """Return a broker with the behaviours of a release.

    Its defaults are those of a release in the model.
    """
    return ModelBroker(release.model_release, behaviours_in(release.name), SETTINGS)


def model_controller(release: KafkaRelease) -> ModelController:
    return ModelController(
        release.model_release, behaviours_in(release.name), {**SETTINGS, **CONTROLLER_SETTINGS}
    )


def model_coordinator(release: KafkaRelease) -> ModelCoordinator:
    return ModelCoordinator(release.model_release, behaviours_in(release.name), coordinator_settings(release))


def coordinator_settings(release: KafkaRelease) -> dict[str, Value]:
    """Return the settings of a coordinator of the model that exist in the release."""
    existing = {
        name: value
        for name, value in CONSUMER_GROUP_SETTINGS.items()
        if KAFKA_SETTINGS[BROKER, name].exists_in(release.model_release)
    }
    return {**COORDINATOR_SETTINGS, **existing}


def measure_coordinators(
    release: KafkaRelease,
    real: RealCoordinators,
    coordinated: Coordinated,
    requests: int,
    first_seed: int,
    measured: Measure,
    on_sequence: Callable[[], None],
) -> None:
    """Compare requests to coordinators, as `measure` compares those to brokers."""

    def compare(steps: Sequence[Any]) -> ComparedSequence:
        return compare_coordinators(steps, model_coordinator(release), real.next_coordinator())

    sequences = all_sequences(coordinator_sequences(release.name, coordinated), first_seed)
    _measure(cycle([(coordinated, compare, sequences)]), requests, measured, on_sequence)


def measure(
    release: KafkaRelease,
    real: RealBrokers,
    requests: int,
    first_seed: int,
    measured: Measure,
    on_sequence: Callable[[], None],
) -> None:
    """Compare at least this many requests, and add the results to *measured*.

    The sequences depend on the seed alone. With KRaft, every other sequence is for the controller.
    A sequence ends at the first difference. For each kind of difference, the first sequence is
    shrunk. Raise `LiveError` if the cluster fails.
    """

    def of_broker(steps: Sequence[Any]) -> ComparedSequence:
        return compare_brokers(steps, model_broker(release), real.next_broker())

    def of_controller(steps: Sequence[Any]) -> ComparedSequence:
        controller = real.next_controller()
        assert controller is not None, "KRaft has controllers"
        return compare_controllers(steps, model_controller(release), controller)

    for_brokers = sequences(followed=real.is_followed)
    kinds: list[tuple[Recipient, Compare, Iterator[Sequence[Any]]]] = [
        ("broker", of_broker, all_sequences(for_brokers, first_seed))
    ]
    if not real.is_followed:
        kinds.append(("controller", of_controller, all_sequences(controller_sequences(), first_seed)))
    _measure(cycle(kinds), requests, measured, on_sequence)


def _measure(
    kinds: Iterable[tuple[Recipient, Compare, Iterator[Sequence[Any]]]],
    requests: int,
    measured: Measure,
    on_sequence: Callable[[], None],
) -> None:
    for recipient, compare, sequences_left in kinds:
        if measured.requests >= requests:
            return
        try:
            compared = compare(next(sequences_left))
        except SequenceEndedError as error:
            measured.ended_in = error.sequence
            raise
        measured.add(recipient, compared)
        if compared.difference is not None:
            kind = difference_kind(compared.difference)
            measured.differing[kind] = measured.differing.get(kind, 0) + 1
            if kind not in measured.shortest:
                # Keep the long sequence in case shrinking is interrupted.
                measured.shortest[kind] = compared
                measured.shortest[kind] = shrink(compared, compare)
        on_sequence()
