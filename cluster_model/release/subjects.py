"""Lists the subjects of switches, and the library campaign that exercises each."""

from typing import Final

from harrow.cluster_model.lazy_dataclass import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Subject:
    """A part of Kafka to which switches belong, and the library campaign that exercises it.

    Runs of that campaign with its first ``seeds`` seeds, in all variants or in one ``variant``,
    read each switch of the subject, except for switches whose ``is_read_in_campaign`` is False.
    ``is_kraft_only`` marks subjects that only KRaft has. ``needs_coordinators`` marks subjects that
    need groups or transactions.
    """

    name: str
    campaign: str
    variant: str | None = None
    seeds: int = 1
    is_kraft_only: bool = False
    needs_coordinators: bool = False


REPLICATION: Final = Subject(name="replication", campaign="swarm", seeds=20)
TRUNCATION: Final = Subject(
    name="followers that have diverged from their leader", campaign="swarm-kraft", seeds=20
)
CLIENTS: Final = Subject(name="producers and consumers", campaign="swarm", seeds=20)
UNKNOWN_PRODUCERS: Final = Subject(name="producers without state in a log", campaign="swarm-disks", seeds=20)
ZOOKEEPER: Final = Subject(name="the control plane in ZooKeeper", campaign="swarm", seeds=20)
KRAFT: Final = Subject(
    name="the control plane in KRaft", campaign="swarm-kraft", seeds=20, is_kraft_only=True
)
DISKS: Final = Subject(name="logs and their disks", campaign="swarm-disks", seeds=20)
KRAFT_DISKS: Final = Subject(
    name="disks with KRaft", campaign="swarm-disks", variant="kraft", seeds=20, is_kraft_only=True
)
SHUTDOWN: Final = Subject(name="controlled shutdown", campaign="swarm-disks", seeds=20)
PREFERRED: Final = Subject(name="preferred leaders", campaign="swarm-disks", seeds=20)
SMALL_TOPICS: Final = Subject(name="topics with few replicas", campaign="swarm-disks", seeds=20)
DELETED_RECORDS: Final = Subject(name="DeleteRecords", campaign="delete-records")
FOLLOWER_FETCHING: Final = Subject(name="consumers that read from followers", campaign="follower-fetch")
QUOTAS: Final = Subject(name="quotas", campaign="starved-consumer")
LATE_ERRORS: Final = Subject(name="errors after delivery.timeout.ms", campaign="error-after-deadline")
EARLIER_TERMS: Final = Subject(
    name="responses from an earlier term of the same leader", campaign="stale-diverging-epoch"
)
REPEATED_WRITES: Final = Subject(name="repeated ISR writes", campaign="stuck-isr")
GROUPS: Final = Subject(name="consumer groups", campaign="swarm-eos", seeds=20, needs_coordinators=True)
STATIC_MEMBERS: Final = Subject(
    name="static members of groups", campaign="rebalance", needs_coordinators=True
)
TRANSACTIONS: Final = Subject(name="transactions", campaign="swarm-eos", seeds=20, needs_coordinators=True)
TRANSACTIONS_V1: Final = Subject(
    name="transactions before 4.0", campaign="standard-eos", seeds=20, needs_coordinators=True
)
