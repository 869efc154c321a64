"""Release profiles: what each Kafka release does, as named switches.

A campaign names a release; each behaviour is a switch that it can also set alone
(``behaviours:``). What repaired a release is in `repairs.REPAIRS`; a switch set to a
known-bad value is a mutant (`mutants.MUTANTS`).
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from functools import cache
from typing import Any, Final, TypedDict, cast

HIGH_WATERMARK: Final = "high_watermark"
LEADER_EPOCH: Final = "leader_epoch"
ANSWERED_EPOCH: Final = "answered_epoch"
NO_TRUNCATION: Final = "none"

NEVER: Final = "never"
WITH_SELECTOR: Final = "with_selector"
ALWAYS: Final = "always"
WHILE_COMPLETING: Final = "while_completing"
WHILE_SILENT: Final = "while_silent"
WITH_OTHER_PROTOCOL: Final = "with_other_protocol"

TRUNCATES: Final = "truncates"
SHUTS_DOWN: Final = "shuts_down"
HANGS: Final = "hangs"

CAPPED: Final = "capped"
JITTERED: Final = "jittered"
AFTER_REFUSAL: Final = "after_refusal"

DEFAULT_RELEASE: Final = "2.4"

Version = tuple[int, ...]

# What switches guard: rules whose promise they keep, and causes that they rule out.
_LEADERS: Final = ("two-leaders", "one-controller-per-epoch")
_QUORUM: Final = ("one-controller-per-epoch", "committed-metadata-kept")
_SNAPSHOTS: Final = ("committed-metadata-kept", "metadata-snapshot-committed")
_LOGS: Final = (
    *("lost-write", "unseen", "inconsistent-offsets", "log-divergence", "nonmonotonic-send", "duplicate"),
    *("offset-regression", "unavailable", "isr-holds-committed", "log-matching"),
    *("hw-monotonic", "hw-within-log", "epoch-cache-monotonic", "producer-state-matches-log"),
    *("checkpoint-within-log", "shutdown-flushes-logs"),
    *("committed-record-lost", "acked-by-deposed-leader", "acked-before-commit"),
)
_SEQUENCES: Final = ("inconsistent-offsets", "nonmonotonic-send", "duplicate", "producer-state-matches-log")
_COMPACTION: Final = (
    *("superseded-by-lost-record", "compacted-without-later-record"),
    "tombstone-removed-too-early",
)
_READS: Final = ("read-above-hw", "unseen", "inconsistent-offsets")
_GROUPS: Final = ("rebalance-skip", "lost-effect", "doubled-effect", "offset-regression")
_COMMITS: Final = ("offset-regression", "old-generation-committed")
_TRANSACTIONS: Final = (
    *("read-above-lso", "fenced-write", "lso-stands-still", "hanging-transaction", "unasked-commit"),
    *("torn-transaction", "G1a", "aborted-although-acked"),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Subject:
    """What switches are about, and the campaign of the library to try them with.

    Runs of the first ``seeds`` seeds of that campaign (of all its variants, or of one ``variant``) read every switch of the subject, unless the
    switch says otherwise (``is_met``). ``in_kraft`` is True for what only KRaft has.
    """

    name: str
    campaign: str
    variant: str | None = None
    seeds: int = 1
    in_kraft: bool = False

    @property
    def is_of_coordinators(self) -> bool:
        """Whether it needs groups or transactions."""
        return self in (GROUPS, STATIC_MEMBERS, TRANSACTIONS, TRANSACTIONS_V1)


REPLICATION: Final = Subject(name="replication", campaign="swarm", seeds=20)
TRUNCATION: Final = Subject(
    name="followers that have parted from their leader", campaign="swarm-kraft", seeds=20
)
CLIENTS: Final = Subject(name="producers and consumers", campaign="swarm", seeds=20)
UNKNOWN_PRODUCERS: Final = Subject(
    name="producers of which a log has nothing", campaign="swarm-disks", seeds=20
)
ZOOKEEPER: Final = Subject(name="the control plane in ZooKeeper", campaign="swarm", seeds=20)
KRAFT: Final = Subject(name="the control plane in KRaft", campaign="swarm-kraft", seeds=20, in_kraft=True)
DISKS: Final = Subject(name="logs and their disks", campaign="swarm-disks", seeds=20)
KRAFT_DISKS: Final = Subject(
    name="disks with KRaft", campaign="swarm-disks", variant="kraft", seeds=20, in_kraft=True
)
SHUTDOWN: Final = Subject(name="controlled shutdown", campaign="swarm-disks", seeds=20)
PREFERRED: Final = Subject(name="preferred leaders", campaign="swarm-disks", seeds=20)
SMALL_TOPICS: Final = Subject(name="topics with few replicas", campaign="swarm-disks", seeds=20)
DELETED_RECORDS: Final = Subject(name="DeleteRecords", campaign="delete-records")
FOLLOWER_FETCHING: Final = Subject(name="consumers of followers", campaign="follower-fetch")
QUOTAS: Final = Subject(name="quotas", campaign="starved-consumer")
GROUPS: Final = Subject(name="consumer groups", campaign="swarm-eos", seeds=20)
STATIC_MEMBERS: Final = Subject(name="static members of groups", campaign="rebalance")
LATE_ERRORS: Final = Subject(name="errors after delivery.timeout.ms", campaign="error-after-deadline")
FORMER_REIGNS: Final = Subject(name="answers of a former reign", campaign="stale-diverging-epoch")
REPEATED_WRITES: Final = Subject(name="ISR writes that are repeated", campaign="stuck-isr")
TRANSACTIONS: Final = Subject(name="transactions", campaign="swarm-eos", seeds=20)
TRANSACTIONS_V1: Final = Subject(name="transactions before 4.0", campaign="standard-eos", seeds=20)


class Switch(TypedDict):
    """What a switch does and where that stands.

    ``of`` is its subject. ``is_met`` is False where no run of the subject's campaign reads it, but only tests and single
    requests do. ``before`` has what releases before others had, oldest first, ``latest`` what all have since. ``meaning``
    says in a few words what holds at the ``safe`` value. One that ``is_repair`` has to have that value, or a promise
    may be broken; others only change how a promise is kept. ``guards`` names the rules whose promise the safe value keeps, and the
    kinds of causes that it rules out (`harrow.checks.prevention.by_switches`).
    """

    doc: str
    source: str
    of: Subject
    is_met: bool
    choices: tuple[Any, ...]
    meaning: str
    safe: Any
    latest: Any
    before: tuple[tuple[str, Any], ...]
    is_repair: bool
    guards: tuple[str, ...]


@cache
def version_of(release: str) -> Version:
    """Return the numbers of a release's name."""
    return tuple(int(number) for number in release.split("."))


def _value_in(release: str, switch: Switch) -> Any:
    """Return what a release does: in its last bug fix release, so that 2.0 has what came with 2.0.1."""
    version = version_of(release)
    for first, value in switch["before"]:
        if version < version_of(first)[: len(version)]:
            return value
    return switch["latest"]


def _switch(
    doc: str,
    source: str,
    *,
    of: Subject,
    meaning: str,
    latest: Any = True,
    choices: tuple[Any, ...] = (False, True),
    safe: Any = None,
    before: tuple[tuple[str, Any], ...] = (),
    is_repair: bool = True,
    is_met: bool = True,
    guards: tuple[str, ...] = (),
) -> Any:
    switch = Switch(
        doc=doc,
        source=source,
        of=of,
        is_met=is_met,
        choices=choices,
        meaning=meaning,
        safe=latest if safe is None else safe,
        latest=latest,
        before=before,
        is_repair=is_repair,
        guards=guards,
    )
    return field(default=_value_in(DEFAULT_RELEASE, switch), metadata=switch)


@dataclass(frozen=True, slots=True, kw_only=True)
class Behaviours:
    """The switches; their defaults are what the default release does."""

    follower_truncation: str = _switch(
        "What a new follower truncates its log to: its own high watermark; the end offset of its last "
        "leader epoch as the leader answers it; or the same with the answered epoch taken into account. "
        "`none` is a mutant that never truncates.",
        "KIP-101, KIP-279, AbstractFetcherThread.scala",
        of=REPLICATION,
        latest=ANSWERED_EPOCH,
        choices=(HIGH_WATERMARK, LEADER_EPOCH, ANSWERED_EPOCH, NO_TRUNCATION),
        meaning="a follower truncates to where its leader epoch ends (KIP-101, KIP-279)",
        before=(("0.11", HIGH_WATERMARK), ("2.0", LEADER_EPOCH)),
        guards=_LOGS,
    )
    truncation_on_fetch: bool = _switch(
        "A follower that truncates by leader epochs fetches at once from its LEO, and says the epoch of its last record. A leader "
        "that has other records there answers where that epoch ends with it, in place of data and high watermark, and does not "
        "count the fetch. Before, each new follower asked OffsetsForLeaderEpoch first.",
        "KIP-595, Partition.readRecords, AbstractFetcherThread.truncateOnFetchResponse",
        of=TRUNCATION,
        meaning="a leader answers a fetch that has parted from its log with where it did (KIP-595)",
        before=(("2.7", False),),
        is_repair=False,
    )
    fetch_answers_match_epoch: bool = _switch(
        "A follower ignores the answer to a fetch that it sent in an older leader epoch. Before, an answer counted if the follower still "
        "stood at the offset of that fetch: one of a former reign of the same leader could truncate what was committed meanwhile. Up to "
        "2.6 a follower did not fetch before it had truncated for the new epoch, which took the answer out of the way.",
        "KAFKA-18991, AbstractFetcherThread.processFetchRequest (3.9.1, 4.0.1)",
        of=FORMER_REIGNS,
        meaning="a follower takes no answer to a fetch of an older leader epoch (KAFKA-18991)",
        before=(("3.9.1", False),),
        guards=_LOGS,
    )
    diverging_fetch_uncounted: bool = _switch(
        "A leader that answers a fetch with where the logs part does not take that fetch's offset for the follower's LEO. Off is a mutant.",
        "KIP-595, Partition.fetchRecords (DivergingEpoch)",
        of=TRUNCATION,
        meaning="a fetch that has parted from the leader's log does not count (KIP-595)",
        guards=_LOGS,
    )
    out_of_range_follower: str = _switch(
        "What a follower does whose leader's log ends before its own, where unclean.leader.election.enable is false: it "
        "truncates, as it does where that is true; its broker shuts down; or its broker hangs in its shutdown, which waits for "
        "the very thread that has asked for it.",
        "KAFKA-7414, ReplicaFetcherThread.handleOffsetOutOfRange",
        of=TRUNCATION,
        latest=TRUNCATES,
        choices=(TRUNCATES, SHUTS_DOWN, HANGS),
        meaning="a follower that is ahead of its leader truncates (KAFKA-7414)",
        before=(("0.11", HANGS), ("2.0.1", SHUTS_DOWN)),
        guards=("unavailable",),
    )
    epoch_entry_on_election: bool = _switch(
        "A new leader puts (epoch, LEO) into its epoch cache at once, not with its first append.",
        "KAFKA-7415, Partition.makeLeader",
        of=REPLICATION,
        meaning="a new leader notes its epoch at once (KAFKA-7415)",
        before=(("2.0.1", False),),
        guards=_LOGS,
    )
    epoch_below_first_answered: bool = _switch(
        "An epoch request below the first leader epoch of a log is answered with where that begins; before, with nothing.",
        "KAFKA-7415, LeaderEpochFileCache.endOffsetFor",
        of=REPLICATION,
        meaning="a leader answers for epochs before its first (KAFKA-7415)",
        before=(("2.0.1", False),),
    )
    epoch_cache_cut_at_log_end: bool = _switch(
        "A truncation to the log's end drops an epoch that has an entry there but no records. Without that, "
        "a follower whose last epoch is such a one asks its leader for ever and never fetches.",
        "KAFKA-10706, Log.truncateTo",
        of=REPLICATION,
        meaning="a follower drops a last epoch that has no records (KAFKA-10706)",
        before=(("2.6.1", False),),
        guards=("unavailable",),
    )
    isr_expansion_checks_epoch_start: bool = _switch(
        "A follower joins the ISR only when it has reached the start of the leader's epoch, not just the "
        "leader's high watermark, which lags after an election.",
        "KAFKA-7128, Partition.maybeExpandIsr",
        of=REPLICATION,
        meaning="a follower joins the ISR only at the start of the leader's epoch",
        before=(("2.0.1", False),),
        guards=_LOGS,
    )
    fetch_leader_epoch_fencing: bool = _switch(
        "Fetch and OffsetsForLeaderEpoch carry the current leader epoch; a mismatch is FENCED_LEADER_EPOCH "
        "or UNKNOWN_LEADER_EPOCH.",
        "KIP-320",
        of=REPLICATION,
        meaning="fetches carry the leader epoch (KIP-320)",
        before=(("2.1", False),),
        guards=_LOGS,
    )
    failed_fetch_leaves_follower: bool = _switch(
        "A follower's fetch that is out of range, or fenced, leaves what the leader knows of it. Before, the leader forgot how far it was and "
        "when it had fetched.",
        "KAFKA-8400, ReplicaManager.updateFollowerLogReadResults",
        of=REPLICATION,
        meaning="a fetch that fails leaves what is known of its follower (KAFKA-8400)",
        before=(("2.4", False),),
    )
    end_offset_waits_for_hw: bool = _switch(
        "A new leader does not tell consumers where a partition ends (OFFSET_NOT_AVAILABLE) before its high watermark has "
        "reached the start of its epoch. Before, the end might be below what was told by its predecessor.",
        "KIP-207, Partition.fetchOffsetForTimestamp",
        of=CLIENTS,
        meaning="a new leader tells no end offset below the one that was told before (KIP-207)",
        before=(("2.2", False),),
    )
    fetch_sessions: bool = _switch(
        "Brokers keep a limited number of fetch sessions by id and epoch: a fetch says only what has changed since the one "
        "before, and an unknown session or a repeated request is refused. Before, each fetch named every partition.",
        "KIP-227, FetchSession.scala",
        of=REPLICATION,
        meaning="fetches are incremental, in sessions that a broker may forget (KIP-227)",
        before=(("1.1", False),),
    )
    fetch_sessions_keep_epoch: bool = _switch(
        "An incremental fetch is held to the leader epoch of its partitions. Before, a session forgot it, so that only a "
        "full fetch could be refused for its epoch.",
        "KAFKA-9338, CachedPartition.reqData",
        of=REPLICATION,
        meaning="an incremental fetch is held to its leader epoch (KAFKA-9338)",
        before=(("2.5", False),),
        guards=_LOGS,
    )
    follower_fetching: bool = _switch(
        "A follower serves consumers that know of racks (from the version of Fetch on that names one), up to its own high watermark. Before, "
        "a leader alone did.",
        "KIP-392 (KAFKA-8443), ReplicaManager.fetchMessages (fetchOnlyFromLeader)",
        of=FOLLOWER_FETCHING,
        meaning="consumers may fetch from followers (KIP-392)",
        before=(("2.4", False),),
        is_repair=False,
    )
    high_watermark_answers_followers: str = _switch(
        "Whether a leader answers a follower's fetch as soon as its high watermark has moved, though there is nothing to read: never; where "
        "`replica.selector.class` is set, so that consumers of followers see sooner what is committed; or always, as 2.4.0 and 2.4.1 do, for the "
        "half of fetches more than before.",
        "KIP-392, KAFKA-9731, KAFKA-9952, DelayedFetch.tryComplete",
        of=REPLICATION,
        meaning="a follower hears of a high watermark with the next data, or when its fetch expires (KAFKA-9952)",
        latest=NEVER,
        choices=(NEVER, WITH_SELECTOR, ALWAYS),
        before=(("2.4", NEVER), ("2.6", WITH_SELECTOR)),
        is_repair=False,
    )
    read_replica_selected_by_leader: bool = _switch(
        "A leader alone says which replica a consumer is to read from. Before, a follower that had led said so too, going by how far the others "
        "had been when it did.",
        "KAFKA-13778, ReplicaManager.findPreferredReadReplica",
        of=FOLLOWER_FETCHING,
        meaning="a leader alone selects the replica that a consumer reads from (KAFKA-13778)",
        before=(("2.5", True), ("3.3", False)),
        is_repair=False,
    )
    read_replica_in_isr: bool = _switch(
        "A leader has a consumer read from a member of the ISR. Before, from any replica that had what it asked for, be it ever so slow.",
        "KAFKA-14372, ReplicaManager.findPreferredReadReplica",
        of=FOLLOWER_FETCHING,
        meaning="a consumer is sent to a replica in the ISR alone (KAFKA-14372)",
        before=(("3.4", False),),
        is_repair=False,
    )
    read_replica_answered_at_once: bool = _switch(
        "A leader tells a consumer at once which replica to read from. Before, it had the fetch wait for fetch.max.wait.ms first.",
        "KAFKA-13767, ReplicaManager.fetchMessages",
        of=FOLLOWER_FETCHING,
        meaning="a consumer is told at once which replica to read from (KAFKA-13767)",
        before=(("3.2", False),),
        is_repair=False,
    )
    replication_completes_fetches: bool = _switch(
        "A consumer's fetch that waits at a follower is answered when the follower's high watermark has passed something. Before, when its time "
        "was over.",
        "KAFKA-14334, ReplicaFetcherThread.completeDelayedFetchRequests",
        of=FOLLOWER_FETCHING,
        meaning="a follower answers a consumer that waits when its high watermark rises (KAFKA-14334)",
        before=(("3.4", False),),
        is_repair=False,
    )
    errors_clear_read_replica: bool = _switch(
        "A consumer whose fetch from a follower fails goes back to the leader. Before, it did so if its position was out of range there, the "
        "broker was missing in its metadata, or there was another leader; and after metadata.max.age.ms in any case.",
        "KAFKA-14379, Fetcher.requestMetadataUpdate",
        of=FOLLOWER_FETCHING,
        meaning="a consumer leaves a follower that fails it (KAFKA-14379)",
        before=(("3.4", False),),
        is_repair=False,
    )
    broker_epoch: bool = _switch(
        "Control requests carry the broker's epoch, and the controller notices a broker that bounced "
        "between two looks at /brokers/ids.",
        "KIP-380 (KAFKA-7235), KAFKA-1120",
        of=ZOOKEEPER,
        meaning="control requests carry the broker's epoch (KIP-380)",
        before=(("2.2", False),),
        guards=(*_LEADERS, *_LOGS, "registrations-known"),
    )
    requests_after_registration: bool = _switch(
        "A starting broker handles no request before it is registered in ZooKeeper, so none that was meant "
        "for its earlier life while its death was not known.",
        "KAFKA-6772, KafkaServer.startup (SocketServer.startProcessors)",
        of=ZOOKEEPER,
        meaning="a starting broker obeys nothing before it is registered",
        before=(("2.0", False),),
        guards=(*_LEADERS, *_LOGS, "controller-epoch-monotonic", "registered-before-control"),
    )
    sockets_opened_last: bool = _switch(
        "A starting broker opens its sockets when it is unfenced, with ZooKeeper when it is registered. Before, connections were accepted at once, and "
        "requests waited for that.",
        "KAFKA-14658, SocketServer.scala (Acceptor.start)",
        of=CLIENTS,
        meaning="no client can connect to a starting broker before it is ready (KAFKA-14658)",
        before=(("3.5", False),),
        is_repair=False,
    )
    controller_writes_fenced: bool = _switch(
        "The controller's writes to ZooKeeper are conditional on the version of /controller_epoch.",
        "KAFKA-6082",
        of=ZOOKEEPER,
        meaning="only the present controller writes to ZooKeeper (KAFKA-6082)",
        before=(("2.1", False),),
        guards=(*_LEADERS, *_LOGS, "controller-writes-fenced"),
    )
    failover_takes_out_dead_replicas: bool = _switch(
        "A new controller takes the replicas of brokers that are not alive out of the ISRs. Before, a broker "
        "that died while there was no controller stayed in them until its leader noticed.",
        "KAFKA-3143, ReplicaStateMachine.startup",
        of=ZOOKEEPER,
        meaning="a new controller takes dead replicas out of the ISRs",
        before=(("2.3", False),),
        guards=(*_LOGS, "failover-shrinks-isr"),
    )
    shutdown_awaits_controller: bool = _switch(
        "A broker that stops asks again later while there is no controller. Before, it gave up at once "
        "(ZkUtils.getController threw).",
        "KafkaServer.controlledShutdown",
        of=SHUTDOWN,
        meaning="a broker that stops waits for a controller",
        before=(("1.1", False),),
        is_met=False,
    )
    log_dir_failure_survived: bool = _switch(
        "A broker with several log directories goes on when one fails, without the replicas there, and the controller elects others. Before, "
        "any error of a disk ended the broker.",
        "KIP-112, ReplicaManager.handleLogDirFailure",
        of=DISKS,
        meaning="a broker survives the failure of one of several log directories (KIP-112)",
        before=(("1.0", False),),
        guards=("unavailable",),
    )
    retention_waits_for_hw: bool = _switch(
        "Retention deletes no segment that reaches above the replica's high watermark. Before, a log could begin above what "
        "was committed.",
        "KAFKA-5634, Log.deletableSegments",
        of=DISKS,
        meaning="retention deletes what is committed alone (KAFKA-5634)",
        before=(("0.11", False),),
    )
    log_start_follows_leader: bool = _switch(
        "A follower's log begins where its leader's does, as a fetch tells it. Before, each replica began where its own retention "
        "had it begin.",
        "KIP-107, ReplicaFetcherThread.processPartitionData",
        of=REPLICATION,
        meaning="a follower's log begins where its leader's does (KIP-107)",
        before=(("0.11", False),),
        is_repair=False,
    )
    follower_begins_with_batch: bool = _switch(
        "A follower that has no records, and is to begin in the middle of a batch, begins with that batch: so a leader's log may begin that "
        "an administrator has shortened. Before, its fetcher failed.",
        "KAFKA-6975, Partition.appendRecordsToFollowerOrFutureReplica",
        of=DELETED_RECORDS,
        meaning="a follower may begin in the middle of a batch (KAFKA-6975)",
        before=(("1.0", False),),
    )
    deleted_records_end_at_offset: bool = _switch(
        "DeleteRecords takes what is below the offset that it names, and nothing else.",
        "KIP-107, Partition.deleteRecordsOnLeader",
        of=DELETED_RECORDS,
        meaning="DeleteRecords takes what is below its offset alone",
        guards=("deleted-beyond-request",),
    )
    retention_spares_recent: bool = _switch(
        "retention.ms deletes a segment when its latest record is older than that.",
        "KIP-33, Log.deleteRetentionMsBreachedSegments",
        of=DISKS,
        meaning="retention.ms deletes what is older alone",
        guards=("deleted-too-early",),
    )
    cleaner_waits_for_hw: bool = _switch(
        "Compaction leaves alone what is above the replica's high watermark. Before, what was not committed took the place of what "
        "was: if the later record was cut off, a replica that had compacted its log had neither.",
        "KAFKA-13194, LogCleanerManager.cleanableOffsets",
        of=DISKS,
        meaning="compaction goes by what is committed alone (KAFKA-13194)",
        before=(("3.1", False),),
        guards=_COMPACTION,
    )
    cleaner_keeps_latest: bool = _switch(
        "Compaction keeps the latest record of each key. Off is a mutant: it keeps the earliest.",
        "Cleaner.shouldRetainRecord",
        of=DISKS,
        meaning="compaction keeps the latest record of each key",
        guards=_COMPACTION,
    )
    cleaner_retains_tombstones: bool = _switch(
        "Compaction keeps a tombstone for delete.retention.ms, for readers that have seen what it deletes. Off is a mutant.",
        "Cleaner.shouldRetainRecord (delete.retention.ms)",
        of=DISKS,
        meaning="compaction keeps tombstones for delete.retention.ms",
        guards=_COMPACTION,
    )
    tombstones_have_horizon: bool = _switch(
        "A tombstone may go delete.retention.ms after it was first cleaned, which its batch notes. Before, that went by when its "
        "segment was last written to and the last one that was clean: a tombstone might stay much longer.",
        "KIP-534 (KAFKA-8522), RecordBatch.deleteHorizonMs",
        of=DISKS,
        meaning="a tombstone goes delete.retention.ms after it was first cleaned (KIP-534)",
        before=(("3.1", False),),
        is_repair=False,
    )
    cleaner_retains_last_batch: bool = _switch(
        "Compaction keeps the last batch of what it cleans, be it empty. Before, the end of a log that was cut back to there might be "
        "forgotten, and its offsets be given away again, when its broker came back.",
        "KAFKA-17076, Cleaner.cleanInto",
        of=DISKS,
        meaning="compaction keeps the last batch of what it cleans (KAFKA-17076)",
        before=(("4.0", False),),
        is_met=False,
        guards=_COMPACTION,
    )
    cleaner_retains_batch_at_hw: bool = _switch(
        "Compaction keeps an empty batch only if it ends at the high watermark. Before, it kept the last batch of every cleaning round, "
        "and empty batches piled up (see `cleaner_retains_last_batch`).",
        "KAFKA-20452, Cleaner.cleanInto",
        of=DISKS,
        meaning="compaction keeps no empty batch below the high watermark (KAFKA-20452)",
        before=(("4.4", False),),
        is_repair=False,
    )
    shutting_down_leader_is_offline: bool = _switch(
        "When some broker fails, partitions are offline too whose leader is in controlled shutdown: with unclean "
        "elections a replica outside the ISR is elected although the leader is still alive.",
        "KIP-112, KafkaController.onReplicasBecomeOffline",
        of=SHUTDOWN,
        meaning="a leader in controlled shutdown counts as gone when some broker fails",
        before=(("1.0", False),),
    )
    shutdown_request_preempted: bool = _switch(
        "A controller whose session expires refuses the controlled shutdowns that wait in its queue. Before, it "
        "forgot them, and the broker that had asked waited for the socket's timeout.",
        "KAFKA-5692, KafkaController.preemptControlledShutdown",
        of=SHUTDOWN,
        meaning="a controller that is deposed refuses the shutdowns that it has not begun",
        before=(("2.2", False),),
    )
    member_id_required: bool = _switch(
        "A consumer that joins a group without a member id is given one first, and is a member when it joins with it. Before, each "
        "attempt made another member, which was never heard of again if its answer was lost.",
        "KIP-394, GroupCoordinator.doNewMemberJoinGroup",
        of=GROUPS,
        meaning="a consumer gets a member id before it joins a group (KIP-394)",
        before=(("2.2", False),),
        is_repair=False,
    )
    static_members_fenced: bool = _switch(
        "A member with a group.instance.id keeps its partitions while it restarts, for as long as its session lasts; of two with "
        "the same id the former is fenced.",
        "KIP-345, GroupCoordinator.updateStaticMemberAndRebalance",
        of=STATIC_MEMBERS,
        meaning="static members (KIP-345)",
        before=(("2.3", False),),
        is_repair=False,
    )
    static_rejoin_rebalances: str = _switch(
        "When a static member that comes back makes its group rebalance: never, also where the leader assigns to its former life and so "
        "nothing to it; while the leader assigns; then, and where the group would choose another assignor.",
        "KAFKA-9801, KAFKA-10284, GroupCoordinator.updateStaticMemberAndRebalance",
        of=STATIC_MEMBERS,
        choices=(NEVER, WHILE_COMPLETING, WITH_OTHER_PROTOCOL),
        meaning="a static member that comes back while its group rebalances joins again (KAFKA-9801)",
        before=(("2.5", NEVER), ("2.6.1", WHILE_COMPLETING)),
        latest=WITH_OTHER_PROTOCOL,
        is_repair=False,
        guards=("unconsumed",),
    )
    impossible_requests_answered: bool = _switch(
        "A request about a group on which its coordinator fails is told UNKNOWN_SERVER_ERROR: a join of a member that was given its id, and names a "
        "group.instance.id with it. Before, it got no answer; neither did the leader of a group to which a static member has come back "
        "without its assignor.",
        "GroupCoordinator.doJoinGroup, MemberMetadata.metadata, JoinGroupRequest.getErrorResponse, SyncGroupRequest.getErrorResponse",
        of=GROUPS,
        meaning="a request on which a coordinator fails is answered",
        before=(("2.5", False),),
        is_repair=False,
    )
    unknown_instances_refused: bool = _switch(
        "A member that names a group.instance.id which its group does not know is refused (UNKNOWN_MEMBER_ID), whatever it asks. "
        "Before, only when it joined.",
        "GroupCoordinator.validateCurrentMember (5dae3648abd)",
        of=STATIC_MEMBERS,
        meaning="a group.instance.id that is not known is refused",
        before=(("3.0", False),),
        is_repair=False,
        is_met=False,
    )
    heartbeats_while_syncing: bool = _switch(
        "A member that waits for its partitions may send heartbeats. Before, they were answered REBALANCE_IN_PROGRESS.",
        "KAFKA-10134, GroupCoordinator.handleHeartbeat (CompletingRebalance)",
        of=GROUPS,
        meaning="heartbeats count while the leader of a group assigns",
        before=(("2.6.1", False),),
        is_repair=False,
        is_met=False,
    )
    static_leader_skips_assignment: bool = _switch(
        "A static member that led its group and comes back is told that it leads, and that there is nothing to assign. Before, it was "
        "told that its former life led, and the group had no member that looked for new partitions.",
        "KIP-814, KAFKA-13435, JoinGroupResponse.SkipAssignment",
        of=STATIC_MEMBERS,
        meaning="a static leader that comes back goes on leading (KIP-814)",
        before=(("3.2", False),),
        guards=("unconsumed",),
    )
    syncs_expire: bool = _switch(
        "A member that has joined and does not ask for its partitions is removed after the rebalance timeout. Before, the others "
        "waited for as long as it sent heartbeats.",
        "KAFKA-12890, GroupCoordinator.onExpirePendingSync",
        of=GROUPS,
        meaning="a member that does not sync is removed (KAFKA-12890)",
        before=(("2.8", False),),
        is_repair=False,
        guards=("unconsumed",),
    )
    commits_fenced: bool = _switch(
        "The coordinator of a group refuses a commit of a consumer that is no member, or is of another generation. Off is a mutant.",
        "GroupCoordinator.validateOffsetCommit",
        of=GROUPS,
        meaning="a group takes commits of members of its present generation alone",
        guards=(*_GROUPS, *_COMMITS, "commits-of-present-generation"),
    )
    consumer_group_protocol: bool = _switch(
        "Brokers coordinate groups with group.protocol=consumer, where they assign, as with group.version=1. Before, that was off by default.",
        "KIP-848, GroupVersion, ConsumerGroupHeartbeat",
        of=GROUPS,
        meaning="groups whose coordinator assigns (KIP-848)",
        before=(("4.0", False),),
        is_repair=False,
    )
    group_epochs_begin_at_one: bool = _switch(
        "With KIP-848 a new group and its assignment of nothing are of epoch 1, and the first member is in epoch 2. Before, all began at 0, "
        "and the first member was in epoch 1.",
        "KAFKA-20268, ModernGroup",
        of=GROUPS,
        meaning="the first member of a group is in epoch 2 (KAFKA-20268)",
        before=(("4.3", False),),
        is_repair=False,
    )
    assignment_follows_subscription: bool = _switch(
        "With KIP-848 a member gives up what it does not subscribe to any more with the heartbeat that says so. Before, with the next target "
        "assignment.",
        "KAFKA-19431, CurrentAssignmentBuilder.updateCurrentAssignment",
        of=GROUPS,
        meaning="what a member has follows its subscription at once (KAFKA-19431)",
        before=(("4.2", False),),
        is_repair=False,
    )
    tied_assignors_by_java_hash: bool = _switch(
        "Where as many members of a group vote for one assignor as for another, the group has that which comes first in a hash table of "
        "Java: range before roundrobin. Before, in one of Scala: roundrobin before range.",
        "GroupMetadata.selectProtocol, ClassicGroup.selectProtocol",
        of=GROUPS,
        meaning="a tie between assignors goes to range rather than roundrobin",
        before=(("4.0", False),),
        is_repair=False,
    )
    partitions_released_first: bool = _switch(
        "With KIP-848 a member is given a partition once no member owns it: its former owner has said that it has revoked it, or is gone. "
        "Off is a mutant.",
        "KIP-848, CurrentAssignmentBuilder.computeNextAssignment (currentPartitionEpoch)",
        of=GROUPS,
        meaning="a partition is revoked before another member gets it (KIP-848)",
        guards=("one-owner-per-partition",),
    )
    member_epochs_fence_commits: bool = _switch(
        "With KIP-848 a group's coordinator refuses a commit of a consumer that is no member, or whose member epoch is stale. Off is a mutant.",
        "KIP-848, ConsumerGroup.validateOffsetCommit",
        of=GROUPS,
        meaning="a commit with a stale member epoch is refused (KIP-848)",
        guards=("offset-regression",),
    )
    commits_by_assignment_epoch: bool = _switch(
        "With KIP-848 a commit in an older member epoch is taken of partitions that the member was given in that epoch or before, and owns "
        "still. Before, it was refused while the answer with the new epoch was under way.",
        "KIP-1251 (KAFKA-20066), ConsumerGroup.createAssignmentEpochValidator",
        of=GROUPS,
        meaning="a commit is fenced by the epoch in which the partition was assigned (KIP-1251)",
        before=(("4.3", False),),
        is_repair=False,
    )
    fenced_member_rejoins: bool = _switch(
        "With KIP-848 a member that was fenced joins again at once, in epoch 0. Before, it was fenced again until its session was over: its "
        "coordinator had it in another epoch.",
        "KAFKA-19233, GroupMetadataManager.throwIfConsumerGroupMemberEpochIsInvalid",
        of=GROUPS,
        meaning="a fenced member may join again (KAFKA-19233)",
        before=(("4.2", False),),
        is_repair=False,
    )
    assignor_change_assigns: bool = _switch(
        "With KIP-848 the group's epoch rises when the assignor that most members prefer changes, so that it assigns. Before, that assignor "
        "was used with the next change of members or topics.",
        "KAFKA-20434, GroupMetadataManager.hasPreferredServerAssignorChanged",
        of=GROUPS,
        meaning="a group assigns when its members prefer another assignor (KAFKA-20434)",
        before=(("4.4", False),),
        is_repair=False,
    )
    emptied_group_assigns_at_once: bool = _switch(
        "With KIP-848 the first member after a group was empty gets its partitions at once. Before, it waited until "
        "group.consumer.assignment.interval.ms had passed since the group's last assignment.",
        "KAFKA-20442, GroupMetadataManager.consumerGroupFenceMembers",
        of=GROUPS,
        meaning="a group that was empty assigns at once (KAFKA-20442)",
        before=(("4.4", False),),
        is_repair=False,
    )
    static_member_rejoins_full_group: bool = _switch(
        "With KIP-848 a static member that has left for a while may come back to a group that has group.consumer.max.size members: it takes a "
        "place that counts already. Before, it was refused (GROUP_MAX_SIZE_REACHED), and its consumer failed.",
        "KAFKA-20601, GroupMetadataManager.throwIfConsumerGroupIsFull",
        of=GROUPS,
        is_met=False,
        meaning="a static member may come back to a full group (KAFKA-20601)",
        before=(("4.4", False),),
        is_repair=False,
    )
    former_instance_released: bool = _switch(
        "With KIP-848 a member that takes another group.instance.id gives up its former one. Before, nobody could join under the former "
        "one: it was refused with UNRELEASED_INSTANCE_ID, and with UNKNOWN_MEMBER_ID once the member was gone.",
        "ConsumerGroup.updateStaticMember",
        of=GROUPS,
        meaning="a member that takes another group.instance.id gives up its former one",
        before=(("4.4", False),),
        is_repair=False,
    )
    group_answers_wait_for_writes: bool = _switch(
        "A group's coordinator answers a heartbeat, who leaves and who asks for stable offsets when all that it has written of their partition "
        "is committed, on which the answer may rest. Before, it answered from memory, also one that had been replaced and did not know it.",
        "KIP-848, CoordinatorRuntime.CoordinatorWriteEvent, GroupCoordinatorService.fetchOffsets",
        of=GROUPS,
        meaning="a group's coordinator answers when what it has written is committed (KIP-848)",
        before=(("4.0", False),),
        is_repair=False,
        guards=_COMMITS,
    )
    unknown_group_told: bool = _switch(
        "A member that commits for a group which its coordinator does not know is told so (GROUP_ID_NOT_FOUND, in a transaction "
        "ILLEGAL_GENERATION). Before, that its generation is over, in a transaction that it is no member of the group, which was made.",
        "KIP-848, OffsetMetadataManager.validateOffsetCommit, validateTransactionalOffsetCommit",
        of=GROUPS,
        meaning="a commit for a group that is not known is refused as such",
        before=(("4.0", False),),
        is_repair=False,
        is_met=False,
    )
    transactional_commit_errors_named: bool = _switch(
        "A transaction that commits for a group that the coordinator does not know gets GROUP_ID_NOT_FOUND, and with a stale member epoch "
        "STALE_MEMBER_EPOCH (TxnOffsetCommit 6). Before, both were ILLEGAL_GENERATION. The producer aborts the transaction either way.",
        "KIP-1319 (KAFKA-20444), OffsetMetadataManager.validateTransactionalOffsetCommit",
        of=TRANSACTIONS,
        meaning="a refused transactional commit has the same error as a plain one (KIP-1319)",
        before=(("4.4", False),),
        is_repair=False,
    )
    offsets_kept_while_read: bool = _switch(
        "Offsets expire offsets.retention.minutes after their group became empty, and of a group with members those of topics that none of "
        "them reads, so long after they were committed. Before, all of them did that.",
        "KIP-211, GroupMetadata.removeExpiredOffsets",
        of=GROUPS,
        meaning="offsets of a group with members do not expire (KIP-211)",
        before=(("2.1", False),),
        is_repair=False,
        is_met=False,
    )
    stable_offset_fetch: bool = _switch(
        "A consumer that asks where its group is waits for commits that are under way, of transactions too (UNSTABLE_OFFSET_COMMIT). "
        "Before, it began with what had been committed before.",
        "KIP-447, GroupMetadataManager.getOffsets (requireStable)",
        of=GROUPS,
        meaning="a consumer that asks for committed offsets waits for open transactions (KIP-447)",
        before=(("2.5", False),),
        is_repair=False,
        guards=_GROUPS,
    )
    transactional_commits_fenced: bool = _switch(
        "A producer that commits offsets of a group in a transaction says as which member of which generation. Before, the coordinator of "
        "the group took them from anybody, from a member too that had been taken for dead.",
        "KIP-447, TransactionManager.sendOffsetsToTransaction (TxnOffsetCommit v3)",
        of=TRANSACTIONS,
        meaning="transactions commit offsets of current members of a group alone (KIP-447)",
        before=(("2.5", False),),
        is_repair=False,
        guards=_GROUPS,
    )
    controller_epoch_fencing: bool = _switch(
        "Brokers refuse control requests with an older controller epoch (STALE_CONTROLLER_EPOCH).",
        "ReplicaManager.becomeLeaderOrFollower",
        of=ZOOKEEPER,
        meaning="brokers refuse a controller of an older epoch",
        guards=(*_LEADERS, *_LOGS, "controller-epoch-monotonic", "leader-epoch-monotonic"),
    )
    leader_epoch_fencing: bool = _switch(
        "Brokers ignore a LeaderAndIsr whose leader epoch is not newer than their own.",
        "ReplicaManager.becomeLeaderOrFollower",
        of=REPLICATION,
        meaning="brokers refuse a leader epoch that is not newer than their own",
        guards=(*_LEADERS, *_LOGS, "leader-epoch-monotonic"),
    )
    idempotence: bool = _switch(
        "The idempotent producer exists.",
        "KIP-98",
        of=CLIENTS,
        meaning="the idempotent producer (KIP-98)",
        before=(("0.11", False),),
        guards=_SEQUENCES,
    )
    producer_batches_retained: int = _switch(
        "How many batches of a producer a partition remembers to recognise duplicates; 0: no producer state.",
        "KAFKA-5494, ProducerStateManager.scala",
        of=CLIENTS,
        latest=5,
        choices=(0, 1, 5),
        meaning="a leader remembers the last batches of a producer (KIP-98, KAFKA-5494)",
        before=(("0.11", 0), ("1.0", 1)),
        guards=_SEQUENCES,
    )
    sequence_check: bool = _switch(
        "A leader refuses a batch whose sequence number does not follow the last one.",
        "KIP-98, ProducerAppendInfo.checkSequence",
        of=CLIENTS,
        meaning="a leader refuses a sequence number out of order (KIP-98)",
        guards=_SEQUENCES,
    )
    idempotent_in_flight_max: int = _switch(
        "The most requests in flight that an idempotent producer may be configured with.",
        "KAFKA-5494",
        of=CLIENTS,
        latest=5,
        choices=(1, 5),
        meaning="a leader recognises as many batches as may be in flight (KAFKA-5494)",
        before=(("1.0", 1),),
    )
    unknown_producer_id_error: bool = _switch(
        "A batch of a producer of which the log has nothing is UNKNOWN_PRODUCER_ID unless its sequence is 0.",
        "KAFKA-5793, ProducerAppendInfo.checkSequence",
        of=UNKNOWN_PRODUCERS,
        meaning="a leader tells a producer that it remembers nothing of it (KAFKA-5793)",
        before=(("1.0", False),),
    )
    unknown_producer_begins_anywhere: bool = _switch(
        "The first batch of a producer of which the log has nothing may have any sequence number: its records may have been "
        "deleted. Before, it was refused unless its sequence number was 0.",
        "KIP-360 (KAFKA-8710), ProducerAppendInfo.checkSequence",
        of=UNKNOWN_PRODUCERS,
        meaning="a producer of which a leader remembers nothing goes on (KIP-360)",
        before=(("2.5", False),),
    )
    empty_log_begins_at_zero: bool = _switch(
        "In a log that has never had a record the first batch of a producer has to begin at sequence 0, also where elsewhere it may "
        "begin anywhere. Otherwise a batch overtakes the producer's first one, which a former leader has refused: that is never "
        "taken, or after those behind it.",
        "KAFKA-15591 (KAFKA-19880), ProducerAppendInfo.checkSequence",
        of=UNKNOWN_PRODUCERS,
        meaning="the first batch in an empty log begins at sequence 0 (KAFKA-15591)",
        before=(("2.5", True), ("4.5", False)),
        guards=_SEQUENCES,
    )
    unknown_producer_begins_at_zero: bool = _switch(
        "In a log that has records of others, and of which nothing has been deleted, the first batch of a producer has to begin at sequence 0. "
        "Up to 2.4 every first batch has to. From 2.5 on none has to (KIP-360), and no later release asks for it: there a batch overtakes the "
        "producer's first one also where it could not in an empty log (`empty_log_begins_at_zero`).",
        "KAFKA-14359, ProducerAppendInfo.checkSequence",
        of=UNKNOWN_PRODUCERS,
        meaning="the first batch of a producer in a log begins at sequence 0, also behind those of others (KAFKA-14359)",
        latest=False,
        safe=True,
        before=(("2.5", True),),
        is_met=False,
        guards=_SEQUENCES,
    )
    producer_bumps_epoch: bool = _switch(
        "An idempotent producer that has a gap in its sequences raises its epoch, and goes on with the batches of that partition from "
        "sequence 0. Before, it failed the batch, and began again in every partition with a new producer id.",
        "KIP-360 (KAFKA-8710), TransactionManager.bumpIdempotentProducerEpoch",
        of=CLIENTS,
        meaning="a producer with a gap in its sequences goes on in another epoch (KIP-360)",
        before=(("2.5", False),),
        is_repair=False,
    )
    given_up_batch_unresolved: bool = _switch(
        "An idempotent producer that gives up a batch because of an error waits for the answers to its other batches where the batch "
        "may be in the log. No release does: an error that is handled after delivery.timeout.ms counts as a refusal while fewer than "
        "`retries` attempts were made. Up to 2.4 the sequence numbers go to the next batches; from 2.5 on those get others in a new epoch.",
        "KAFKA-14397, Sender.completeBatch, TransactionManager.handleFailedBatch (adjustSequenceNumbers)",
        of=LATE_ERRORS,
        meaning="a batch that may be in the log keeps its sequence numbers when it is given up (KAFKA-14397)",
        latest=False,
        safe=True,
        guards=_SEQUENCES,
    )
    throttled_answer_at_once: bool = _switch(
        "A broker answers a client that has exceeded its quota at once, with nothing where it fetches, and says for how long it will hear "
        "nothing of it; the client waits as long. Before, the answer itself was kept back: a client whose request.timeout.ms was over "
        "sent again what the broker had long appended.",
        "KIP-219 (KAFKA-6028), ClientQuotaManager.throttle, ClusterConnectionStates.throttle",
        of=QUOTAS,
        meaning="a client that exceeds its quota is answered at once, and waits (KIP-219)",
        before=(("2.0", False),),
        is_repair=False,
    )
    fetch_limited_to_quota: bool = _switch(
        "A consumer gets no more at once than its quota allows in a window. Before, an answer that was larger was never sent: it exceeded "
        "the quota each time.",
        "KAFKA-9677, KafkaApis.handleFetchRequest (getMaxValueInQuotaWindow)",
        of=QUOTAS,
        meaning="a consumer gets no more at once than its quota allows (KAFKA-9677)",
        before=(("2.5", False),),
        is_repair=False,
    )
    rate_counts_overlapping_sample: bool = _switch(
        "The rate that a quota is compared with forgets a sample when nothing has been recorded to it for a whole window. Before, when it had "
        "begun a whole window ago, so that the rate jumped.",
        "SampledStat.purgeObsoleteSamples (lastEventMs)",
        of=QUOTAS,
        meaning="a quota's window keeps a sample that overlaps it",
        before=(("3.8", False),),
        is_repair=False,
    )
    init_transactions_times_out: bool = _switch(
        "initTransactions ends with a TimeoutException after max.block.ms. Before, it waited for its coordinator for ever.",
        "KAFKA-6446, KafkaProducer.initTransactions",
        of=TRANSACTIONS,
        meaning="initTransactions does not wait for ever (KAFKA-6446)",
        before=(("2.0", False),),
        is_repair=False,
    )
    end_transaction_times_out: bool = _switch(
        "commitTransaction and abortTransaction end with a TimeoutException after max.block.ms, and may be called again. Before, they "
        "waited for the coordinator for ever.",
        "KAFKA-7763, KafkaProducer.commitTransaction",
        of=TRANSACTIONS,
        meaning="ending a transaction does not take for ever (KAFKA-7763)",
        before=(("2.3", False),),
        is_repair=False,
    )
    delivery_timeout: bool = _switch(
        "delivery.timeout.ms bounds the time from send to report, retries included.",
        "KIP-91",
        of=CLIENTS,
        meaning="a send is reported within delivery.timeout.ms (KIP-91)",
        before=(("2.1", False),),
    )
    expired_memory_kept: bool = _switch(
        "The memory of a batch that expires while a request carries it is given to no other batch before the request is over. Off is "
        "a mutant: the next batch is written over it, and goes to the leader of the batch that has expired.",
        "KAFKA-19012, Sender.failBatch, BufferPool.deallocate (Java clients 2.8.0 to 4.1.1)",
        of=CLIENTS,
        meaning="a request keeps the memory of its batches (KAFKA-19012)",
        guards=("misrouted",),
    )
    oldest_request_fails_first: bool = _switch(
        "When a connection is lost, the oldest of the requests in flight fails first. A producer without "
        "idempotence puts each back to the front of its queue, and so turns their order round.",
        "InFlightRequests.clearAll",
        of=CLIENTS,
        meaning="requests that were lost with a connection keep their order",
        safe=False,
        before=(("2.0", False),),
    )
    leader_in_answer: bool = _switch(
        "A broker that does not lead a partition names the leader when it refuses a produce or a fetch, and a client goes there at once; a "
        "batch does not wait for its backoff when it has another leader. Before, clients asked for metadata first.",
        "KIP-951 (KAFKA-15868), KAFKA-15415, KafkaApis.getCurrentLeader, Metadata.updatePartitionLeadership",
        of=CLIENTS,
        meaning="a client is told of a new leader by the former one (KIP-951)",
        before=(("3.7", False),),
        is_repair=False,
    )
    sticky_partitioner: bool = _switch(
        "Records without a key stay with one partition until its batch is sent; before, round robin.",
        "KIP-480",
        of=CLIENTS,
        meaning="records without a key fill one partition's batch after the other (KIP-480)",
        before=(("2.4", False),),
    )
    hw_counts_whole_isr: bool = _switch(
        "The leader's high watermark waits for every replica in the ISR. Off is a mutant.",
        "Partition.maybeIncrementLeaderHW",
        of=REPLICATION,
        meaning="the high watermark waits for the whole ISR",
        guards=_LOGS,
    )
    ack_waits_for_hw: bool = _switch(
        "acks=all is answered when the high watermark has passed the batch. Off is a mutant.",
        "Partition.checkEnoughReplicasReachOffset",
        of=REPLICATION,
        meaning="acks=all is answered when the high watermark has passed the record",
        guards=_LOGS,
    )
    consumer_limited_by_hw: bool = _switch(
        "Consumers read below the high watermark only. Off is a mutant.",
        "ReplicaManager.readFromLocalLog",
        of=CLIENTS,
        meaning="consumers read below the high watermark only",
        guards=_READS,
    )
    follower_limited_by_hw: bool = _switch(
        "A follower serves consumers below its own high watermark only. Off is a mutant: it serves them up to the end of its log.",
        "KIP-392, Partition.readRecords (FetchHighWatermark)",
        of=FOLLOWER_FETCHING,
        meaning="a follower serves consumers below its own high watermark only (KIP-392)",
        guards=_READS,
    )
    hw_never_falls: bool = _switch(
        "The leader's high watermark never falls, not even while it does not know its followers' LEOs. Off is a mutant.",
        "Partition.maybeIncrementLeaderHW",
        of=REPLICATION,
        meaning="a leader's high watermark never falls",
        guards=("hw-monotonic",),
    )
    hw_limited_to_log_end: bool = _switch(
        "A log that is opened cuts its checkpointed high watermark to its LEO: power loss may have taken what the "
        "checkpoint knew of. Off is a mutant.",
        "Partition.getOrCreateReplica, Log.updateHighWatermark",
        of=REPLICATION,
        meaning="a log is opened with a high watermark that is in it",
        guards=("hw-within-log",),
    )
    recovery_point_follows_flush: bool = _switch(
        "The recovery point that is checkpointed is what has been flushed. Off is a mutant: it is the LEO.",
        "LogManager.checkpointLogRecoveryOffsets, Log.flush",
        of=REPLICATION,
        meaning="a recovery point is what has been flushed",
        guards=("checkpoint-within-log",),
    )
    shutdown_flushes_logs: bool = _switch(
        "A broker that stops in good order flushes its logs before it says so in the clean shutdown file. Off is a mutant.",
        "LogManager.shutdown",
        of=SHUTDOWN,
        meaning="a broker that has stopped in good order has flushed its logs",
        guards=("shutdown-flushes-logs",),
    )
    epoch_cache_follows_log: bool = _switch(
        "The epoch cache is cut where its log was cut: by a truncation, and by what a log that is opened has lost. "
        "Off is a mutant.",
        "KIP-101, Log.truncateTo, Log.loadSegments",
        of=REPLICATION,
        meaning="the epoch cache is cut where the log is (KIP-101)",
        guards=("epoch-cache-monotonic",),
    )
    isr_expansion_checks_hw: bool = _switch(
        "A follower joins the ISR only when it has reached the leader's high watermark. Off is a mutant.",
        "Partition.maybeExpandIsr",
        of=REPLICATION,
        meaning="a follower joins the ISR when it has reached the high watermark",
        guards=_LOGS,
    )
    isr_expansion_checks_registration: bool = _switch(
        "A follower joins the ISR only while its broker is registered, as far as the leader has heard. Before, the fetch of "
        "one that had just lost its registration brought it back into the ISR.",
        "KIP-841 (KAFKA-13916), Partition.isReplicaIsrEligible",
        of=REPLICATION,
        meaning="a follower joins the ISR only while its broker is registered (KIP-841)",
        before=(("3.3", False),),
    )
    hw_checks_registration: bool = _switch(
        "The high watermark waits for a follower that may soon join the ISR only while its broker is registered, as far as "
        "the leader has heard.",
        "KAFKA-15021, Partition.maybeIncrementLeaderHW",
        of=REPLICATION,
        meaning="the high watermark does not wait for a follower that may not join the ISR (KAFKA-15021)",
        before=(("3.6", False),),
    )
    reelection_counts_as_fetch: bool = _switch(
        "A leader that is elected again takes that moment for a fetch from its log end offset, of every follower. One outside the ISR "
        "that reaches this offset later counts as caught up then, and the high watermark waits for it. From 3.3 on members of the ISR alone.",
        "Replica.resetReplicaState (isFollowerInSync), Partition.makeLeader",
        of=REPLICATION,
        meaning="a follower outside the ISR counts as caught up by its own fetches alone",
        latest=False,
        before=(("3.3", True),),
        is_repair=False,
    )
    reelected_leader_forgets_positions: bool = _switch(
        "A leader that is elected again without having heard that it was deposed forgets how far its followers were, as one does that has "
        "followed meanwhile. No release does: a follower that has truncated for the leader in between counts with what it had before.",
        "Partition.makeLeader, Replica.resetReplicaState (isNewLeader)",
        of=REPLICATION,
        meaning="a leader that is elected again learns anew how far its followers are",
        latest=False,
        safe=True,
        guards=_LOGS,
    )
    isr_change_survives_known_state: bool = _switch(
        "In KRaft a leader goes on waiting for a change of the ISR that it has asked for when the metadata log tells it the state that it "
        "has already, from the answer to its change before that. No release does: the leader takes what it has asked for as undone, and a "
        "follower that is to join counts no more for the high watermark, while the controller has it in the ISR.",
        "Partition.makeLeader, Partition.updateAssignmentAndIsr (an equal partition epoch)",
        of=KRAFT,
        meaning="a leader goes on waiting for the ISR that it has asked for when it hears of what it knows",
        latest=False,
        safe=True,
        guards=_LOGS,
    )
    reverted_epochs_recovered: bool = _switch(
        "A broker that opens a log puts the epochs of what is below the first entry of its epoch cache into it again. No release does: where "
        "leader-epoch-checkpoint had a later log start already and log-start-offset-checkpoint did not, a leader says of older epochs that "
        "they end at the later start, and a follower keeps what it should truncate.",
        "LogLoader.load, LogSegment.recover, LeaderEpochFileCache.endOffsetFor",
        of=DELETED_RECORDS,
        meaning="a log that begins earlier again has the leader epochs of that",
        latest=False,
        safe=True,
        guards=_LOGS,
    )
    isr_lag_counts_messages: bool = _switch(
        "A follower leaves the ISR when it is more than replica.lag.max.messages behind, however quickly it catches up, or when it has sent no "
        "fetch for replica.lag.time.max.ms, which is how often a leader looks. Since 0.9 it leaves when it has not been caught up for that time. Up to "
        "0.8: before all releases that have a profile.",
        "KIP-16 (KAFKA-1546), Partition.getOutOfSyncReplicas",
        of=REPLICATION,
        meaning="a follower leaves the ISR for the time that it is behind, not for a number of records (KIP-16)",
        latest=False,
        before=(("0.9", True),),
        is_repair=False,
    )
    isr_shrink_waits_for_write: bool = _switch(
        "A leader counts a follower out only when the smaller ISR is written. Off is a mutant: it counts at once, "
        "written or not.",
        "KIP-497 (maximal ISR), Partition.maybeShrinkIsr",
        of=REPLICATION,
        meaning="a smaller ISR counts when it is written (KIP-497)",
        guards=_LOGS,
    )
    refused_isr_write_obeyed: bool = _switch(
        "A leader whose ISR write is refused keeps the ISR that it had. Off is a mutant: a leader that has been "
        "succeeded goes on with an ISR of its own making.",
        "Partition.expandIsr, Partition.shrinkIsr",
        of=REPLICATION,
        meaning="a leader goes by no ISR that was refused",
        guards=_LOGS,
    )
    maximal_isr: bool = _switch(
        "A follower that the leader has tried to take into the ISR counts for the high watermark until the controller "
        "says otherwise. Before, a leader whose write was refused went by the ISR that it knew: if an earlier try had "
        "reached ZooKeeper and its answer was lost, that is smaller than the ISR from which its successor is elected.",
        "KIP-497 (KAFKA-8836), Partition.handleAlterIsrResponse",
        of=REPLICATION,
        meaning="a follower that may have joined the ISR counts (KIP-497)",
        before=(("2.7", False),),
        guards=_LOGS,
    )
    requests_wait_for_isr_write: bool = _switch(
        "Requests for a partition wait while its leader writes another ISR, and its high watermark stays. From KIP-497 on they do "
        "not: a follower that is to join counts at once, and one that is to leave until the change is written.",
        "KIP-497 (KAFKA-8836), Partition.sendAlterIsrRequest",
        of=REPLICATION,
        meaning="a leader goes on while its ISR is being written (KIP-497)",
        latest=False,
        before=(("2.7", True),),
        is_repair=False,
    )
    isr_altered_by_controller: bool = _switch(
        "With ZooKeeper a leader asks the controller for another ISR (AlterPartition, AlterIsr up to 3.1), which writes the znode, knows it "
        "at once and tells all brokers. Before, the leader wrote it itself, and the controller heard of it later "
        "(/isr_change_notification). In KRaft it is so in every release.",
        "KIP-497 (KAFKA-8836), DefaultAlterPartitionManager, KafkaController.processAlterPartition",
        of=ZOOKEEPER,
        meaning="the controller writes the ISRs that leaders want (KIP-497)",
        before=(("2.7", False),),
        is_repair=False,
    )
    repeated_isr_write_recognised: bool = _switch(
        "With ZooKeeper a controller whose write of an ISR is refused looks whether the znode has that ISR already, and takes it for "
        "written. No release does that since leaders have asked the controller (2.7): where the connection to ZooKeeper breaks before the answer, "
        "the write is repeated and refused, and the leader waits for news until the partition has another leader.",
        "KafkaZkClient.updateLeaderAndIsr, KafkaController.processAlterPartition, Partition.handleAlterPartitionError",
        of=REPEATED_WRITES,
        meaning="a controller recognises an ISR that it has written before it repeats the write",
        latest=False,
        safe=True,
        guards=("unavailable",),
    )
    isr_write_conditional: bool = _switch(
        "A leader writes an ISR only if the znode has not been written since. Off is a mutant: a leader that has been "
        "succeeded writes itself back into it.",
        "ReplicationUtils.updateLeaderAndIsr",
        of=ZOOKEEPER,
        meaning="a leader writes no ISR over its successor's",
        guards=(*_LOGS, "two-leaders", "controller-writes-fenced"),
    )
    min_isr_checked: bool = _switch(
        "acks=all is refused while the ISR is smaller than min.insync.replicas. Off is a mutant.",
        "KAFKA-1555, Partition.appendRecordsToLeader",
        of=REPLICATION,
        meaning="acks=all is refused below min.insync.replicas (KAFKA-1555)",
        guards=("acked-below-min-isr",),
    )
    min_isr_limited_to_replicas: bool = _switch(
        "A min.insync.replicas above the number of replicas counts as that number. Before, such a topic took no acks=all.",
        "KAFKA-15583, Partition.effectiveMinIsr",
        of=SMALL_TOPICS,
        meaning="min.insync.replicas counts as the number of replicas at the most (KAFKA-15583)",
        before=(("3.7", False),),
        is_repair=False,
    )
    hw_waits_for_min_isr: bool = _switch(
        "The high watermark stays while the ISR is smaller than min.insync.replicas: what is appended meanwhile, with "
        "acks=1, is not read before the ISR has grown again.",
        "KAFKA-15583, Partition.maybeIncrementLeaderHW",
        of=REPLICATION,
        meaning="the high watermark stays below min.insync.replicas (KAFKA-15583)",
        before=(("3.7", False),),
        is_repair=False,
        guards=("hw-waits-for-min-isr",),
    )
    deposed_leader_fails_pending: bool = _switch(
        "A leader that is succeeded answers NOT_LEADER_FOR_PARTITION to the acks=all that wait with it. Off is a "
        "mutant: it answers that they are committed.",
        "DelayedProduce.tryComplete",
        of=REPLICATION,
        meaning="a leader that is succeeded acknowledges nothing more",
        guards=_LOGS,
    )
    producer_state_follows_log: bool = _switch(
        "After a truncation the producers' states are learned again from what is left. Off is a mutant: a leader "
        "takes for a duplicate what it no longer has.",
        "Log.truncateTo, ProducerStateManager.truncateAndReload",
        of=REPLICATION,
        meaning="what is cut off a log is not remembered as a batch of its producer",
        guards=_LOGS,
    )
    duplicate_waits_for_hw: bool = _switch(
        "A retry that a leader recognises is answered like the first request, when the high watermark has passed the batch. Off is a "
        "mutant: it is answered at once.",
        "ReplicaManager.appendRecords, DelayedProduce",
        of=CLIENTS,
        meaning="a recognised retry is acknowledged when its record is committed",
        guards=_LOGS,
    )
    followers_learn_producers: bool = _switch(
        "A follower learns the producers' states from the batches that it copies. Off is a mutant: a new leader "
        "knows only what it has read from its disk.",
        "KIP-98, Log.append (analyzeAndValidateProducerState)",
        of=REPLICATION,
        meaning="followers learn what their leader knows of producers (KIP-98)",
        guards=_SEQUENCES,
    )
    unclean_election_only_if_enabled: bool = _switch(
        "A replica outside the ISR is elected only where unclean.leader.election.enable says so. Off is a mutant.",
        "KIP-106, PartitionLeaderElectionAlgorithms.offlinePartitionLeaderElection",
        of=REPLICATION,
        meaning="unclean elections only where they are enabled (KIP-106)",
        guards=_LOGS,
    )
    kraft_elects_uncleanly: bool = _switch(
        "In KRaft the controller goes by unclean.leader.election.enable. Before, it elected no replica from outside the ISR, whatever that said.",
        "KAFKA-12670, ConfigurationControlManager.uncleanLeaderElectionEnabledForTopic",
        of=KRAFT,
        meaning="in KRaft unclean.leader.election.enable counts (KAFKA-12670)",
        before=(("3.9", False),),
        is_repair=False,
    )
    log_dir_failure_reported: bool = _switch(
        "In KRaft a broker tells the controller with its heartbeats which replicas are in log directories that have failed, and others are "
        "elected. Before, the controller did not hear of it: a partition that it led had no leader that served, until it was restarted.",
        "KIP-858 (KAFKA-14127), BrokerLifecycleManager.propagateDirectoryFailure",
        of=KRAFT_DISKS,
        meaning="in KRaft the controller hears of failed log directories (KIP-858)",
        before=(("3.7", False),),
        is_repair=False,
    )
    replica_epoch_checked: bool = _switch(
        "In KRaft a fetch carries its follower's broker epoch, and the controller takes into an ISR only a broker that still has it. "
        "Before, a follower that had restarted, and lost what it had, might join the ISR on a fetch of its former life.",
        "KIP-903 (KAFKA-14139), ReplicationControlManager.ineligibleReplicasForIsr",
        of=KRAFT,
        meaning="a follower joins the ISR only in the life in which it has fetched (KIP-903)",
        before=(("3.5", False),),
        is_repair=False,
        guards=_LOGS,
    )
    former_life_fetch_refused: bool = _switch(
        "In KRaft a leader counts no fetch of a broker's former life once the metadata log says that the broker has registered again. "
        "Before, a fetch that came so late was taken for what the log of the new life has.",
        "KAFKA-15221, Replica.updateFetchStateOrThrow",
        of=REPLICATION,
        meaning="a fetch of a broker's former life does not count (KAFKA-15221)",
        before=(("3.7", False),),
        guards=_LOGS,
    )
    eligible_leader_replicas: bool = _switch(
        "In KRaft members that have left an ISR which is smaller than min.insync.replicas are remembered, and lead when "
        "no replica in it can; the last member leaves the ISR, too, and a broker that stopped uncleanly is not elected. Before, the last "
        "member stayed whatever it had lost.",
        "KIP-966, PartitionChangeBuilder",
        of=KRAFT,
        meaning="an eligible replica leads when the ISR cannot (KIP-966)",
        before=(("4.1", False),),
        is_repair=False,
        guards=("unclean-replica-not-elected",),
    )
    fenced_broker_keeps_session: bool = _switch(
        "In KRaft a broker that was heard of within broker.session.timeout.ms cannot register as a new process, also where it is "
        "fenced or has stopped in good order. Before, that held for one that was not fenced.",
        "BrokerHeartbeatTracker, ClusterControlManager.registerBroker",
        of=KRAFT,
        meaning="a broker that was just heard of does not register anew, fenced or not",
        before=(("4.0", False),),
        is_repair=False,
    )
    repeated_registration_kept: bool = _switch(
        "In KRaft a process that registers once more keeps its broker epoch, and is fenced only if it was. Before, it had another epoch, and up to "
        "3.7.0 it was fenced as well, without another leader or ISR, until its next heartbeat; one that does not know of its other epoch is "
        "refused for good.",
        "KAFKA-16952, KAFKA-16757, ClusterControlManager.registerBroker",
        of=KRAFT,
        meaning="a process that registers once more stays what it was (KAFKA-16952)",
        before=(("3.9", False),),
        is_repair=False,
        is_met=False,
    )
    unfenced_broker_heard_anew: bool = _switch(
        "In KRaft the record that unfences a broker resets up to where the controller knows it to have the metadata: another one that stops "
        "waits for its next heartbeat. Before, the heartbeat with which it was unfenced counted.",
        "BrokerHeartbeatManager.register (32576f61ce8)",
        of=KRAFT,
        meaning="a broker that was unfenced just now has to be heard of before another one stops",
        before=(("3.7", False),),
        is_repair=False,
    )
    check_quorum: bool = _switch(
        "In KRaft a leader of the quorum that no majority of the voters has fetched from for one and a half of "
        "controller.quorum.fetch.timeout.ms resigns. Before, one that was cut off led on, and brokers that reached no other "
        "went on with it.",
        "KAFKA-15489, LeaderState.timeUntilCheckQuorumExpires",
        of=KRAFT,
        meaning="a leader of the quorum that no majority fetches from resigns (KAFKA-15489)",
        before=(("3.7", False),),
        is_repair=False,
    )
    unclean_shutdown_leaves_elr: bool = _switch(
        "In KRaft with eligible leader replicas, a broker that registers again after an unclean stop leaves the ISRs and ELRs that it was in. Off is a "
        "mutant: it is elected for what it may have lost.",
        "KIP-966, ClusterControlManager.registerBroker (handleUncleanBrokerShutdown)",
        of=KRAFT,
        meaning="a broker that stopped uncleanly is no longer eligible (KIP-966)",
        guards=("unclean-replica-not-elected",),
    )
    alter_partition_fenced: bool = _switch(
        "In KRaft the controller takes an ISR from the present leader alone, and on top of the present partition state. Off is a mutant: "
        "what a former leader wanted comes late and takes effect.",
        "KIP-497, ReplicationControlManager.validateAlterPartitionData",
        of=KRAFT,
        meaning="the controller takes no ISR that goes by an older state (KIP-497)",
        guards=_LOGS,
    )
    election_raises_leader_epoch: bool = _switch(
        "In KRaft another leader has another leader epoch. Off is a mutant.",
        "PartitionChangeBuilder.electLeader",
        of=KRAFT,
        meaning="another leader has another leader epoch",
        guards=(*_LOGS, "two-leaders"),
    )
    producer_ids_given_once: bool = _switch(
        "In KRaft a block of producer ids that was given is noted in the metadata log. Off is a mutant: the next broker gets the same block.",
        "KIP-730, ProducerIdControlManager.generateNextProducerId",
        of=KRAFT,
        meaning="a producer id is given once (KIP-730)",
        guards=_SEQUENCES,
    )
    one_vote_per_epoch: bool = _switch(
        "In KRaft a voter votes once in an epoch. Off is a mutant: it votes for everyone whose log goes as far as its own.",
        "KIP-595, KafkaRaftClient.handleVoteRequest (QuorumState.votedKey)",
        of=KRAFT,
        meaning="a voter votes once in an epoch (KIP-595)",
        guards=(*_QUORUM, *_LOGS),
    )
    snapshot_cuts_shorter_log_only: bool = _switch(
        "In KRaft a node that starts begins anew behind its latest snapshot only where its log does not go that far. Off is a mutant: it always "
        "does, and has forgotten what it has told the leader that it has.",
        "KIP-630, KafkaMetadataLog.truncateToLatestSnapshot",
        of=KRAFT,
        meaning="a node that starts keeps what its metadata log has behind its latest snapshot (KIP-630)",
        guards=_SNAPSHOTS,
    )
    snapshot_of_committed_metadata: bool = _switch(
        "In KRaft a snapshot has what is committed. Off is a mutant: that of the active controller has what it goes by, which is ahead of that.",
        "KIP-630, KafkaMetadataLog.createNewSnapshot; MetadataLoader.handleCommit",
        of=KRAFT,
        meaning="a snapshot of the metadata has what is committed, and nothing else (KIP-630)",
        guards=_SNAPSHOTS,
    )
    pre_vote: bool = _switch(
        "In KRaft a voter asks whether it would be elected before it runs for office, so that one that was cut off deposes "
        "no leader when it is back. A leader that has resigned and sees no successor asks in the next epoch. Before, it stood for "
        "election there.",
        "KIP-996, KafkaRaftClient",
        of=KRAFT,
        meaning="a voter asks before it runs for office (KIP-996)",
        before=(("4.0", False),),
        is_repair=False,
    )
    election_backoff: str = _switch(
        "How long a candidate in KRaft that is not elected waits until it stands again. Up to 100 ms times 2, 4, 8 and so on, `capped` at "
        "controller.quorum.election.backoff.max.ms, so that several that have got there stand at the same moment again and again; the same in "
        "steps of 50 ms, and `jittered` at that maximum too; that after a refusal only, while one that hears nothing stands again when its "
        "election timeout is over; or never, so that a refused candidate waits for that timeout as well.",
        "KAFKA-18345, KafkaRaftClient.pollCandidate, RaftUtil.binaryExponentialElectionBackoffMs",
        of=KRAFT,
        meaning="a candidate waits for its election timeout, and does not back off (KAFKA-18345)",
        latest=NEVER,
        choices=(CAPPED, JITTERED, AFTER_REFUSAL, NEVER),
        before=(("3.9.2", CAPPED), ("4.0", JITTERED), ("4.1", AFTER_REFUSAL)),
        is_repair=False,
    )
    voters_look_for_leader: bool = _switch(
        "In KRaft a voter that knows no leader, or whose leader does not answer, fetches from other voters and so finds the leader, as brokers do. "
        "Before, it waited for its timeout and stood for election, which deposes a leader that it had not heard of.",
        "KAFKA-17030, KafkaRaftClient.pollUnattachedCommon, maybeSendFetchToBestNode",
        of=KRAFT,
        meaning="a voter without a leader looks for one (KAFKA-17030)",
        before=(("3.9.1", False),),
        is_repair=False,
    )
    begin_quorum_epoch_repeated: str = _switch(
        "Whether a leader of KRaft says again that it leads, each half of controller.quorum.fetch.timeout.ms: never, once a voter has heard it; "
        "always, to all voters; or to those alone that have not fetched for that long. A voter that is in a later epoch answers so, and "
        "deposes the leader.",
        "KAFKA-16536, KAFKA-16926, LeaderState.timeUntilBeginQuorumEpochTimerExpires, needToSendBeginQuorumRequests",
        of=KRAFT,
        meaning="a leader says again that it leads to who does not fetch (KAFKA-16536, KAFKA-16926)",
        latest=WHILE_SILENT,
        choices=(NEVER, ALWAYS, WHILE_SILENT),
        before=(("3.9", NEVER), ("4.2", ALWAYS)),
        is_repair=False,
    )
    fetch_tells_high_watermark: bool = _switch(
        "In KRaft a fetch of metadata says up to where its sender knows it to be committed, and is answered when there is more. "
        "Before, that came with the next record, or half a second later.",
        "KIP-1166, KafkaRaftClient",
        of=KRAFT,
        meaning="brokers hear at once of what is committed (KIP-1166)",
        before=(("4.1", False),),
        is_repair=False,
    )
    preferred_leader_elected_once_more: bool = _switch(
        "A preferred leader election starts a new leader epoch also where the preferred replica leads already.",
        "KIP-183, KafkaController.processPreferredReplicaLeaderElection",
        of=PREFERRED,
        meaning="a preferred leader that leads already is not elected again (KIP-183)",
        latest=False,
        before=(("1.1", False), ("2.2", True)),
    )
    transactional_epoch_checked: bool = _switch(
        "Coordinators and leaders refuse a producer whose transactional id has a newer epoch. Off is a mutant: a producer that was "
        "succeeded goes on writing in its successor's transactions.",
        "KIP-98, TransactionCoordinator, ProducerAppendInfo.checkProducerEpoch",
        of=TRANSACTIONS,
        meaning="a producer that was succeeded writes in no transaction (KIP-98)",
        guards=(*_GROUPS, *_TRANSACTIONS),
    )
    lso_below_open_transactions: bool = _switch(
        "read_committed reads below the first offset of the oldest transaction that is open. Off is a mutant: it reads up to the high "
        "watermark.",
        "KIP-98, UnifiedLog.fetchLastStableOffsetMetadata",
        of=TRANSACTIONS,
        meaning="read_committed reads nothing that is not decided (KIP-98)",
        guards=(*_GROUPS, *_TRANSACTIONS),
    )
    markers_to_all_partitions: bool = _switch(
        "A coordinator has the end of a transaction written to all partitions of it. Off is a mutant: to the first one alone.",
        "KIP-98, TransactionMarkerChannelManager.addTxnMarkersToSend",
        of=TRANSACTIONS,
        meaning="a transaction ends in all its partitions (KIP-98)",
        guards=(*_GROUPS, *_TRANSACTIONS),
    )
    prepared_commit_finished: bool = _switch(
        "A coordinator that is elected commits what its predecessor had noted as to be committed. Off is a mutant: it aborts it.",
        "KIP-98, TransactionStateManager.loadTransactionsForTxnTopicPartition",
        of=TRANSACTIONS,
        meaning="a new coordinator commits what was to be committed (KIP-98)",
        guards=(*_GROUPS, *_TRANSACTIONS),
    )
    transactions_loaded_once_committed: bool = _switch(
        "A broker that is elected to coordinate transactions answers once its log of them is committed as far as it goes. No release does: "
        "the coordinator tells a leader that a partition is in the transaction by a record that is not committed. If its successor does not "
        "have that record, it ends the transaction without the partition.",
        "TransactionStateManager.loadTransactionMetadata (FetchIsolation.LOG_END)",
        of=TRANSACTIONS,
        meaning="a new coordinator answers by committed records only",
        latest=False,
        safe=True,
        guards=(*_GROUPS, *_TRANSACTIONS),
    )
    producer_fenced_error: bool = _switch(
        "A coordinator answers PRODUCER_FENCED to a producer of an older epoch. Before, INVALID_PRODUCER_EPOCH, as leaders do in every "
        "release.",
        "KIP-588 (KAFKA-9910), TransactionCoordinator",
        of=TRANSACTIONS,
        meaning="a coordinator says that a producer was succeeded (KIP-588)",
        before=(("2.7", False),),
        is_repair=False,
    )
    empty_transactions_tracked: bool = _switch(
        "The marker of a transaction that has nothing in a partition counts there like one that has: it is read with read_committed once "
        "it is replicated, and an abort is in the index of aborted transactions. Later, it stands in the log and that is all.",
        "KAFKA-10702, ProducerAppendInfo.appendEndTxnMarker",
        of=TRANSACTIONS,
        meaning="a marker without a transaction ends nothing (KAFKA-10702)",
        latest=False,
        before=(("2.8", True),),
        is_repair=False,
    )
    aborted_told_at_stable_offset: bool = _switch(
        "A fetch with read_committed from the last stable offset itself is told the aborted transactions behind that, though it reads "
        "nothing. Later it is told none. To a consumer it is the same.",
        "KAFKA-9838, Log.read",
        of=TRANSACTIONS,
        meaning="a fetch that reads nothing is told no aborted transactions (KAFKA-9838)",
        latest=False,
        before=(("2.5.1", True),),
        is_repair=False,
    )
    later_epoch_cannot_end: bool = _switch(
        "A client cannot end a transaction with an epoch that it was never given. Before, such an epoch was no reason to refuse it.",
        "KAFKA-9600, TransactionCoordinator.endTransaction (isFromClient)",
        of=TRANSACTIONS,
        meaning="EndTxn of a client has the epoch of its transactional id",
        before=(("2.6", False),),
        is_repair=False,
    )
    transaction_verification: bool = _switch(
        "A leader asks the coordinator whether a transaction has its partition before the first append of it there. Before, what came "
        "late, after the marker, began a transaction that was never ended.",
        "KIP-890 (KAFKA-14402, KAFKA-12671), transaction.partition.verification.enable, AddPartitionsToTxnManager",
        of=TRANSACTIONS,
        meaning="a leader begins a transaction only where the coordinator knows of it (KIP-890)",
        before=(("3.6", False),),
        guards=_TRANSACTIONS,
    )
    transactional_commits_verified: bool = _switch(
        "A group coordinator asks the transaction coordinator whether a transaction has the group before it takes offsets in it. Before, "
        "offsets that came late, after the marker, were pending for good.",
        "KIP-890 (KAFKA-15784), GroupCoordinator.handleTxnCommitOffsets",
        of=TRANSACTIONS,
        meaning="offsets are committed only in a transaction that the coordinator knows of (KIP-890)",
        before=(("3.7", False),),
        guards=_TRANSACTIONS,
    )
    transaction_abortable_error: bool = _switch(
        "A producer whose transaction does not have a partition gets TRANSACTION_ABORTABLE, and may abort it. Before, INVALID_TXN_STATE.",
        "KIP-890 (KAFKA-16314), TransactionCoordinator.handleVerifyPartitionsInTransaction",
        of=TRANSACTIONS_V1,
        meaning="a producer is told that it may abort its transaction (KIP-890)",
        before=(("3.8", False),),
        is_repair=False,
    )
    transactions_v2: bool = _switch(
        "Each end of a transaction raises the epoch of its producer, which EndTxn answers, and leaders add their partitions to "
        "transactions themselves (transaction.version 2, with which new clusters are made). Before, an EndTxn that came late ended "
        "the producer's next transaction.",
        "KIP-890 (KAFKA-14402), TransactionVersion.TV_2, TransactionMetadata.prepareAbortOrCommit",
        of=TRANSACTIONS,
        meaning="a transaction has an epoch of its own (KIP-890)",
        before=(("4.0", False),),
        guards=(*_GROUPS, *_TRANSACTIONS),
    )
    next_transaction_verified: bool = _switch(
        "A leader takes a transaction for open only if it has the epoch of what is to be appended. Before, what a producer sent while its "
        "last transaction had no marker there yet went with that one: harmless while all transactions of a producer have one epoch "
        "and none begins before that.",
        "KIP-890 (KAFKA-18575), UnifiedLog.hasOngoingTransaction",
        of=TRANSACTIONS,
        meaning="the next transaction begins when the last one has its marker (KIP-890)",
        before=(("4.0", False),),
        guards=_TRANSACTIONS,
    )
    transaction_begins_at_zero: bool = _switch(
        "With transactions v2 the first batch of a producer in a log has sequence number 0. Before, any, as without transactions "
        "(`unknown_producer_begins_anywhere`).",
        "KIP-890 (KAFKA-18202), ProducerAppendInfo.checkSequence (supportsEpochBump)",
        of=TRANSACTIONS,
        meaning="a producer's first batch in a log has sequence number 0 (KAFKA-18202)",
        before=(("4.1", False),),
        is_repair=False,
        is_met=False,
    )
    stale_epoch_refused_unverified: bool = _switch(
        "A leader refuses what begins a transaction with an epoch before its producer's last one (INVALID_PRODUCER_EPOCH), and asks no "
        "coordinator. Before, it asked, and told the producer what that had answered.",
        "KIP-890 (KAFKA-18042), UnifiedLog.maybeStartTransactionVerification",
        of=TRANSACTIONS,
        meaning="a leader refuses an earlier epoch before it asks the coordinator",
        before=(("4.1", False),),
        is_repair=False,
    )
    stale_epoch_told_first: bool = _switch(
        "A producer that was fenced while the coordinator was asked about its transaction is told INVALID_PRODUCER_EPOCH, after which it "
        "may abort it. Before, and in 4.0.0 and 4.1.0, INVALID_TXN_STATE, after which it may not.",
        "KAFKA-19690, UnifiedLog.analyzeAndValidateProducerState",
        of=TRANSACTIONS,
        meaning="a fenced producer is told of its epoch first (KAFKA-19690)",
        before=(("3.9.2", False),),
        is_repair=False,
        is_met=False,
    )
    preferred_leader_from_isr: bool = _switch(
        "The preferred replica is elected only if it is in the ISR. Off is a mutant.",
        "PartitionLeaderElectionAlgorithms.preferredReplicaPartitionLeaderElection",
        of=PREFERRED,
        meaning="the preferred replica leads only from within the ISR",
        guards=_LOGS,
    )

    def elects_uncleanly(self, metadata: str) -> bool:
        """Return whether controllers go by unclean.leader.election.enable, by where the metadata is."""
        return metadata != "kraft" or self.kraft_elects_uncleanly


@cache
def switch_docs() -> Mapping[str, Switch]:
    """Return what is said of each switch, by its name, in the order of `Behaviours`."""
    return {switch.name: cast("Switch", switch.metadata) for switch in fields(Behaviours)}


def value_in(release: str, name: str) -> Any:
    """Return what a release does, by the name of the switch."""
    return _value_in(release, switch_docs()[name])


def history_of(name: str) -> tuple[tuple[str, Any], ...]:
    """Return the values that a switch has had, oldest first, each with the release that brought it.

    The oldest has been there since before all releases, so its release is empty.
    """
    switch = switch_docs()[name]
    releases = ["", *(first for first, _ in switch["before"])]
    return tuple(zip(releases, [*(value for _, value in switch["before"]), switch["latest"]], strict=True))


@dataclass(frozen=True, slots=True)
class ReleaseProfile:
    """A release that a campaign can name, and what it does."""

    name: str
    version: Version
    behaviours: Behaviours
    doc: str

    @property
    def modes(self) -> tuple[str, ...]:
        """Where brokers can keep their metadata, the default first: in KRaft since 3.3, in nothing else since 4.0 (KIP-833)."""
        if self.version < (3, 3):
            return ("zookeeper",)
        return ("kraft", "zookeeper") if self.version < (4,) else ("kraft",)

    @property
    def metadata(self) -> str:
        """Where brokers keep their metadata unless a campaign says so."""
        return self.modes[0]


def behaviours_in(release: str) -> Behaviours:
    """Return what a release does as far as there are switches for it: any release, also one that has no profile."""
    return Behaviours(
        **{switch: _value_in(release, described) for switch, described in switch_docs().items()}
    )


def _profile(name: str, doc: str) -> ReleaseProfile:
    return ReleaseProfile(name, version_of(name), behaviours_in(name), doc)


RELEASES: Final[dict[str, ReleaseProfile]] = {
    release.name: release
    for release in (
        _profile("0.10.2", "Followers truncate to their high watermark; no idempotence."),
        _profile("0.11", "Leader epochs (KIP-101), the idempotent producer (KIP-98)."),
        _profile(
            "1.1", "Incremental fetch sessions (KIP-227), five batches of each producer are remembered."
        ),
        _profile("2.0", "The epoch answer carries the epoch (KIP-279)."),
        _profile(
            "2.4", "Leader epochs in fetches (KIP-320), broker epochs (KIP-380), delivery timeout (KIP-91)."
        ),
        _profile(
            "2.8", "A follower that may have joined the ISR counts (KIP-497); truncation on fetch (KIP-595)."
        ),
        _profile(
            "3.6",
            "Producers are idempotent with acks=all by default (KIP-679); only a registered follower joins the ISR (KIP-841); metadata in KRaft "
            "unless a campaign says zookeeper.",
        ),
        _profile(
            "3.9",
            "The high watermark waits for min.insync.replicas (KAFKA-15583); in KRaft unclean elections (KAFKA-12670) and failed log "
            "directories (KIP-858) count. The last with ZooKeeper.",
        ),
        _profile(
            "4.0",
            "No ZooKeeper; each transaction has an epoch of its own (KIP-890), brokers assign for group.protocol=consumer (KIP-848), voters ask "
            "before they run for office (KIP-996), producers linger for 5 ms (KIP-1030).",
        ),
        _profile(
            "4.3",
            "Eligible leader replicas (KIP-966), by default from 4.1 on; brokers hear at once of what is committed (KIP-1166), a commit is "
            "fenced by the epoch of its assignment (KIP-1251).",
        ),
        _profile(
            "4.4",
            "A consumer group assigns when its members prefer another assignor (KAFKA-20434), a refused transactional commit names its error "
            "(KIP-1319), compaction leaves fewer empty batches (KAFKA-20452).",
        ),
    )
}
"""The releases whose data plane is modelled, oldest first."""

NEWEST_RELEASE: Final = list(RELEASES)[-1]

REPAIRED_SINCE: Final[dict[str, Any]] = {
    name: switch["latest"]
    for name, switch in switch_docs().items()
    if switch["is_repair"] and value_in(DEFAULT_RELEASE, name) != switch["latest"] == switch["safe"]
}
"""What has been repaired since the default release: the flaws that it has, as they are in the newest one."""
