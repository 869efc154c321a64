"""Hypothesis strategies for sequences of steps for brokers."""

from itertools import chain
from typing import Final

from hypothesis import strategies as st

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
from harrow.live_cluster.requests.drawing import single, weighted

LENGTH: Final = 30
"""The maximum number of steps in a sequence, without the closing ones."""

_PARTITION: Final = st.sampled_from((*(0,) * 9, *(1,) * 4, 7))
"""Partition 7 does not exist."""
_EPOCH: Final = st.sampled_from((0, 0, 0, 0, None, -1, 1))
_ACKS: Final = st.sampled_from((1, 1, -1))

_PRODUCE: Final = st.builds(
    ProduceStep,
    partition=_PARTITION,
    records=st.integers(1, 3),
    acks=_ACKS,
    producer=st.sampled_from((None, 0, 0, 0, 1)),
    epoch=st.sampled_from((0, 0, 0, 0, 1, 2)),
    sequence=st.sampled_from((0, 0, 0, 0, 0, 0, None, -1, -2, 1, 3)),
)
_RETRY: Final = st.builds(RetryStep, partition=_PARTITION, back=st.integers(0, 6), acks=_ACKS)
_PLACE: Final = st.builds(
    PartitionFetch,
    partition=_PARTITION,
    place=st.sampled_from(("start", "hw", "end", "end")),
    plus=st.sampled_from((0, 0, 0, 0, 1, -1, -2, 5)),
    epoch=_EPOCH,
)
_PLACES: Final = st.lists(_PLACE, max_size=2, unique_by=lambda place: place.partition).map(tuple)


def _fetches(followers: st.SearchStrategy[bool]) -> st.SearchStrategy[FetchStep]:
    return st.builds(
        FetchStep,
        places=_PLACES,
        follower=followers,
        committed=st.booleans(),
        session=st.sampled_from(("none", "new", "last", "last", "last", "first", "unknown", "close")),
        session_epoch=st.sampled_from((0, 0, 0, 0, 0, -1, 1)),
        forgotten=st.lists(st.sampled_from((0, 1)), max_size=1).map(tuple),
        waits=st.sampled_from((False, False, False, True)),
        racks=st.booleans(),
    )


def _ends(followers: st.SearchStrategy[bool]) -> st.SearchStrategy[ListOffsetsStep]:
    return st.builds(
        ListOffsetsStep, partition=_PARTITION, follower=followers, committed=st.booleans(), epoch=_EPOCH
    )


_REPLICATION: Final = st.builds(
    FetchStep,
    places=st.lists(
        st.builds(
            PartitionFetch,
            partition=st.sampled_from((0, 0, 1)),
            place=st.sampled_from(("end", "end", "hw")),
            plus=st.sampled_from((0, 0, 0, -1)),
        ),
        min_size=1,
        max_size=2,
        unique_by=lambda place: place.partition,
    ).map(tuple),
    follower=st.just(value=True),
)
"""A fetch of a follower that keeps up."""
_EPOCH_END: Final = st.builds(
    EpochEndStep, partition=_PARTITION, epoch=_EPOCH, requested=st.sampled_from((0, 0, -1, -2, -3, 1))
)
_FOLLOWER: Final = st.builds(FollowerStep, does=st.sampled_from(("comes", "comes", "goes", "leads")))
_COMES: Final = (
    FollowerStep(does="comes"),
    *(FetchStep(places=(PartitionFetch(partition=number),), follower=True) for number in (0, 1)),
)
_LEADS: Final = FollowerStep(does="leads")
_GOES: Final = FollowerStep(does="goes")
_CATCHING_UP: Final[st.SearchStrategy[tuple[Step, ...]]] = st.sampled_from(
    (
        _COMES,
        (*_COMES, _LEADS),
        (*_COMES, _LEADS, _GOES),
        (*_COMES, _LEADS, _GOES, *_COMES),
    )
)
"""A follower that enters all ISRs and may lead then; single steps seldom achieve that."""
_CLIENT_STEPS: Final[tuple[tuple[int, st.SearchStrategy[Step]], ...]] = (
    (4, _PRODUCE),
    (2, _RETRY),
    (1, _EPOCH_END),
    (1, st.sampled_from((ProducerIdStep(), MetadataStep()))),
)


def sequences(*, followed: bool) -> st.SearchStrategy[tuple[Step, ...]]:
    """Return a strategy for sequences; unless *followed*, no follower fetches or is elected."""
    if not followed:
        never = st.just(value=False)
        alone = weighted(*_CLIENT_STEPS, (2, _fetches(never)), (1, _ends(never)))
        return st.lists(alone, min_size=LENGTH // 2, max_size=LENGTH).map(tuple)
    followers = st.booleans()
    step: st.SearchStrategy[Step] = weighted(
        *_CLIENT_STEPS,
        (3, _fetches(followers)),
        (2, _REPLICATION),
        (1, _ends(followers)),
        (1, _FOLLOWER),
    )
    parts = weighted((6, single(step)), (1, _CATCHING_UP))
    return st.lists(parts, min_size=LENGTH // 2, max_size=LENGTH).map(
        lambda steps: (*chain.from_iterable(steps), *CLOSING)
    )
