"""Sequences of steps for coordinators, drawn by Hypothesis."""

from itertools import chain
from typing import Final

from hypothesis import strategies as st

from harrow.cluster_model.release import value_in
from harrow.live_cluster.single_requests.coordinators.steps import (
    INSTANCES,
    MEMBERS,
    PROTOCOLS,
    SUBSCRIPTIONS,
    AddOffsetsStep,
    AddPartitionsStep,
    CommitStep,
    CommittedStep,
    Coordinated,
    CoordinatorStep,
    EndOffsetStep,
    EndTxnStep,
    FindStep,
    GroupHeartbeatStep,
    GroupStep,
    InitStep,
    JoinStep,
    LeaveStep,
    ReadStep,
    RepeatStep,
    SyncStep,
    TransactionStep,
    TxnCommitStep,
    TxnProduceStep,
)

LENGTH: Final = 20
"""Steps that a sequence has at the most, where what belongs together counts as one."""

_SELDOM: Final = st.sampled_from((*(False,) * 7, True))
_MEMBER: Final = st.sampled_from(MEMBERS)
_WHO: Final = st.sampled_from((*("own",) * 8, "none", "former", "other", "ghost"))
_GENERATION: Final = st.sampled_from((*(0,) * 6, -1, 1, None))
_PARTITIONS: Final = st.sampled_from(((0,), (0,), (1,), (0, 1)))

_JOIN: Final = st.builds(
    JoinStep,
    member=_MEMBER,
    who=_WHO,
    strays=_SELDOM,
    protocols=st.sampled_from((0, 0, *range(len(PROTOCOLS)))),
    subscription=st.sampled_from(range(len(SUBSCRIPTIONS))),
    is_short=st.sampled_from((*(False,) * 15, True)),
)
_SYNC: Final = st.builds(
    SyncStep,
    member=_MEMBER,
    who=_WHO,
    strays=_SELDOM,
    generation=_GENERATION,
    assigns=st.sampled_from((None, None, None, True, False)),
)
_HEARTBEAT: Final = st.builds(
    GroupHeartbeatStep, member=_MEMBER, who=_WHO, strays=_SELDOM, generation=_GENERATION
)
_LEAVE: Final = st.builds(LeaveStep, member=_MEMBER, who=_WHO, strays=_SELDOM)
_COMMIT: Final = st.builds(
    CommitStep,
    member=_MEMBER,
    who=_WHO,
    strays=_SELDOM,
    generation=_GENERATION,
    partitions=_PARTITIONS,
)
_COMMITTED: Final = st.builds(CommittedStep, stable=st.booleans())


@st.composite
def _rebalances(draw: st.DrawFn) -> tuple[GroupStep, ...]:
    """Draw members that join, each as often as a dynamic one needs that has no id yet, and may ask what they are to read.

    Step by step a generation comes about seldom: it takes all members.
    """
    members = draw(st.lists(_MEMBER, min_size=1, unique=True))
    protocols = draw(st.sampled_from((0, 1, 2)))
    subscription = draw(st.sampled_from(range(len(SUBSCRIPTIONS))))
    joins = [
        JoinStep(member=member, protocols=protocols, subscription=subscription)
        for member in (*members, *members)
    ]
    syncs = [SyncStep(member=member) for member in members] if draw(st.booleans()) else []
    return (*joins, *syncs)


def group_sequences() -> st.SearchStrategy[tuple[GroupStep, ...]]:
    """Return what draws sequences of requests of groups."""
    step = st.one_of(
        *(_JOIN,) * 3,
        *(_SYNC,) * 3,
        *(_HEARTBEAT,) * 2,
        _LEAVE,
        *(_COMMIT,) * 2,
        _COMMITTED,
        st.just(FindStep()),
    ).map(lambda drawn: (drawn,))
    parts = st.one_of(*(step,) * 4, _rebalances())
    return st.lists(parts, min_size=LENGTH // 2, max_size=LENGTH).map(
        lambda drawn: tuple(chain.from_iterable(drawn))
    )


_INSTANCE: Final = st.sampled_from(INSTANCES)
_PRODUCER: Final = st.sampled_from((*("own",) * 9, "other", "unknown"))
_EPOCH: Final = st.sampled_from((*(0,) * 8, -1, 1))
_PARTITION: Final = st.sampled_from((0, 0, 1))

_INIT: Final = st.builds(
    InitStep,
    instance=_INSTANCE,
    again=st.sampled_from((False, False, True)),
    epoch=_EPOCH,
    is_too_long=st.sampled_from((*(False,) * 9, True)),
)
_ADD_OFFSETS: Final = st.builds(AddOffsetsStep, instance=_INSTANCE, producer=_PRODUCER, epoch=_EPOCH)
_TXN_COMMIT: Final = st.builds(
    TxnCommitStep,
    instance=_INSTANCE,
    producer=_PRODUCER,
    epoch=_EPOCH,
    partitions=_PARTITIONS,
    generation=st.sampled_from((None, None, None, 1)),
)
_END_TXN: Final = st.builds(
    EndTxnStep, instance=_INSTANCE, producer=_PRODUCER, epoch=_EPOCH, commits=st.booleans()
)
_TXN_PRODUCE: Final = st.builds(
    TxnProduceStep,
    instance=st.sampled_from((*INSTANCES, *INSTANCES, None)),
    producer=_PRODUCER,
    epoch=_EPOCH,
    partition=_PARTITION,
    records=st.integers(1, 2),
    sequence=st.sampled_from((*(0,) * 8, -1, 1)),
    transactional=st.sampled_from((*(True,) * 7, False)),
)
_LOOK: Final = st.one_of(
    st.builds(ReadStep, partition=_PARTITION, committed=st.booleans()),
    st.builds(EndOffsetStep, partition=_PARTITION, committed=st.booleans()),
    st.builds(CommittedStep, stable=st.booleans()),
    st.just(FindStep(of="transactions")),
)
_REPEAT: Final = st.builds(RepeatStep, back=st.integers(0, 5))


def _add_partitions() -> st.SearchStrategy[AddPartitionsStep]:
    return st.builds(
        AddPartitionsStep,
        instance=_INSTANCE,
        producer=_PRODUCER,
        epoch=_EPOCH,
        partitions=st.sampled_from(((0,), (0,), (1,), (0, 1), (0, 7))),
        verifies=_SELDOM,
    )


@st.composite
def _transactions(draw: st.DrawFn, *, adds: bool) -> tuple[TransactionStep, ...]:
    """Draw a transaction as an application has it, which may stay open."""
    instance = draw(_INSTANCE)
    begins = (InitStep(instance=instance),) if draw(st.booleans()) else ()
    partition = draw(_PARTITION)
    added = (AddPartitionsStep(instance=instance, partitions=(partition,)),) if adds else ()
    writes = (*added, TxnProduceStep(instance=instance, partition=partition))
    commits: tuple[TransactionStep, ...] = ()
    if draw(st.booleans()):
        commits = (
            *((AddOffsetsStep(instance=instance),) if adds else ()),
            TxnCommitStep(instance=instance),
        )
    ends = (EndTxnStep(instance=instance, commits=draw(st.booleans())),) if draw(st.booleans()) else ()
    return (*begins, *writes, *commits, *ends)


CLOSING: Final[tuple[TransactionStep, ...]] = (
    *(ReadStep(partition=number, committed=committed) for number in (0, 1) for committed in (True, False)),
    CommittedStep(),
)
"""What ends each sequence of transactions: all that there is is read."""


def transaction_sequences(*, adds: bool) -> st.SearchStrategy[tuple[TransactionStep, ...]]:
    """Return what draws sequences of requests of transactions; *adds* where clients add partitions and offsets to them themselves."""
    own: tuple[st.SearchStrategy[TransactionStep], ...] = (_ADD_OFFSETS,) if adds else ()
    step = st.one_of(
        *(_INIT,) * 2,
        *(_add_partitions(),) * 2,
        *own,
        _TXN_COMMIT,
        *(_END_TXN,) * 2,
        *(_TXN_PRODUCE,) * 2,
        *(_LOOK,) * 2,
        _REPEAT,
    ).map(lambda drawn: (drawn,))
    parts = st.one_of(*(step,) * 4, _transactions(adds=adds))
    return st.lists(parts, min_size=LENGTH // 2, max_size=LENGTH).map(
        lambda drawn: (*chain.from_iterable(drawn), *CLOSING)
    )


def coordinator_sequences(
    release: str, coordinated: Coordinated
) -> st.SearchStrategy[tuple[CoordinatorStep, ...]]:
    """Return what draws sequences for coordinators of a release, which clients of that release ask."""
    if coordinated == "groups":
        return group_sequences()
    return transaction_sequences(adds=not value_in(release, "transactions_v2"))
