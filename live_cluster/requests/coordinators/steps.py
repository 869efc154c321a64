"""The steps of sequences for coordinators: what members of a group ask, and what instances of transactional applications do.

Who asks is one of a few slots, and goes by what it was told last: its member id and the group's generation, or its producer id and
epoch. A step says how far it strays from that, so that it still means something when steps are left out.
"""

from dataclasses import dataclass
from typing import Final, Literal

Who = Literal["own", "none", "former", "other", "ghost"]
"""Which member id a request has: the one that was told last, none, the one before, another slot's, one that was never given."""

Coordinated = Literal["groups", "transactions"]
"""What a sequence is about."""

GROUP: Final = "g"
TOPIC: Final = "t"
MEMBERS: Final = (0, 1, 2, 3)
INSTANCES_OF_MEMBERS: Final = {2: "i", 3: "i"}
"""The static members (KIP-345): two slots have one group instance id, so that each fences the other."""
OTHER_INSTANCE: Final = "j"
"""The group instance id of a consumer that renames itself."""
PROTOCOLS: Final = (("range",), ("range", "roundrobin"), ("roundrobin", "range"), ("roundrobin",))
SUBSCRIPTIONS: Final = (("t",), ("t", "u"), ("u",))
"""The topic, and one that there is not."""

INSTANCES: Final = (0, 1, 2)
TRANSACTIONAL_IDS: Final = {0: "x", 1: "x", 2: "y"}
"""The transactional ids: the first two instances have one, so that each is the other's zombie."""


# Groups


@dataclass(frozen=True, slots=True, kw_only=True)
class JoinStep:
    """A member joins; ``strays`` is one of a static member that names no instance, or of another that does."""

    kind: Literal["join"] = "join"
    member: int = 0
    who: Who = "own"
    strays: bool = False
    protocols: int = 0
    subscription: int = 0
    is_short: bool = False
    """Whether it asks for a session that is shorter than the broker allows."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SyncStep:
    """A member asks what it is to read, and brings the assignment where it *assigns*; generation relative to the last, None for -1."""

    kind: Literal["sync"] = "sync"
    member: int = 0
    who: Who = "own"
    strays: bool = False
    generation: int | None = 0
    assigns: bool | None = None
    """None: where it leads, as far as it was told."""


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupHeartbeatStep:
    """A member is alive."""

    kind: Literal["group-heartbeat"] = "group-heartbeat"
    member: int = 0
    who: Who = "own"
    strays: bool = False
    generation: int | None = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class LeaveStep:
    """A member leaves."""

    kind: Literal["leave"] = "leave"
    member: int = 0
    who: Who = "own"
    strays: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class CommitStep:
    """A member, or a client outside the group, commits offsets."""

    kind: Literal["commit"] = "commit"
    member: int = 0
    who: Who = "own"
    strays: bool = False
    generation: int | None = 0
    partitions: tuple[int, ...] = (0,)


@dataclass(frozen=True, slots=True, kw_only=True)
class CommittedStep:
    """Somebody asks where the group is; one that is *stable* waits for open transactions (KIP-447)."""

    kind: Literal["committed"] = "committed"
    stable: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class FindStep:
    """A client looks for the coordinator of the group, or of a transactional id."""

    kind: Literal["find"] = "find"
    of: Literal["group", "transactions"] = "group"


# Groups whose coordinator assigns (KIP-848)

Does = Literal["lives", "joins", "restarts", "leaves", "leaves-for-a-while", "strays"]
"""What a heartbeat is sent for: the member epoch says it. Who restarts joins with an id that is new; -3 is no epoch at all."""

Owned = Literal["told", "nothing", "all"]
"""Of which partitions a member says that it owns them: those that it was told last, none, all of the topic."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ConsumerHeartbeatStep:
    """A member of a group whose coordinator assigns joins, lives or leaves; what it does not say has not changed.

    One that *renames* itself takes another group instance id.
    """

    kind: Literal["consumer-heartbeat"] = "consumer-heartbeat"
    member: int = 0
    does: Does = "lives"
    who: Who = "own"
    strays: bool = False
    epoch: int = 0
    subscription: int | None = None
    owned: Owned | None = None
    has_timeout: bool = False
    assignor: str | None = None
    renames: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class ConsumerCommitStep:
    """A member commits offsets, in its epoch or beside it; None is a commit of a client outside the group."""

    kind: Literal["consumer-commit"] = "consumer-commit"
    member: int = 0
    who: Who = "own"
    epoch: int | None = 0
    partitions: tuple[int, ...] = (0,)


@dataclass(frozen=True, slots=True, kw_only=True)
class ConsumerCommittedStep:
    """A member asks where its group is."""

    kind: Literal["consumer-committed"] = "consumer-committed"
    member: int = 0
    who: Who = "own"
    epoch: int | None = 0
    stable: bool = False


# Transactions


@dataclass(frozen=True, slots=True, kw_only=True)
class InitStep:
    """An instance asks for its producer id and epoch; *again* it says which it has (KIP-360)."""

    kind: Literal["init"] = "init"
    instance: int = 0
    again: bool = False
    epoch: int = 0
    is_too_long: bool = False
    """Whether it asks for a longer transaction timeout than the broker allows."""


Producer = Literal["own", "other", "unknown"]
"""Whose producer id a request has: the instance's, the next one's, one that was never given out."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AddPartitionsStep:
    """An instance adds partitions to its transaction, or, as a leader does, somebody asks whether they are in it."""

    kind: Literal["add-partitions"] = "add-partitions"
    instance: int = 0
    producer: Producer = "own"
    epoch: int = 0
    partitions: tuple[int, ...] = (0,)
    verifies: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class AddOffsetsStep:
    """An instance adds the offsets of the group to its transaction."""

    kind: Literal["add-offsets"] = "add-offsets"
    instance: int = 0
    producer: Producer = "own"
    epoch: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class TxnCommitStep:
    """An instance commits offsets of the group in its transaction; as a member of it where a generation is given (KIP-447).

    That is one of the group's, with a generation relative to its last, or one that was never given, with that generation.
    """

    kind: Literal["txn-commit"] = "txn-commit"
    instance: int = 0
    producer: Producer = "own"
    epoch: int = 0
    partitions: tuple[int, ...] = (0,)
    generation: int | None = None
    member: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class EndTxnStep:
    """An instance commits its transaction, or aborts it."""

    kind: Literal["end-txn"] = "end-txn"
    instance: int = 0
    producer: Producer = "own"
    epoch: int = 0
    commits: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class TxnProduceStep:
    """An instance writes in its transaction, or outside of it where it is not *transactional*; None is a producer without an id."""

    kind: Literal["txn-produce"] = "txn-produce"
    instance: int | None = 0
    producer: Producer = "own"
    epoch: int = 0
    partition: int = 0
    records: int = 1
    sequence: int = 0
    transactional: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadStep:
    """A consumer reads a partition from its beginning."""

    kind: Literal["read"] = "read"
    partition: int = 0
    committed: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class EndOffsetStep:
    """A consumer asks where a partition ends."""

    kind: Literal["end-offset"] = "end-offset"
    partition: int = 0
    committed: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class RepeatStep:
    """A request that was sent before comes once more, late: of those to a coordinator and those that write, so many back."""

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
