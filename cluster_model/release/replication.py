"""Declares the switches of replication: leaders, followers, the ISR, and effects on clients."""

from functools import partial
from typing import Final

from harrow.cluster_model.lazy_dataclass import dataclass
from harrow.cluster_model.release import guards
from harrow.cluster_model.release.subjects import (
    CLIENTS,
    DELETED_RECORDS,
    EARLIER_TERMS,
    FOLLOWER_FETCHING,
    KRAFT,
    PREFERRED,
    QUOTAS,
    REPLICATION,
    SMALL_TOPICS,
    TRUNCATION,
)
from harrow.cluster_model.release.switch import ALWAYS, NEVER, Mutant, Repair, switch

HIGH_WATERMARK: Final = "high_watermark"
LEADER_EPOCH: Final = "leader_epoch"
ANSWERED_EPOCH: Final = "answered_epoch"
NO_TRUNCATION: Final = "none"
"""Values of `follower_truncation`, in the order of its explanation."""
WITH_SELECTOR: Final = "with_selector"
"""A value of `hw_advance_completes_follower_fetches`: if ``replica.selector.class`` is set."""
TRUNCATES: Final = "truncates"
SHUTS_DOWN: Final = "shuts_down"
HANGS: Final = "hangs"
"""Values of `out_of_range_follower`, in the order of its explanation."""

_switch: Final = partial(switch, subject=REPLICATION)


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplicationSwitches:
    """Each field is a switch. Its default is the value that the default release has."""

    follower_truncation: str = _switch(
        "Where a new follower truncates its log: at its own high watermark, at the end offset of its last "
        "leader epoch as the leader answers it, or at that offset with the epoch of the answer taken into "
        "account. With `none` it never truncates.",
        "KIP-101, KIP-279, AbstractFetcherThread.scala",
        meaning="a follower truncates to the end of its last leader epoch (KIP-101, KIP-279)",
        latest=ANSWERED_EPOCH,
        choices=(HIGH_WATERMARK, LEADER_EPOCH, ANSWERED_EPOCH, NO_TRUNCATION),
        former_values=(("0.11", HIGH_WATERMARK), ("2.0", LEADER_EPOCH)),
        guards=guards.LOGS,
        repair=(
            Repair(
                "KIP-101",
                "a follower asks its leader where its leader epoch ends, instead of truncating to its own high "
                "watermark",
                since="0.11",
            ),
            Repair(
                "KIP-279",
                "the answer carries the epoch, so a follower that does not have that epoch asks again",
            ),
        ),
        mutant=(
            Mutant(
                "hw-truncation",
                "Followers truncate to their own high watermark, which lags. One that restarts and is elected "
                "at once has lost acknowledged records.",
                value=HIGH_WATERMARK,
                source="KIP-101; Kafka before 0.11",
                noticed_by=("lost-write", "log-divergence", "isr-holds-committed", "log-matching"),
            ),
            Mutant(
                "no-truncation",
                "Followers never truncate, so uncommitted records of a former leader stay in their logs.",
                value=NO_TRUNCATION,
                source="AbstractFetcherThread.maybeTruncate",
                noticed_by=("log-divergence", "lost-write", "isr-holds-committed", "log-matching"),
            ),
            Mutant(
                "epoch-answer-without-epoch",
                "The epoch answer carries no epoch. After two quick leader changes a follower keeps records of "
                "an epoch that its leader never had.",
                value=LEADER_EPOCH,
                source="KIP-279, KAFKA-6361; Kafka 0.11 to 1.1",
                noticed_by=("log-divergence", "log-matching"),
            ),
        ),
    )
    truncation_on_fetch: bool = _switch(
        "A follower fetches from its LEO at once, and sends the epoch of its last record. If the leader has "
        "other records there, it answers with the end of that epoch instead of data and a high watermark, "
        "and does not count the fetch. Before, each new follower sent OffsetsForLeaderEpoch first.",
        "KIP-595, Partition.readRecords, AbstractFetcherThread.truncateOnFetchResponse",
        subject=TRUNCATION,
        meaning="a leader answers a fetch from a diverging log with the end of its epoch (KIP-595)",
        since="2.7",
        is_repair=False,
    )
    stale_fetch_response_ignored: bool = _switch(
        "A follower ignores the answer to a fetch that it sent in an older leader epoch. Before, the answer "
        "counted if the follower was still at the offset of that fetch, so an answer from a former term of "
        "the same leader could truncate records committed since. Up to 2.6 a follower first truncated for "
        "the new epoch, which made such an answer harmless.",
        "KAFKA-18991, AbstractFetcherThread.processFetchRequest (3.9.1, 4.0.1)",
        subject=EARLIER_TERMS,
        meaning=(
            "a follower ignores the answer to a fetch that it sent in an older leader epoch (KAFKA-18991)"
        ),
        since="3.9.1",
        guards=guards.LOGS,
        repair=Repair("KAFKA-18991", needs="truncation_on_fetch"),
        mutant=Mutant(
            "outdated-fetch-answer",
            "A follower accepts the answer to a fetch that it sent to the same leader in an older epoch, "
            "and truncates records committed since.",
            source="KAFKA-18991; Kafka 2.7 to 3.9.0, 4.0.0",
            noticed_by=("isr-holds-committed", "lost-write", "log-divergence", "log-matching"),
            kafka="3.6",
        ),
    )
    diverging_fetch_keeps_follower_leo: bool = _switch(
        "A leader that answers a fetch with a diverging epoch does not take that fetch's offset as the "
        "follower's LEO.",
        "KIP-595, Partition.fetchRecords (DivergingEpoch)",
        subject=TRUNCATION,
        meaning="a fetch from a diverging log does not count (KIP-595)",
        guards=guards.LOGS,
        mutant=Mutant(
            "diverging-fetch-counts",
            "A fetch from a diverging log counts, so the leader commits records that the follower is about "
            "to truncate.",
            source="KIP-595, Partition.fetchRecords",
            noticed_by=("isr-holds-committed", "lost-write", "log-matching"),
            kafka="2.8",
        ),
    )
    out_of_range_follower: str = _switch(
        "What a follower does when its leader's log ends before its own and unclean.leader.election.enable "
        "is false: it truncates, as it does when the setting is true; its broker shuts down; or its broker "
        "hangs during shutdown, which waits for the same thread that started it.",
        "KAFKA-7414, ReplicaFetcherThread.handleOffsetOutOfRange",
        subject=TRUNCATION,
        meaning="a follower that is ahead of its leader truncates (KAFKA-7414)",
        latest=TRUNCATES,
        choices=(TRUNCATES, SHUTS_DOWN, HANGS),
        former_values=(("0.11", HANGS), ("2.0.1", SHUTS_DOWN)),
        guards=("unavailable",),
        repair=Repair("KAFKA-7414"),
    )
    epoch_entry_on_election: bool = _switch(
        "A new leader adds (epoch, LEO) to its epoch cache when it is elected, not with its first append.",
        "KAFKA-7415, Partition.makeLeader",
        meaning="a new leader records its epoch when it is elected (KAFKA-7415)",
        since="2.0.1",
        guards=guards.LOGS,
        repair=Repair("KAFKA-7415"),
        mutant=Mutant(
            "no-epoch-entry-on-election",
            "A new leader records its epoch only with its first append. Until then it answers as if the "
            "previous epoch continued.",
            source="KAFKA-7415; Kafka up to 2.0.0",
            noticed_by=("inconsistent-offsets", "log-divergence"),
        ),
    )
    leader_answers_for_epochs_before_first: bool = _switch(
        "A leader answers a request about an epoch below the first one of its log with the start of the "
        "first. Before, it had no answer.",
        "KAFKA-7415, LeaderEpochFileCache.endOffsetFor",
        meaning="a leader answers for epochs before its first (KAFKA-7415)",
        since="2.0.1",
    )
    isr_expansion_checks_epoch_start: bool = _switch(
        "A follower joins the ISR only after it has reached the start of the leader's epoch. Before, the "
        "leader's high watermark was enough, which lags after an election.",
        "KAFKA-7128, Partition.maybeExpandIsr",
        meaning="a follower joins the ISR only after it has reached the start of the leader's epoch",
        since="2.0.1",
        guards=guards.LOGS,
        repair=Repair("KAFKA-7128"),
        mutant=Mutant(
            "early-isr-expansion",
            "A follower may join the ISR without records that were committed before the election, because "
            "the new leader's high watermark lags.",
            source="KAFKA-7128; Kafka up to 2.0.0",
            noticed_by=("isr-holds-committed",),
        ),
    )
    fetch_leader_epoch_fencing: bool = _switch(
        "Fetch and OffsetsForLeaderEpoch carry the current leader epoch. A mismatch is answered with "
        "FENCED_LEADER_EPOCH or UNKNOWN_LEADER_EPOCH.",
        "KIP-320",
        meaning="fetches carry the leader epoch (KIP-320)",
        since="2.1",
        guards=guards.LOGS,
        repair=Repair("KIP-320", "fetches carry the leader epoch, so a fetch of another epoch is refused"),
        mutant=Mutant(
            "no-fetch-fencing",
            "Fetches carry no leader epoch, so the fetch of a follower that has not learned of an election "
            "counts.",
            source="KIP-320; Kafka before 2.1",
            noticed_by=("isr-holds-committed", "log-divergence", "duplicate"),
        ),
    )
    failed_fetch_keeps_follower_state: bool = _switch(
        "A leader keeps the state of a follower whose fetch is out of range or fenced. Before, it forgot "
        "the follower's position and the time of its last fetch.",
        "KAFKA-8400, ReplicaManager.updateFollowerLogReadResults",
        meaning="a failed fetch does not change its follower's state on the leader (KAFKA-8400)",
        since="2.4",
    )
    end_offset_waits_for_hw: bool = _switch(
        "A new leader does not tell consumers the end offset (OFFSET_NOT_AVAILABLE) until its high "
        "watermark has reached the start of its epoch. Before, the end offset could be lower than the one "
        "that its predecessor had told.",
        "KIP-207, Partition.fetchOffsetForTimestamp",
        subject=CLIENTS,
        meaning="a new leader's end offset is never below its predecessor's (KIP-207)",
        since="2.2",
    )
    fetch_sessions: bool = _switch(
        "Brokers keep a limited number of fetch sessions, by id and epoch. A fetch names only what has "
        "changed since the previous one, and an unknown session or a repeated request is refused. Before, "
        "each fetch named every partition.",
        "KIP-227, FetchSession.scala",
        meaning="fetches are incremental, in sessions that a broker may evict (KIP-227)",
        since="1.1",
    )
    fetch_sessions_keep_epoch: bool = _switch(
        "The leader epoch of an incremental fetch is checked. Before, a session forgot the epoch, and only "
        "a full fetch could be refused for it.",
        "KAFKA-9338, CachedPartition.reqData",
        meaning="the leader epoch of an incremental fetch is checked (KAFKA-9338)",
        since="2.5",
        guards=guards.LOGS,
        repair=Repair("KAFKA-9338", needs="fetch_leader_epoch_fencing"),
        mutant=Mutant(
            "sessions-forget-epoch",
            "Fetch sessions forget the leader epoch, so an incremental fetch of an older epoch counts.",
            source="KAFKA-9338; Kafka 2.1 to 2.4",
            noticed_by=("isr-holds-committed", "log-divergence", "inconsistent-offsets", "lost-write"),
        ),
    )
    follower_fetching: bool = _switch(
        "A follower serves consumers that support racks (by the version of their Fetch), up to its own high "
        "watermark. Before, only a leader did.",
        "KIP-392 (KAFKA-8443), ReplicaManager.fetchMessages (fetchOnlyFromLeader)",
        subject=FOLLOWER_FETCHING,
        meaning="consumers may fetch from followers (KIP-392)",
        since="2.4",
        is_repair=False,
    )
    hw_advance_completes_follower_fetches: str = _switch(
        "When a leader answers a follower's waiting fetch just because the high watermark moved: never; "
        "with `replica.selector.class` set, so that consumers of followers see committed records sooner; or "
        "always, as 2.4.0 and 2.4.1 do, which costs half as many fetches again.",
        "KIP-392, KAFKA-9731, KAFKA-9952, DelayedFetch.tryComplete",
        meaning=(
            "a follower learns of a high watermark with the next data, or when its fetch expires (KAFKA-9952)"
        ),
        latest=NEVER,
        choices=(NEVER, WITH_SELECTOR, ALWAYS),
        former_values=(("2.4", NEVER), ("2.6", WITH_SELECTOR)),
        is_repair=False,
    )
    only_leader_selects_read_replica: bool = _switch(
        "Only a leader chooses the replica from which a consumer reads. Before, a former leader did too, by "
        "the positions that the others had while it led.",
        "KAFKA-13778, ReplicaManager.findPreferredReadReplica",
        subject=FOLLOWER_FETCHING,
        meaning="only a leader selects the replica from which a consumer reads (KAFKA-13778)",
        former_values=(("2.5", True), ("3.3", False)),
        is_repair=False,
    )
    read_replica_must_be_in_isr: bool = _switch(
        "A leader sends a consumer only to a member of the ISR. Before, to any replica that had the "
        "requested offset, however slow.",
        "KAFKA-14372, ReplicaManager.findPreferredReadReplica",
        subject=FOLLOWER_FETCHING,
        meaning="a consumer is sent only to replicas in the ISR (KAFKA-14372)",
        since="3.4",
        is_repair=False,
    )
    read_replica_returned_at_once: bool = _switch(
        "A leader answers at once with the replica from which a consumer should read. Before, the fetch "
        "waited for fetch.max.wait.ms first.",
        "KAFKA-13767, ReplicaManager.fetchMessages",
        subject=FOLLOWER_FETCHING,
        meaning="a consumer learns its read replica at once (KAFKA-13767)",
        since="3.2",
        is_repair=False,
    )
    follower_hw_advance_answers_consumers: bool = _switch(
        "A consumer's fetch that waits at a follower is answered when the follower's high watermark passes "
        "new records. Before, when it expired.",
        "KAFKA-14334, ReplicaFetcherThread.completeDelayedFetchRequests",
        subject=FOLLOWER_FETCHING,
        meaning="a follower answers a waiting consumer when its high watermark rises (KAFKA-14334)",
        since="3.4",
        is_repair=False,
    )
    log_start_follows_leader: bool = _switch(
        "A follower's log starts where its leader's does, which fetches tell it. Before, each replica "
        "applied its own retention.",
        "KIP-107, ReplicaFetcherThread.processPartitionData",
        meaning="a follower's log starts where its leader's does (KIP-107)",
        since="0.11",
        is_repair=False,
    )
    follower_accepts_log_start_mid_batch: bool = _switch(
        "A follower without records that should start in the middle of a batch starts with that batch. An "
        "administrator may have moved the leader's log start there. Before, its fetcher failed.",
        "KAFKA-6975, Partition.appendRecordsToFollowerOrFutureReplica",
        subject=DELETED_RECORDS,
        meaning="a follower may start in the middle of a batch (KAFKA-6975)",
        since="1.0",
    )
    delete_records_stops_at_offset: bool = _switch(
        "DeleteRecords deletes exactly the records below its offset.",
        "KIP-107, Partition.deleteRecordsOnLeader",
        subject=DELETED_RECORDS,
        meaning="DeleteRecords deletes only records below its offset",
        guards=("deleted-beyond-request",),
        mutant=Mutant(
            "deletion-takes-whole-batches",
            "DeleteRecords deletes the whole batch around its offset, including records at that offset and "
            "after it.",
            source="Partition.deleteRecordsOnLeader, KIP-107",
            noticed_by=("lost-write",),
        ),
    )
    throttled_client_answered_at_once: bool = _switch(
        "A broker answers a client that has exceeded its quota at once, a fetch without data, and says how "
        "long it mutes the connection; the client waits that long. Before, the broker delayed the response, "
        "so a client whose request.timeout.ms passed sent again what the broker had appended.",
        "KIP-219 (KAFKA-6028), ClientQuotaManager.throttle, ClusterConnectionStates.throttle",
        subject=QUOTAS,
        meaning="a client that exceeds its quota is answered at once, and waits (KIP-219)",
        since="2.0",
        is_repair=False,
    )
    fetch_limited_to_quota: bool = _switch(
        "A fetch returns no more than the quota allows in one window. Before, a larger response was never "
        "sent, because it exceeded the quota each time.",
        "KAFKA-9677, KafkaApis.handleFetchRequest (getMaxValueInQuotaWindow)",
        subject=QUOTAS,
        meaning="a fetch returns no more than the quota allows (KAFKA-9677)",
        since="2.5",
        is_repair=False,
    )
    quota_rate_counts_overlapping_sample: bool = _switch(
        "A quota's rate drops a sample after a whole window without a new value in it. Before, a whole "
        "window after the sample had begun, so that the rate jumped.",
        "SampledStat.purgeObsoleteSamples (lastEventMs)",
        subject=QUOTAS,
        meaning="a quota's window keeps a sample that overlaps it",
        since="3.8",
        is_repair=False,
    )
    hw_waits_for_whole_isr: bool = _switch(
        "The leader's high watermark waits for every replica in the ISR.",
        "Partition.maybeIncrementLeaderHW",
        meaning="the high watermark waits for the whole ISR",
        guards=guards.LOGS,
        mutant=Mutant(
            "hw-ignores-followers",
            "The high watermark is the leader's LEO.",
            noticed_by=("lost-write", "isr-holds-committed"),
        ),
    )
    ack_waits_for_hw: bool = _switch(
        "acks=all is answered after the high watermark has passed the batch.",
        "Partition.checkEnoughReplicasReachOffset",
        meaning="acks=all is answered after the high watermark has passed the record",
        guards=guards.LOGS,
        mutant=Mutant(
            "ack-before-replication",
            "acks=all is answered like acks=1, before any follower has the record.",
            noticed_by=("lost-write",),
        ),
    )
    consumer_reads_below_hw: bool = _switch(
        "Consumers read only below the high watermark.",
        "ReplicaManager.readFromLocalLog",
        subject=CLIENTS,
        meaning="consumers read only below the high watermark",
        guards=guards.READS,
        mutant=Mutant("uncommitted-reads", "Consumers read up to the LEO.", noticed_by=("read-above-hw",)),
    )
    follower_serves_below_hw: bool = _switch(
        "A follower serves consumers only below its own high watermark.",
        "KIP-392, Partition.readRecords (FetchHighWatermark)",
        subject=FOLLOWER_FETCHING,
        meaning="a follower serves consumers only below its own high watermark (KIP-392)",
        guards=guards.READS,
        mutant=Mutant(
            "follower-serves-to-log-end",
            "A follower serves consumers up to its LEO.",
            source="KIP-392, Partition.readRecords",
            noticed_by=("read-above-hw",),
        ),
    )
    hw_never_falls: bool = _switch(
        "The leader's high watermark never falls, not even while the LEOs of its followers are unknown.",
        "Partition.maybeIncrementLeaderHW",
        meaning="a leader's high watermark never falls",
        guards=("hw-monotonic",),
        mutant=Mutant(
            "hw-may-fall",
            "The leader's high watermark falls with a follower's LEO, so readable records become unreadable.",
            noticed_by=("hw-monotonic",),
        ),
    )
    isr_expansion_checks_hw: bool = _switch(
        "A follower joins the ISR only after it has reached the leader's high watermark.",
        "Partition.maybeExpandIsr",
        meaning="a follower joins the ISR after it has reached the high watermark",
        guards=guards.LOGS,
        mutant=Mutant(
            "isr-join-below-hw",
            "A follower joins the ISR as soon as it has reached the start of the leader's epoch, however "
            "far behind it is.",
            noticed_by=("isr-holds-committed",),
        ),
    )
    isr_expansion_checks_registration: bool = _switch(
        "A follower joins the ISR only while its broker is registered, as far as the leader has heard. "
        "Before, a late fetch of a broker that had just lost its registration brought it back into the ISR.",
        "KIP-841 (KAFKA-13916), Partition.isReplicaIsrEligible",
        meaning="a follower joins the ISR only while its broker is registered (KIP-841)",
        since="3.3",
        is_always_in_kraft=True,
    )
    hw_ignores_unregistered_followers: bool = _switch(
        "The high watermark waits for a caught-up follower outside the ISR only while its broker is "
        "registered, as far as the leader has heard.",
        "KAFKA-15021, Partition.maybeIncrementLeaderHW",
        meaning="the high watermark does not wait for a follower that may not join the ISR (KAFKA-15021)",
        since="3.6",
    )
    reelection_counts_as_fetch: bool = _switch(
        "A leader that is elected again counts this moment as a fetch of every follower from its log end "
        "offset. A follower outside the ISR that reaches this offset later counts as caught up, and the "
        "high watermark waits for it. From 3.3 on this applies only to members of the ISR.",
        "Replica.resetReplicaState (isFollowerInSync), Partition.makeLeader",
        meaning="a follower outside the ISR counts as caught up only by its own fetches",
        latest=False,
        since="3.3",
        is_repair=False,
    )
    reelected_leader_forgets_positions: bool = _switch(
        "A leader that is elected again without having noticed that it was deposed forgets the positions of "
        "its followers, like a leader that followed in between. No release does: a follower that truncated "
        "for the leader in between still counts with its old position.",
        "Partition.makeLeader, Replica.resetReplicaState (isNewLeader)",
        meaning="a leader that is elected again learns its followers' positions from their fetches",
        latest=False,
        safe=True,
        guards=guards.LOGS,
        mutant=Mutant(
            "reelected-leader-keeps-positions",
            "A leader that missed its deposition commits records that a follower truncated for the leader "
            "in between.",
            source="Partition.makeLeader; every release",
            noticed_by=("isr-holds-committed", "lost-write"),
            kafka="4.3",
        ),
    )
    isr_change_survives_repeated_state: bool = _switch(
        "In KRaft a leader keeps waiting for its ISR change when the metadata log brings a state that it "
        "already has, from the answer to its previous change. No release does: the leader drops the change, "
        "so a follower that is about to join no longer counts for the high watermark, while the controller "
        "has it in the ISR.",
        "Partition.makeLeader, Partition.updateAssignmentAndIsr (an equal partition epoch)",
        subject=KRAFT,
        meaning="a leader keeps waiting for its ISR change when it receives a state that it already has",
        latest=False,
        safe=True,
        guards=guards.LOGS,
        mutant=Mutant(
            "known-state-undoes-isr-change",
            "A leader that receives a state which it already has from the metadata log commits without the "
            "follower that it has asked to add to the ISR.",
            source="Partition.makeLeader, Partition.updateAssignmentAndIsr; every release in KRaft",
            noticed_by=("isr-holds-committed", "lost-write"),
            kafka="4.0",
        ),
    )
    isr_lag_counts_messages: bool = _switch(
        "A follower leaves the ISR when it is more than replica.lag.max.messages behind, however quickly it "
        "catches up, or after replica.lag.time.max.ms without a fetch, which is how often a leader checks. "
        "Since 0.9 it leaves when it has not been caught up for that time. No release with a profile is "
        "that old (0.8).",
        "KIP-16 (KAFKA-1546), Partition.getOutOfSyncReplicas",
        meaning="a follower leaves the ISR by the time that it lags, not by a number of records (KIP-16)",
        latest=False,
        since="0.9",
        is_repair=False,
    )
    isr_shrink_waits_for_write: bool = _switch(
        "A leader counts a follower until the smaller ISR has been written.",
        "KIP-497 (maximal ISR), Partition.maybeShrinkIsr",
        meaning="a smaller ISR takes effect when it is written (KIP-497)",
        guards=guards.LOGS,
        mutant=Mutant(
            "isr-counted-before-commit",
            "A leader that removes a follower from the ISR commits without it before the change is written. "
            "The follower may be elected without the records acknowledged meanwhile.",
            source="KIP-497 (maximal ISR)",
            noticed_by=("lost-write", "isr-holds-committed", "log-matching"),
        ),
    )
    leader_discards_refused_isr: bool = _switch(
        "A leader whose ISR write is refused keeps its previous ISR.",
        "Partition.expandIsr, Partition.shrinkIsr",
        meaning="a leader uses no ISR that was refused",
        guards=guards.LOGS,
        mutant=Mutant(
            "zombie-keeps-its-isr",
            "A deposed leader continues with an ISR that ZooKeeper refused, and commits alone.",
            source="Partition.maybeUpdateIsrAndVersion (skip updating ISR)",
            noticed_by=("lost-write", "isr-holds-committed", "log-matching"),
        ),
    )
    maximal_isr: bool = _switch(
        "A follower that the leader has asked to add to the ISR counts for the high watermark until the "
        "controller declines. Before, a leader whose write was refused used its previous ISR. If an earlier "
        "attempt had reached ZooKeeper and its answer was lost, that ISR is smaller than the one from which "
        "the next leader is elected.",
        "KIP-497 (KAFKA-8836), Partition.handleAlterIsrResponse",
        meaning="a follower that may have joined the ISR counts (KIP-497)",
        since="2.7",
        guards=guards.LOGS,
        repair=Repair(
            "KIP-497",
            "a follower that a leader has asked to add to the ISR counts, even while the leader does not "
            "know whether it joined",
        ),
        mutant=Mutant(
            "joined-member-forgotten",
            "A leader whose ISR write was refused forgets the follower that it tried to add, and commits "
            "without it, though it may be elected.",
            source="KIP-497 (KAFKA-8836); Kafka up to 2.6",
            noticed_by=("isr-holds-committed", "lost-write", "inconsistent-offsets"),
        ),
    )
    requests_wait_for_isr_write: bool = _switch(
        "Requests for a partition wait while its leader writes another ISR, and its high watermark stays. "
        "With KIP-497 they do not wait: a joining follower counts at once, and a leaving one until the "
        "change is written.",
        "KIP-497 (KAFKA-8836), Partition.sendAlterIsrRequest",
        meaning="a leader serves requests while its ISR is being written (KIP-497)",
        latest=False,
        since="2.7",
        is_repair=False,
    )
    min_isr_checked: bool = _switch(
        "acks=all is refused while the ISR is smaller than min.insync.replicas.",
        "KAFKA-1555, Partition.appendRecordsToLeader",
        meaning="acks=all is refused below min.insync.replicas (KAFKA-1555)",
        guards=("acked-below-min-isr",),
        mutant=Mutant(
            "min-isr-ignored",
            "acks=all is accepted and acknowledged by fewer replicas than min.insync.replicas.",
            noticed_by=("acked-below-min-isr",),
        ),
    )
    min_isr_limited_to_replica_count: bool = _switch(
        "A min.insync.replicas above the number of replicas counts as that number. Before, such a topic "
        "accepted no acks=all.",
        "KAFKA-15583, Partition.effectiveMinIsr",
        subject=SMALL_TOPICS,
        meaning="min.insync.replicas counts as at most the number of replicas (KAFKA-15583)",
        since="3.7",
        is_repair=False,
    )
    hw_waits_for_min_isr: bool = _switch(
        "The high watermark stays while the ISR is smaller than min.insync.replicas. Records that are "
        "appended meanwhile with acks=1 cannot be read until the ISR has grown again.",
        "KAFKA-15583, Partition.maybeIncrementLeaderHW",
        meaning="the high watermark stays below min.insync.replicas (KAFKA-15583)",
        since="3.7",
        is_repair=False,
        guards=("hw-waits-for-min-isr",),
        mutant=Mutant(
            "hw-exposed-below-min-isr",
            "The high watermark rises while the ISR is smaller than min.insync.replicas, so consumers read "
            "records that only one replica has.",
            source="KAFKA-15583; Kafka up to 3.6",
            noticed_by=("hw-waits-for-min-isr",),
            kafka="3.9",
        ),
    )
    deposed_leader_fails_pending_produces: bool = _switch(
        "A deposed leader answers pending acks=all requests with NOT_LEADER_FOR_PARTITION.",
        "DelayedProduce.tryComplete",
        meaning="a deposed leader acknowledges nothing more",
        guards=guards.LOGS,
        mutant=Mutant(
            "deposed-leader-acks-pending",
            "A deposed leader acknowledges pending acks=all requests instead of refusing them.",
            noticed_by=("lost-write",),
        ),
    )
    duplicate_ack_waits_for_hw: bool = _switch(
        "A leader answers a retry that it recognises like the first request, after the high watermark has "
        "passed the batch.",
        "ReplicaManager.appendRecords, DelayedProduce",
        subject=CLIENTS,
        meaning="a recognised retry is acknowledged after its record is committed",
        guards=guards.LOGS,
        mutant=Mutant(
            "retry-acked-before-commit",
            "A retry that the leader recognises is acknowledged at once, even if its record is not "
            "committed.",
            noticed_by=("lost-write", "inconsistent-offsets"),
        ),
    )
    unclean_election_only_if_enabled: bool = _switch(
        "A replica outside the ISR is elected only if unclean.leader.election.enable allows it.",
        "KIP-106, PartitionLeaderElectionAlgorithms.offlinePartitionLeaderElection",
        meaning="unclean elections happen only where they are enabled (KIP-106)",
        guards=guards.LOGS,
        mutant=Mutant(
            "silent-unclean-election",
            "A replica outside the ISR is elected if no other is alive, whatever "
            "unclean.leader.election.enable says.",
            source="KIP-106; Partition state machine, offlinePartitionLeaderElection",
            noticed_by=("isr-holds-committed", "lost-write"),
        ),
    )
    isr_expansion_checks_broker_epoch: bool = _switch(
        "In KRaft a fetch carries its follower's broker epoch, and the controller adds to an ISR only a "
        "broker that still has it. Before, a follower that had restarted and lost records could join the "
        "ISR on a fetch of its previous incarnation.",
        "KIP-903 (KAFKA-14139), ReplicationControlManager.ineligibleReplicasForIsr",
        subject=KRAFT,
        meaning="a follower joins the ISR only in the incarnation that has fetched (KIP-903)",
        since="3.5",
        is_repair=False,
        guards=guards.LOGS,
        mutant=Mutant(
            "former-life-joins-isr",
            "A fetch of a broker's previous incarnation brings it into the ISR after it has restarted and "
            "lost records.",
            source="KIP-903 (KAFKA-14139); Kafka 3.0 to 3.4",
            noticed_by=("isr-holds-committed", "lost-write"),
            kafka="4.3",
        ),
    )
    previous_incarnation_fetch_ignored: bool = _switch(
        "In KRaft a leader ignores fetches of a broker's previous incarnation after the metadata log has "
        "shown that the broker registered again. Before, such a late fetch counted as the position of the "
        "new incarnation.",
        "KAFKA-15221, Replica.updateFetchStateOrThrow",
        meaning="a fetch of a broker's previous incarnation does not count (KAFKA-15221)",
        since="3.7",
        guards=guards.LOGS,
        repair=Repair("KAFKA-15221", needs="isr_expansion_checks_broker_epoch"),
    )
    preferred_leader_reelected: bool = _switch(
        "A preferred leader election starts a new leader epoch even if the preferred replica leads already.",
        "KIP-183, KafkaController.processPreferredReplicaLeaderElection",
        subject=PREFERRED,
        meaning="a preferred replica that leads already is not elected again (KIP-183)",
        latest=False,
        former_values=(("1.1", False), ("2.2", True)),
    )
    preferred_leader_must_be_in_isr: bool = _switch(
        "The preferred replica is elected only if it is in the ISR.",
        "PartitionLeaderElectionAlgorithms.preferredReplicaPartitionLeaderElection",
        subject=PREFERRED,
        meaning="the preferred replica leads only if it is in the ISR",
        guards=guards.LOGS,
        mutant=Mutant(
            "preferred-leader-outside-isr",
            "The preferred replica becomes leader again before it has caught up.",
            source="Partition state machine, preferredReplicaPartitionLeaderElection",
            noticed_by=("isr-holds-committed", "lost-write"),
        ),
    )
