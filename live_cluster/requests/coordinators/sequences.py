"""Hypothesis strategies for sequences of steps for coordinators."""

from itertools import chain
from typing import Final

from hypothesis import strategies as st

from harrow.cluster_model.lazy_dataclass import replace
from harrow.cluster_model.release.profiles import behaviours_in
from harrow.live_cluster.requests.coordinators.steps import (
    INSTANCES,
    MEMBERS,
    PROTOCOLS,
    SUBSCRIPTIONS,
    AddOffsetsStep,
    AddPartitionsStep,
    CommitStep,
    CommittedStep,
    ConsumerCommitStep,
    ConsumerCommittedStep,
    ConsumerHeartbeatStep,
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
from harrow.live_cluster.requests.drawing import single, weighted

LENGTH: Final = 20
"""The maximum number of parts in a sequence; steps that belong together are one part."""

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


_JOINING_TOGETHER: Final = st.sampled_from(((0,), (0, 1), (0, 1), (2,), (0, 2), (0, 1, 2), (0, 1, 3), (2, 3)))
"""Members that join together. Static members 2 and 3 share an instance id, so the second fences the
first."""


@st.composite
def _rebalances(draw: st.DrawFn, *, may_stop: bool = True) -> tuple[GroupStep, ...]:
    """Draw members that join and sync.

    Each joins twice, because a new dynamic member has no id yet. Single steps seldom complete a
    generation, because that takes all members. With *may_stop*, some rebalances end before a member
    syncs.
    """
    members = draw(_JOINING_TOGETHER)
    protocols = draw(st.sampled_from((0, 1, 2)))
    subscription = draw(st.sampled_from(range(len(SUBSCRIPTIONS))))
    joins = [
        JoinStep(member=member, protocols=protocols, subscription=subscription)
        for member in (*members, *members)
    ]
    stops = may_stop and draw(st.sampled_from((False, False, True)))
    # The leader is seldom known here, so the order of the syncs is drawn.
    syncs = () if stops else tuple(SyncStep(member=member) for member in draw(st.permutations(members)))
    return (*joins, *syncs)


_NOTHING: Final[st.SearchStrategy[tuple[()]]] = st.just(())
_STABLE: Final[st.SearchStrategy[tuple[GroupStep, ...]]] = weighted(
    (7, _rebalances(may_stop=False)), (1, _NOTHING)
)
"""The beginning of most sequences: a stable group."""
_LIVES: Final = st.builds(
    lambda member, partitions: (
        GroupHeartbeatStep(member=member),
        CommitStep(member=member, partitions=partitions),
    ),
    _MEMBER,
    _PARTITIONS,
)
"""The requests of a member between two rebalances."""


def group_sequences() -> st.SearchStrategy[tuple[GroupStep, ...]]:
    """Return a strategy for sequences of classic groups."""
    step: st.SearchStrategy[GroupStep] = weighted(
        (8, _JOIN),
        (8, _SYNC),
        (8, _HEARTBEAT),
        (4, _LEAVE),
        (8, _COMMIT),
        (4, _COMMITTED),
        (1, st.just(FindStep())),
    )
    return _sequences(_STABLE, weighted((6, single(step)), (2, _rebalances()), (2, _LIVES)))


def _sequences(
    beginning: st.SearchStrategy[tuple[GroupStep, ...]], parts: st.SearchStrategy[tuple[GroupStep, ...]]
) -> st.SearchStrategy[tuple[GroupStep, ...]]:
    following = st.lists(parts, min_size=LENGTH // 2, max_size=LENGTH)
    return st.builds(lambda first, rest: (*first, *chain.from_iterable(rest)), beginning, following)


_CONSUMER_HEARTBEAT: Final = st.builds(
    ConsumerHeartbeatStep,
    member=_MEMBER,
    does=st.sampled_from((*("lives",) * 15, "strays")),
    who=_WHO,
    strays=_SELDOM,
    epoch=st.sampled_from((*(0,) * 8, -1, -1, 1)),
    subscription=st.sampled_from((None, None, None, None, None, 0, 1, 2)),
    owned=st.sampled_from((None, None, "told", "told", "told", "nothing", "all")),
    has_timeout=_SELDOM,
    assignor=st.sampled_from((*(None,) * 12, "range", "sorted")),
    renames=_SELDOM,
)
_CONSUMER_JOIN: Final = st.builds(
    ConsumerHeartbeatStep,
    member=_MEMBER,
    does=st.sampled_from(("joins", "joins", "restarts")),
    who=st.sampled_from((*("own",) * 15, "none", "former", "other", "ghost")),
    strays=_SELDOM,
    subscription=st.sampled_from((*(0,) * 8, *(1,) * 4, 2, None)),
    owned=st.sampled_from((*("nothing",) * 15, None, "told", "all")),
    has_timeout=st.sampled_from((*(True,) * 12, False)),
    assignor=st.sampled_from((*(None,) * 6, "range", "sorted")),
    renames=_SELDOM,
)
_CONSUMER_LEAVE: Final = st.builds(
    ConsumerHeartbeatStep,
    member=_MEMBER,
    does=st.sampled_from(("leaves", "leaves-for-a-while")),
    who=_WHO,
    strays=_SELDOM,
)
_CONSUMER_EPOCH: Final = st.sampled_from((*(0,) * 6, -1, 1, None))
_CONSUMER_COMMIT: Final = st.builds(
    ConsumerCommitStep, member=_MEMBER, who=_WHO, epoch=_CONSUMER_EPOCH, partitions=_PARTITIONS
)
_CONSUMER_COMMITTED: Final = st.builds(
    ConsumerCommittedStep, member=_MEMBER, who=_WHO, epoch=_CONSUMER_EPOCH, stable=st.booleans()
)


def _reconciled(members: tuple[int, ...], subscription: int) -> tuple[GroupStep, ...]:
    """Return the steps of members that join and send heartbeats until each has its assignment."""
    joins = tuple(
        ConsumerHeartbeatStep(
            member=member, does="joins", subscription=subscription, owned="nothing", has_timeout=True
        )
        for member in members
    )
    lives = tuple(ConsumerHeartbeatStep(member=member, owned="told") for member in members)
    return (*joins, *lives, *lives)


_RECONCILED: Final = st.builds(_reconciled, _JOINING_TOGETHER, st.sampled_from((0, 1)))
_HANDOVER: Final = st.builds(
    lambda members: tuple(ConsumerHeartbeatStep(member=member, owned="told") for member in members),
    _JOINING_TOGETHER,
)
"""Heartbeats with which partitions move from one member to another."""


def _renamed(members: tuple[int, int], *, leaves: bool) -> tuple[GroupStep, ...]:
    """Return the steps of a static member that leaves its instance id to another."""
    first, second = members
    joins = ConsumerHeartbeatStep(does="joins", subscription=0, owned="nothing", has_timeout=True)
    leaving = (ConsumerHeartbeatStep(member=first, does="leaves", renames=True),) if leaves else ()
    return (
        replace(joins, member=first),
        replace(joins, member=first, renames=True),
        *leaving,
        replace(joins, member=second),
    )


_PREFERS: Final[tuple[GroupStep, ...]] = (
    ConsumerHeartbeatStep(does="joins", subscription=0, owned="nothing", has_timeout=True),
    *(ConsumerHeartbeatStep(owned="told", assignor=assignor) for assignor in ("uniform", None, "range")),
)
"""A lone member that prefers another assignor for a while.

With several members, the ``uniform`` assignment would depend on the order of a Java hash table.
"""
_UNKNOWN: Final[st.SearchStrategy[tuple[GroupStep, ...]]] = st.just(
    (ConsumerHeartbeatStep(who="ghost", epoch=1),)
)
"""A heartbeat for a group that does not exist."""
_RENAMED: Final = st.builds(_renamed, st.sampled_from(((2, 3), (3, 2))), leaves=st.booleans())


def consumer_group_sequences() -> st.SearchStrategy[tuple[GroupStep, ...]]:
    """Return a strategy for sequences of consumer groups (KIP-848)."""
    step: st.SearchStrategy[GroupStep] = weighted(
        (8, _CONSUMER_HEARTBEAT),
        (4, _CONSUMER_JOIN),
        (2, _CONSUMER_LEAVE),
        (4, _CONSUMER_COMMIT),
        (2, _CONSUMER_COMMITTED),
    )
    beginning: st.SearchStrategy[tuple[GroupStep, ...]] = weighted(
        (8, _RECONCILED), (3, st.just(_PREFERS)), (2, _UNKNOWN)
    )
    return _sequences(beginning, weighted((6, single(step)), (1, _RECONCILED), (2, _HANDOVER), (1, _RENAMED)))


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


def _txn_commits(old: st.SearchStrategy[bool]) -> st.SearchStrategy[TransactionStep]:
    return st.builds(
        TxnCommitStep,
        instance=_INSTANCE,
        producer=_PRODUCER,
        epoch=_EPOCH,
        partitions=_PARTITIONS,
        generation=st.sampled_from((None, None, 0, 0, 1, -1)),
        member=st.sampled_from((None, *MEMBERS)),
        is_old=old,
    )


def _ends(old: st.SearchStrategy[bool]) -> st.SearchStrategy[TransactionStep]:
    return st.builds(
        EndTxnStep, instance=_INSTANCE, producer=_PRODUCER, epoch=_EPOCH, commits=st.booleans(), is_old=old
    )


def _writes(old: st.SearchStrategy[bool]) -> st.SearchStrategy[TransactionStep]:
    return st.builds(
        TxnProduceStep,
        instance=st.sampled_from((*INSTANCES, *INSTANCES, None)),
        producer=_PRODUCER,
        epoch=_EPOCH,
        partition=_PARTITION,
        records=st.integers(1, 2),
        sequence=st.sampled_from((*(0,) * 4, -1, 1)),
        transactional=st.sampled_from((*(True,) * 7, False)),
        is_old=old,
    )


_OBSERVATION: Final[st.SearchStrategy[TransactionStep]] = weighted(
    (4, st.builds(ReadStep, partition=_PARTITION, committed=st.sampled_from((True, True, False)))),
    (2, st.builds(EndOffsetStep, partition=_PARTITION, committed=st.booleans())),
    (3, st.builds(CommittedStep, stable=st.booleans())),
    (1, st.just(FindStep(of="transactions"))),
)
_REPEAT: Final = st.builds(RepeatStep, back=st.integers(0, 5))


def _add_partitions(old: st.SearchStrategy[bool]) -> st.SearchStrategy[AddPartitionsStep]:
    return st.builds(
        AddPartitionsStep,
        instance=_INSTANCE,
        producer=_PRODUCER,
        epoch=_EPOCH,
        partitions=st.sampled_from(((0,), (0,), (1,), (0, 1), (0, 7))),
        verifies=_SELDOM,
        is_old=old,
    )


@st.composite
def _transactions(draw: st.DrawFn, old: st.SearchStrategy[bool], *, v2: bool) -> tuple[TransactionStep, ...]:
    """Draw an application's transaction, perhaps without one of its steps or without its end."""
    instance, is_old = draw(_INSTANCE), draw(old)
    adds = is_old or not v2
    partition = draw(_PARTITION)
    parts: list[TransactionStep] = []
    if draw(_SELDOM):
        parts.append(InitStep(instance=instance))
    if adds:
        parts.append(AddPartitionsStep(instance=instance, partitions=(partition,), is_old=is_old))
    parts.append(TxnProduceStep(instance=instance, partition=partition, is_old=is_old))
    if draw(st.booleans()):
        parts += [AddOffsetsStep(instance=instance)] if adds else []
        member = draw(st.sampled_from((None, None, 0, 1)))
        generation = None if member is None else draw(st.sampled_from((0, 0, 0, -1, 1)))
        parts.append(TxnCommitStep(instance=instance, member=member, generation=generation, is_old=is_old))
    if draw(st.sampled_from((True, True, False))):
        parts.append(EndTxnStep(instance=instance, commits=draw(st.booleans()), is_old=is_old))
    if draw(_SELDOM):
        del parts[draw(st.integers(0, len(parts) - 1))]
    return tuple(parts)


_INITIALIZATIONS: Final = st.sampled_from(((0, 2), (0, 2), (0, 1, 2), (1, 2), (0,), (2, 1, 0), ())).map(
    lambda instances: tuple(InitStep(instance=instance) for instance in instances)
)
"""The beginning of most sequences: applications initialize their producers. Otherwise, all other
requests would fail.

Instances 0 and 1 belong to one application: the one that starts first is a zombie from then on.
"""


CLOSING: Final[tuple[TransactionStep, ...]] = (
    *(ReadStep(partition=number, committed=committed) for number in (0, 1) for committed in (True, False)),
    CommittedStep(),
)
"""The end of every sequence of transactions: all records and committed offsets are read."""


def transaction_sequences(*, v2: bool, assigns: bool) -> st.SearchStrategy[tuple[CoordinatorStep, ...]]:
    """Return a strategy for sequences of transactions.

    With *v2*, some requests use transactions v2 and others do not; with *assigns*, there are
    consumer groups (KIP-848).
    """
    old = st.sampled_from((False, False, True)) if v2 else st.just(value=False)
    step: st.SearchStrategy[TransactionStep] = weighted(
        (2, _INIT),
        (2 if v2 else 3, _add_partitions(old)),
        (1, _ADD_OFFSETS),
        (2, _txn_commits(old)),
        (3, _ends(old)),
        (4, _writes(old)),
        (3, _OBSERVATION),
        (2, _REPEAT),
    )
    parts: st.SearchStrategy[tuple[TransactionStep, ...]] = weighted(
        (5, single(step)), (3, _transactions(old, v2=v2))
    )
    group: st.SearchStrategy[tuple[GroupStep, ...]] = weighted(
        (2, _rebalances(may_stop=False)), (1 if assigns else 0, _RECONCILED), (2, _NOTHING)
    )
    return st.builds(
        lambda starts, joins, rest: (*starts, *joins, *chain.from_iterable(rest), *CLOSING),
        _INITIALIZATIONS,
        group,
        st.lists(parts, min_size=LENGTH // 2, max_size=LENGTH),
    )


def coordinator_sequences(
    release: str, coordinated: Coordinated
) -> st.SearchStrategy[tuple[CoordinatorStep, ...]]:
    """Return a strategy for sequences that clients of a release send to its coordinators."""
    assigns = behaviours_in(release).groups.consumer_group_protocol
    if coordinated == "groups":
        classic = group_sequences()
        return weighted((1, classic), (1, consumer_group_sequences())) if assigns else classic
    return transaction_sequences(v2=behaviours_in(release).transactions.transactions_v2, assigns=assigns)
