"""So many requests of drawn sequences, to the model's broker and to a real one: which of the answers differ."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from itertools import chain, count
from typing import Final

from harrow.cluster_model.release import behaviours_in
from harrow.cluster_model.settings import Value
from harrow.live_cluster.getting.kafka_release import KafkaRelease
from harrow.live_cluster.single_requests.comparison import (
    ComparedSequence,
    compared_sequence,
    kind_of,
    shortest,
)
from harrow.live_cluster.single_requests.model_broker import ModelBroker
from harrow.live_cluster.single_requests.real_broker import RealBrokers
from harrow.live_cluster.single_requests.sequences import drawn_sequences
from harrow.live_cluster.single_requests.steps import Step

SETTINGS: Final[dict[str, Value]] = {
    "replica.lag.time.max.ms": 600_000,
    "replica.fetch.backoff.ms": 200,
    "auto.leader.rebalance.enable": False,
    "max.incremental.fetch.session.cache.slots": 1_000_000,
}
"""Nothing happens by itself: no follower is too slow, no leader is moved, no session is pushed out."""


@dataclass(slots=True)
class Measure:
    """What was compared, and one sequence, the shortest that was found, for each kind of difference."""

    sequences: int = 0
    requests: int = 0
    differing: dict[str, int] = field(default_factory=dict)
    """How many sequences ended in a difference, by its kind."""
    shortest: dict[str, ComparedSequence] = field(default_factory=dict)


def model_broker(release: KafkaRelease) -> ModelBroker:
    """Return a broker that does what is known of a release; by the model's newest one where that is older."""
    return ModelBroker(release.model_release, behaviours_in(release.name), SETTINGS)


def measure(
    release: KafkaRelease,
    real: RealBrokers,
    requests: int,
    first_seed: int,
    measured: Measure,
    on_sequence: Callable[[], None],
) -> None:
    """Compare at least so many requests, and note in *measured* what came of them; the sequences depend on the seed alone.

    A sequence ends where the two differ, and the first of each kind of difference is shortened.

    Raises:
        LiveError: the cluster does not hold out.

    """

    def compare(steps: Sequence[Step]) -> ComparedSequence:
        return compared_sequence(steps, model_broker(release), real.next_broker())

    drawn = chain.from_iterable(
        drawn_sequences(number, followed=real.is_followed) for number in count(first_seed)
    )
    while measured.requests < requests:
        compared = compare(next(drawn))
        measured.sequences += 1
        measured.requests += compared.requests
        if compared.difference is not None:
            kind = kind_of(compared.difference)
            measured.differing[kind] = measured.differing.get(kind, 0) + 1
            if kind not in measured.shortest:
                # Kept as it is, if what follows is interrupted.
                measured.shortest[kind] = compared
                measured.shortest[kind] = shortest(compared, compare)
        on_sequence()
