"""So many requests of drawn sequences, to the model's broker and to a real one: which of the answers differ."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import cycle
from typing import Any, Final, Literal

from harrow.cluster_model.release.profiles import behaviours_in
from harrow.cluster_model.settings import BROKER, Value
from harrow.cluster_model.settings import SETTINGS as KAFKA_SETTINGS
from harrow.live_cluster.releases.kafka_release import KafkaRelease
from harrow.live_cluster.requests.brokers.comparison import compared_sequence
from harrow.live_cluster.requests.brokers.model_broker import ModelBroker
from harrow.live_cluster.requests.brokers.real_broker import RealBrokers
from harrow.live_cluster.requests.brokers.sequences import sequences
from harrow.live_cluster.requests.comparison import (
    ComparedSequence,
    DifferingPlace,
    SequenceEndedError,
    kind_of,
    shortest,
)
from harrow.live_cluster.requests.controllers.comparison import compared_controllers
from harrow.live_cluster.requests.controllers.model_controller import ModelController
from harrow.live_cluster.requests.controllers.real_controller import (
    SETTINGS as CONTROLLER_SETTINGS,
)
from harrow.live_cluster.requests.controllers.sequences import controller_sequences
from harrow.live_cluster.requests.coordinators.comparison import compared_coordinators
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
"""Nothing happens by itself: no follower is too slow, no leader is moved, no session is pushed out."""


COORDINATOR_SETTINGS: Final[dict[str, Value]] = {
    "offsets.topic.num.partitions": 1,
    "offsets.topic.replication.factor": 1,
    "transaction.state.log.num.partitions": 1,
    "transaction.state.log.replication.factor": 1,
    "transaction.state.log.min.isr": 1,
    "group.initial.rebalance.delay.ms": 0,
}
"""One broker coordinates all, and a group that is empty waits for no member."""
CONSUMER_GROUP_SETTINGS: Final[dict[str, Value]] = {
    "group.consumer.assignors": "range,uniform",
    "group.consumer.assignment.interval.ms": 0,
    "group.consumer.max.size": 3,
}
"""Of groups whose coordinator assigns (KIP-848): it does so at once, in an order that follows from the members' names, and they may be full."""
_ONE_AFTER_THE_OTHER: Final[dict[str, Value]] = {
    "num.network.threads": 1,
    "num.io.threads": 1,
    "log.cleaner.enable": False,
}
"""One request is read and handled after the other, so that it can be told which are not answered yet."""
_ASSIGNED_AT_ONCE: Final[dict[str, Value]] = {
    **CONSUMER_GROUP_SETTINGS,
    "group.consumer.assignor.offload.enable": False,
    "group.consumer.session.timeout.ms": 600_000,
    "group.consumer.max.session.timeout.ms": 600_000,
}
"""An assignment is made before the request is answered that has led to it, and no session ends, however busy the machine."""


def real_coordinator_settings(release: KafkaRelease) -> dict[str, Value]:
    """Return the settings of a real coordinator: those of the model's, and what the model has no use for."""
    assigns = behaviours_in(release.name).groups.consumer_group_protocol
    return {**COORDINATOR_SETTINGS, **_ONE_AFTER_THE_OTHER, **(_ASSIGNED_AT_ONCE if assigns else {})}


Compare = Callable[[Sequence[Any]], ComparedSequence]
"""Takes steps on the model and on what is real."""


Asked = Literal["broker", "controller", "groups", "transactions"]
"""Whom a sequence is for: a broker, a controller of KRaft, a broker as coordinator of one or the other."""


@dataclass(slots=True)
class RequestTally:
    """How much one of them was asked, and how many of the sequences ended in a difference."""

    sequences: int = 0
    requests: int = 0
    differing: int = 0
    answered: dict[str, dict[str, int]] = field(default_factory=dict)
    """How often each error was answered, by API: what the requests came to, and so what they reach."""


@dataclass(slots=True)
class Measure:
    """What was compared, and one sequence, the shortest that was found, for each kind of difference.

    Broker and controller are counted apart: with KRaft they take turns, and an answer of the one says nothing of the other.
    """

    tallies: dict[Asked, RequestTally] = field(default_factory=dict)
    differing: dict[tuple[DifferingPlace, ...], int] = field(default_factory=dict)
    """How many sequences ended in a difference, by its kind."""
    shortest: dict[tuple[DifferingPlace, ...], ComparedSequence] = field(default_factory=dict)
    ended_in: ComparedSequence | None = None
    """The sequence in which what is real did not hold out: no difference, and not counted."""

    @property
    def sequences(self) -> int:
        return sum(tally.sequences for tally in self.tallies.values())

    @property
    def requests(self) -> int:
        return sum(tally.requests for tally in self.tallies.values())

    def add(self, asked: Asked, compared: ComparedSequence) -> None:
        """Count a sequence."""
        tally = self.tallies.setdefault(asked, RequestTally())
        tally.sequences += 1
        tally.requests += compared.requests
        tally.differing += compared.difference is not None
        for (api, error), count in sorted(compared.answered().items()):
            of_api = tally.answered.setdefault(api, {})
            of_api[error] = of_api.get(error, 0) + count


def model_broker(release: KafkaRelease) -> ModelBroker:
    """Return a broker that does what is known of a release; by the model's newest one where that is older."""
    return ModelBroker(release.model_release, behaviours_in(release.name), SETTINGS)


def model_controller(release: KafkaRelease) -> ModelController:
    """Return a controller that does what is known of a release."""
    return ModelController(
        release.model_release, behaviours_in(release.name), {**SETTINGS, **CONTROLLER_SETTINGS}
    )


def model_coordinator(release: KafkaRelease) -> ModelCoordinator:
    """Return a broker that does what is known of a release, as coordinator."""
    return ModelCoordinator(release.model_release, behaviours_in(release.name), coordinator_settings(release))


def coordinator_settings(release: KafkaRelease) -> dict[str, Value]:
    """Return the settings of a coordinator of the model, those that its release has."""
    own = {
        name: value
        for name, value in CONSUMER_GROUP_SETTINGS.items()
        if KAFKA_SETTINGS[BROKER, name].exists_in(release.model_release)
    }
    return {**COORDINATOR_SETTINGS, **own}


def measure_coordinators(
    release: KafkaRelease,
    real: RealCoordinators,
    coordinated: Coordinated,
    requests: int,
    first_seed: int,
    measured: Measure,
    on_sequence: Callable[[], None],
) -> None:
    """Compare at least so many requests to coordinators, as `measure` does those to brokers.

    Raises:
        LiveError: the cluster does not hold out.

    """

    def compare(steps: Sequence[Any]) -> ComparedSequence:
        return compared_coordinators(steps, model_coordinator(release), real.next_coordinator())

    drawn = all_sequences(coordinator_sequences(release.name, coordinated), first_seed)
    _measure(cycle([(coordinated, compare, drawn)]), requests, measured, on_sequence)


def measure(
    release: KafkaRelease,
    real: RealBrokers,
    requests: int,
    first_seed: int,
    measured: Measure,
    on_sequence: Callable[[], None],
) -> None:
    """Compare at least so many requests, and note in *measured* what came of them; the sequences depend on the seed alone.

    With KRaft every other sequence is one for the controller.

    A sequence ends where the two differ, and the first of each kind of difference is shortened.

    Raises:
        LiveError: the cluster does not hold out.

    """

    def of_broker(steps: Sequence[Any]) -> ComparedSequence:
        return compared_sequence(steps, model_broker(release), real.next_broker())

    def of_controller(steps: Sequence[Any]) -> ComparedSequence:
        controller = real.next_controller()
        assert controller is not None, "it has one where there is no follower"
        return compared_controllers(steps, model_controller(release), controller)

    for_brokers = sequences(followed=real.is_followed)
    kinds: list[tuple[Asked, Compare, Iterator[Sequence[Any]]]] = [
        ("broker", of_broker, all_sequences(for_brokers, first_seed))
    ]
    if not real.is_followed:
        kinds.append(("controller", of_controller, all_sequences(controller_sequences(), first_seed)))
    _measure(cycle(kinds), requests, measured, on_sequence)


def _measure(
    kinds: Iterable[tuple[Asked, Compare, Iterator[Sequence[Any]]]],
    requests: int,
    measured: Measure,
    on_sequence: Callable[[], None],
) -> None:
    for asked, compare, drawn in kinds:
        if measured.requests >= requests:
            return
        try:
            compared = compare(next(drawn))
        except SequenceEndedError as error:
            measured.ended_in = error.sequence
            raise
        measured.add(asked, compared)
        if compared.difference is not None:
            kind = kind_of(compared.difference)
            measured.differing[kind] = measured.differing.get(kind, 0) + 1
            if kind not in measured.shortest:
                # Kept as it is, if what follows is interrupted.
                measured.shortest[kind] = compared
                measured.shortest[kind] = shortest(compared, compare)
        on_sequence()
