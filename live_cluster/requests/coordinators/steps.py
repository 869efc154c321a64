"""The steps of sequences for coordinators: members of a group, and instances of applications.

Each request comes from one of a few slots. A slot uses its latest member id and generation, or
producer id and epoch. A step says how far it strays from these, so it stays meaningful when other
steps are left out.
"""

from typing import Final, Literal

from harrow.cluster_model.lazy_dataclass import dataclass

MemberId = Literal["own", "none", "former", "other", "ghost"]
"""The member id in a request: the latest, none, the previous, another slot's, an unknown one."""

Coordinated = Literal["groups", "transactions"]

GROUP: Final = "g"
TOPIC: Final = "t"
MEMBERS: Final = (0, 1, 2, 3)
INSTANCES_OF_MEMBERS: Final = {2: "i", 3: "i"}
"""The static members (KIP-345).

Two slots share a group instance id, so that each fences the other.
"""
OTHER_INSTANCE: Final = "j"
"""The group instance id to which a consumer changes."""
PROTOCOLS: Final = (("range",), ("range", "roundrobin"), ("roundrobin", "range"), ("roundrobin",))
SUBSCRIPTIONS: Final = (("t",), ("t", "u"), ("u",))
"""``t`` is the topic, ``u`` does not exist."""

INSTANCES: Final = (0, 1, 2)
TRANSACTIONAL_IDS: Final = {0: "x", 1: "x", 2: "y"}
"""The transactional ids.

The first two instances share one, so that each makes the other a zombie.
"""


# Groups


@dataclass(frozen=True, slots=True, kw_only=True)
class JoinStep:
    """Join the group. With ``strays``, only a dynamic member sends a group instance id."""

    kind: Literal["join"] = "join"
    member: int = 0
    who: MemberId = "own"
    strays: bool = False
    protocols: int = 0
    subscription: int = 0
    is_short: bool = False
    """Whether the session timeout is shorter than the broker allows."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SyncStep:
    """Ask for an assignment; ``generation`` is relative to the last one, None is -1."""

    kind: Literal["sync"] = "sync"
    member: int = 0
    who: MemberId = "own"
    strays: bool = False
    generation: int | None = 0
    assigns: bool | None = None
    """Whether the request contains the assignments; None: if the member believes that it leads."""


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupHeartbeatStep:
    """Send a heartbeat of a member."""

    kind: Literal["group-heartbeat"] = "group-heartbeat"
    member: int = 0
    who: MemberId = "own"
    strays: bool = False
    generation: int | None = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class LeaveStep:
    """Leave the group."""

    kind: Literal["leave"] = "leave"
    member: int = 0
    who: MemberId = "own"
    strays: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class CommitStep:
    """Commit offsets, as a member or as a client outside the group."""

    kind: Literal["commit"] = "commit"
    member: int = 0
    who: MemberId = "own"
    strays: bool = False
    generation: int | None = 0
    partitions: tuple[int, ...] = (0,)


@dataclass(frozen=True, slots=True, kw_only=True)
class CommittedStep:
    """Fetch the committed offsets; *stable* waits for open transactions (KIP-447)."""

    kind: Literal["committed"] = "committed"
    stable: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class FindStep:
    """Find the coordinator of the group, or of a transactional id."""

    kind: Literal["find"] = "find"
    of: Literal["group", "transactions"] = "group"


# Consumer groups (KIP-848)

Does = Literal["lives", "joins", "restarts", "leaves", "leaves-for-a-while", "strays"]
"""The purpose of a heartbeat, which its member epoch expresses. A member that restarts joins with a
new id; one that strays sends -3, which is not an epoch."""

Owned = Literal["told", "nothing", "all"]
"""The partitions that a member claims to own: those assigned last, none, all of the topic."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ConsumerHeartbeatStep:
    """Send a heartbeat of a consumer group's member; a field that is None has not changed.

    With ``renames`` the member changes its group instance id.
    """

    kind: Literal["consumer-heartbeat"] = "consumer-heartbeat"
    member: int = 0
    does: Does = "lives"
    who: MemberId = "own"
    strays: bool = False
    epoch: int = 0
    subscription: int | None = None
    owned: Owned | None = None
    has_timeout: bool = False
    assignor: str | None = None
    renames: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class ConsumerCommitStep:
    """Commit offsets in a relative member epoch; None is a client outside the group."""

    kind: Literal["consumer-commit"] = "consumer-commit"
    member: int = 0
    who: MemberId = "own"
    epoch: int | None = 0
    partitions: tuple[int, ...] = (0,)


@dataclass(frozen=True, slots=True, kw_only=True)
class ConsumerCommittedStep:
    """Fetch the committed offsets as a member."""

    kind: Literal["consumer-committed"] = "consumer-committed"
    member: int = 0
    who: MemberId = "own"
    epoch: int | None = 0
    stable: bool = False


# Transactions


@dataclass(frozen=True, slots=True, kw_only=True)
class InitStep:
    """Ask for a producer id and epoch; *again* sends the current ones (KIP-360)."""

    kind: Literal["init"] = "init"
    instance: int = 0
    again: bool = False
    epoch: int = 0
    is_too_long: bool = False
    """Whether the transaction timeout is longer than the broker allows."""


Producer = Literal["own", "other", "unknown"]
"""The producer id in a request: the instance's, the next instance's, an unknown one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AddPartitionsStep:
    """Add partitions to a transaction, or (``verifies``) check that it has them, as leaders do.

    With transactions v2 leaders also add them, unless the request ``is_old``.
    """

    kind: Literal["add-partitions"] = "add-partitions"
    instance: int = 0
    producer: Producer = "own"
    epoch: int = 0
    partitions: tuple[int, ...] = (0,)
    verifies: bool = False
    is_old: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class AddOffsetsStep:
    """Add the offsets of the group to a transaction."""

    kind: Literal["add-offsets"] = "add-offsets"
    instance: int = 0
    producer: Producer = "own"
    epoch: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class TxnCommitStep:
    """Commit offsets of the group in a transaction; with a generation, as a member of it (KIP-447).

    The member is one of the group, with a relative generation, or (None) an unknown one, with an
    absolute generation. A request that ``is_old`` has a version before transactions v2.
    """

    kind: Literal["txn-commit"] = "txn-commit"
    instance: int = 0
    producer: Producer = "own"
    epoch: int = 0
    partitions: tuple[int, ...] = (0,)
    generation: int | None = None
    member: int | None = None
    is_old: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class EndTxnStep:
    """Commit or abort a transaction. ``is_old`` is as in `TxnCommitStep`."""

    kind: Literal["end-txn"] = "end-txn"
    instance: int = 0
    producer: Producer = "own"
    epoch: int = 0
    commits: bool = True
    is_old: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class TxnProduceStep:
    """Write in a transaction, or outside of it if not *transactional*.

    Instance None is a producer without an id. ``is_old`` is as in `TxnCommitStep`.
    """

    kind: Literal["txn-produce"] = "txn-produce"
    instance: int | None = 0
    producer: Producer = "own"
    epoch: int = 0
    partition: int = 0
    records: int = 1
    sequence: int = 0
    transactional: bool = True
    is_old: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadStep:
    """Read a partition from its beginning."""

    kind: Literal["read"] = "read"
    partition: int = 0
    committed: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class EndOffsetStep:
    """Ask for the end of a partition, as a consumer."""

    kind: Literal["end-offset"] = "end-offset"
    partition: int = 0
    committed: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class RepeatStep:
    """Repeat an earlier request, as if it arrived late.

    ``back`` counts backwards over all requests except Fetch and ListOffsets.
    """

    kind: Literal["repeat"] = "repeat"
    back: int = 0


GroupStep = (
    JoinStep
    | SyncStep
    | GroupHeartbeatStep
    | LeaveStep
    | CommitStep
    | CommittedStep
    | FindStep
    | ConsumerHeartbeatStep
    | ConsumerCommitStep
    | ConsumerCommittedStep
)
TransactionStep = (
    InitStep
    | AddPartitionsStep
    | AddOffsetsStep
    | TxnCommitStep
    | EndTxnStep
    | TxnProduceStep
    | ReadStep
    | EndOffsetStep
    | CommittedStep
    | FindStep
    | RepeatStep
)
CoordinatorStep = GroupStep | TransactionStep
