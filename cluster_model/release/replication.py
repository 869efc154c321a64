"""How leaders and followers replicate, who is in the ISR, and what of it clients see."""

from dataclasses import dataclass
from functools import partial
from typing import Final

from harrow.cluster_model.release import guards
from harrow.cluster_model.release.subjects import (
    CLIENTS,
    DELETED_RECORDS,
    FOLLOWER_FETCHING,
    FORMER_REIGNS,
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
WITH_SELECTOR: Final = "with_selector"
TRUNCATES: Final = "truncates"
SHUTS_DOWN: Final = "shuts_down"
HANGS: Final = "hangs"

_switch: Final = partial(switch, of=REPLICATION)


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplicationSwitches:
    """The switches; their defaults are what the default release does."""

    follower_truncation: str = _switch(
        "What a new follower truncates its log to: its own high watermark; the end offset of its last "
        "leader epoch as the leader answers it; or the same with the answered epoch taken into account. "
        "`none` is a mutant that never truncates.",
        "KIP-101, KIP-279, AbstractFetcherThread.scala",
        latest=ANSWERED_EPOCH,
        choices=(HIGH_WATERMARK, LEADER_EPOCH, ANSWERED_EPOCH, NO_TRUNCATION),
        meaning="a follower truncates to where its leader epoch ends (KIP-101, KIP-279)",
        before=(("0.11", HIGH_WATERMARK), ("2.0", LEADER_EPOCH)),
        guards=guards.LOGS,
        repair=(
            Repair(
                name="KIP-101",
                since="0.11",
                text=(
                    "a follower asks its leader where its leader epoch ends, instead of truncating to its own high "
                    "watermark"
                ),
            ),
            Repair(
                name="KIP-279",
                since="2.0",
                text="the answer names the epoch, so a follower asks again about one that it does not have",
            ),
        ),
        mutant=(
            Mutant(
                name="hw-truncation",
                value=HIGH_WATERMARK,
                doc=(
                    "Followers truncate to their own high watermark, which lags: one that restarts and is elected at once "
                    "has cut off what was acknowledged."
                ),
                source="KIP-101; Kafka before 0.11",
                noticed_by=("lost-write", "log-divergence", "isr-holds-committed", "log-matching"),
            ),
            Mutant(
                name="no-truncation",
                value=NO_TRUNCATION,
                doc="Followers never truncate: what a leader of the past left behind stays in the log for ever.",
                source="AbstractFetcherThread.maybeTruncate",
                noticed_by=("log-divergence", "lost-write", "isr-holds-committed", "log-matching"),
            ),
            Mutant(
                name="epoch-answer-without-epoch",
                value=LEADER_EPOCH,
                doc=(
                    "The epoch answer has no epoch: after two fast leader changes a follower keeps records of an epoch that "
                    "its leader never had."
                ),
                source="KIP-279, KAFKA-6361; Kafka 0.11 to 1.1",
                noticed_by=("log-divergence", "log-matching"),
            ),
        ),
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
        guards=guards.LOGS,
        repair=Repair(
            name="KAFKA-18991",
            since="3.9.1",
            needs="truncation_on_fetch",
            text="a follower ignores the answer to a fetch that it sent in an older leader epoch of the same leader",
        ),
        mutant=Mutant(
            name="outdated-fetch-answer",
            kafka="3.6",
            doc=(
                "A follower takes the answer to a fetch that it sent when the same leader led in an older epoch, and truncates what "
                "was committed in between."
            ),
            source="KAFKA-18991; Kafka 2.7 to 3.9.0, 4.0.0",
            noticed_by=("isr-holds-committed", "lost-write", "log-divergence", "log-matching"),
        ),
    )
    diverging_fetch_uncounted: bool = _switch(
        "A leader that answers a fetch with where the logs part does not take that fetch's offset for the follower's LEO. Off is a mutant.",
        "KIP-595, Partition.fetchRecords (DivergingEpoch)",
        of=TRUNCATION,
        meaning="a fetch that has parted from the leader's log does not count (KIP-595)",
        guards=guards.LOGS,
        mutant=Mutant(
            name="diverging-fetch-counts",
            kafka="2.8",
            doc="A fetch that has parted from the leader's log counts: the leader commits what the follower is about to truncate.",
            source="KIP-595, Partition.fetchRecords",
            noticed_by=("isr-holds-committed", "lost-write", "log-matching"),
        ),
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
        repair=Repair(
            name="KAFKA-7414",
            since="2.0.1",
            text="a follower that is ahead of its leader truncates, in place of stopping its broker",
        ),
    )
    epoch_entry_on_election: bool = _switch(
        "A new leader puts (epoch, LEO) into its epoch cache at once, not with its first append.",
        "KAFKA-7415, Partition.makeLeader",
        meaning="a new leader notes its epoch at once (KAFKA-7415)",
        before=(("2.0.1", False),),
        guards=guards.LOGS,
        repair=Repair(
            name="KAFKA-7415",
            since="2.0.1",
            text="a new leader notes its epoch when it is elected, and not with its first record",
        ),
        mutant=Mutant(
            name="no-epoch-entry-on-election",
            doc=(
                "A new leader enters its epoch with its first append only: until then it answers for the epoch before "
                "as though that went on."
            ),
            source="KAFKA-7415; Kafka up to 2.0.0",
            noticed_by=("inconsistent-offsets", "log-divergence"),
        ),
    )
    epoch_below_first_answered: bool = _switch(
        "An epoch request below the first leader epoch of a log is answered with where that begins; before, with nothing.",
        "KAFKA-7415, LeaderEpochFileCache.endOffsetFor",
        meaning="a leader answers for epochs before its first (KAFKA-7415)",
        before=(("2.0.1", False),),
    )
    isr_expansion_checks_epoch_start: bool = _switch(
        "A follower joins the ISR only when it has reached the start of the leader's epoch, not just the "
        "leader's high watermark, which lags after an election.",
        "KAFKA-7128, Partition.maybeExpandIsr",
        meaning="a follower joins the ISR only at the start of the leader's epoch",
        before=(("2.0.1", False),),
        guards=guards.LOGS,
        repair=Repair(
            name="KAFKA-7128",
            since="2.0.1",
            text="a follower joins the ISR only when it has reached the start of the leader's epoch",
        ),
        mutant=Mutant(
            name="early-isr-expansion",
            doc=(
                "A follower may join the ISR before it has what a new leader committed earlier: the new leader's high "
                "watermark lags."
            ),
            source="KAFKA-7128; Kafka up to 2.0.0",
            noticed_by=("isr-holds-committed",),
        ),
    )
    fetch_leader_epoch_fencing: bool = _switch(
        "Fetch and OffsetsForLeaderEpoch carry the current leader epoch; a mismatch is FENCED_LEADER_EPOCH "
        "or UNKNOWN_LEADER_EPOCH.",
        "KIP-320",
        meaning="fetches carry the leader epoch (KIP-320)",
        before=(("2.1", False),),
        guards=guards.LOGS,
        repair=Repair(
            name="KIP-320",
            since="2.1",
            text="fetches carry the leader epoch, so one of another epoch is refused",
        ),
        mutant=Mutant(
            name="no-fetch-fencing",
            doc="Fetches carry no leader epoch: a follower that does not know of an election yet counts as one that does.",
            source="KIP-320; Kafka before 2.1",
            noticed_by=("isr-holds-committed", "log-divergence", "duplicate"),
        ),
    )
    failed_fetch_leaves_follower: bool = _switch(
        "A follower's fetch that is out of range, or fenced, leaves what the leader knows of it. Before, the leader forgot how far it was and "
        "when it had fetched.",
        "KAFKA-8400, ReplicaManager.updateFollowerLogReadResults",
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
        meaning="fetches are incremental, in sessions that a broker may forget (KIP-227)",
        before=(("1.1", False),),
    )
    fetch_sessions_keep_epoch: bool = _switch(
        "An incremental fetch is held to the leader epoch of its partitions. Before, a session forgot it, so that only a "
        "full fetch could be refused for its epoch.",
        "KAFKA-9338, CachedPartition.reqData",
        meaning="an incremental fetch is held to its leader epoch (KAFKA-9338)",
        before=(("2.5", False),),
        guards=guards.LOGS,
        repair=Repair(
            name="KAFKA-9338",
            since="2.5",
            needs="fetch_leader_epoch_fencing",
            text="an incremental fetch is held to its leader epoch, which a fetch session had forgotten",
        ),
        mutant=Mutant(
            name="sessions-forget-epoch",
            doc="Fetch sessions forget the leader epoch: an incremental fetch of an older epoch counts.",
            source="KAFKA-9338; Kafka 2.1 to 2.4",
            noticed_by=("isr-holds-committed", "log-divergence", "inconsistent-offsets", "lost-write"),
        ),
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
    log_start_follows_leader: bool = _switch(
        "A follower's log begins where its leader's does, as a fetch tells it. Before, each replica began where its own retention "
        "had it begin.",
        "KIP-107, ReplicaFetcherThread.processPartitionData",
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
        mutant=Mutant(
            name="deletion-takes-whole-batches",
            doc="DeleteRecords deletes the whole batch that has the offset it names: records at that offset and after it go, too.",
            source="Partition.deleteRecordsOnLeader, KIP-107",
            noticed_by=("lost-write",),
        ),
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
    hw_counts_whole_isr: bool = _switch(
        "The leader's high watermark waits for every replica in the ISR. Off is a mutant.",
        "Partition.maybeIncrementLeaderHW",
        meaning="the high watermark waits for the whole ISR",
        guards=guards.LOGS,
        mutant=Mutant(
            name="hw-ignores-followers",
            doc="The high watermark is the leader's LEO.",
            source="Partition.maybeIncrementLeaderHW",
            noticed_by=("lost-write", "isr-holds-committed"),
        ),
    )
    ack_waits_for_hw: bool = _switch(
        "acks=all is answered when the high watermark has passed the batch. Off is a mutant.",
        "Partition.checkEnoughReplicasReachOffset",
        meaning="acks=all is answered when the high watermark has passed the record",
        guards=guards.LOGS,
        mutant=Mutant(
            name="ack-before-replication",
            doc="acks=all is answered like acks=1, before any follower has the record.",
            source="Partition.checkEnoughReplicasReachOffset",
            noticed_by=("lost-write",),
        ),
    )
    consumer_limited_by_hw: bool = _switch(
        "Consumers read below the high watermark only. Off is a mutant.",
        "ReplicaManager.readFromLocalLog",
        of=CLIENTS,
        meaning="consumers read below the high watermark only",
        guards=guards.READS,
        mutant=Mutant(
            name="uncommitted-reads",
            doc="Consumers read up to the LEO.",
            source="ReplicaManager.readFromLocalLog",
            noticed_by=("read-above-hw",),
        ),
    )
    follower_limited_by_hw: bool = _switch(
        "A follower serves consumers below its own high watermark only. Off is a mutant: it serves them up to the end of its log.",
        "KIP-392, Partition.readRecords (FetchHighWatermark)",
        of=FOLLOWER_FETCHING,
        meaning="a follower serves consumers below its own high watermark only (KIP-392)",
        guards=guards.READS,
        mutant=Mutant(
            name="follower-serves-to-log-end",
            doc="A follower serves consumers up to its LEO.",
            source="KIP-392, Partition.readRecords",
            noticed_by=("read-above-hw",),
        ),
    )
    hw_never_falls: bool = _switch(
        "The leader's high watermark never falls, not even while it does not know its followers' LEOs. Off is a mutant.",
        "Partition.maybeIncrementLeaderHW",
        meaning="a leader's high watermark never falls",
        guards=("hw-monotonic",),
        mutant=Mutant(
            name="hw-may-fall",
            doc="The leader's high watermark falls with a follower's LEO: what was readable is not any more.",
            source="Partition.maybeIncrementLeaderHW",
            noticed_by=("hw-monotonic",),
        ),
    )
    isr_expansion_checks_hw: bool = _switch(
        "A follower joins the ISR only when it has reached the leader's high watermark. Off is a mutant.",
        "Partition.maybeExpandIsr",
        meaning="a follower joins the ISR when it has reached the high watermark",
        guards=guards.LOGS,
        mutant=Mutant(
            name="isr-join-below-hw",
            doc="A follower joins the ISR once it has reached the start of the leader's epoch, far behind as it may be.",
            source="Partition.maybeExpandIsr",
            noticed_by=("isr-holds-committed",),
        ),
    )
    isr_expansion_checks_registration: bool = _switch(
        "A follower joins the ISR only while its broker is registered, as far as the leader has heard. Before, the fetch of "
        "one that had just lost its registration brought it back into the ISR.",
        "KIP-841 (KAFKA-13916), Partition.isReplicaIsrEligible",
        meaning="a follower joins the ISR only while its broker is registered (KIP-841)",
        before=(("3.3", False),),
        is_always_in_kraft=True,
    )
    hw_checks_registration: bool = _switch(
        "The high watermark waits for a follower that may soon join the ISR only while its broker is registered, as far as "
        "the leader has heard.",
        "KAFKA-15021, Partition.maybeIncrementLeaderHW",
        meaning="the high watermark does not wait for a follower that may not join the ISR (KAFKA-15021)",
        before=(("3.6", False),),
    )
    reelection_counts_as_fetch: bool = _switch(
        "A leader that is elected again takes that moment for a fetch from its log end offset, of every follower. One outside the ISR "
        "that reaches this offset later counts as caught up then, and the high watermark waits for it. From 3.3 on members of the ISR alone.",
        "Replica.resetReplicaState (isFollowerInSync), Partition.makeLeader",
        meaning="a follower outside the ISR counts as caught up by its own fetches alone",
        latest=False,
        before=(("3.3", True),),
        is_repair=False,
    )
    reelected_leader_forgets_positions: bool = _switch(
        "A leader that is elected again without having heard that it was deposed forgets how far its followers were, as one does that has "
        "followed meanwhile. No release does: a follower that has truncated for the leader in between counts with what it had before.",
        "Partition.makeLeader, Replica.resetReplicaState (isNewLeader)",
        meaning="a leader that is elected again learns anew how far its followers are",
        latest=False,
        safe=True,
        guards=guards.LOGS,
        mutant=Mutant(
            name="reelected-leader-keeps-positions",
            kafka="4.3",
            doc="A leader that missed its deposition commits what a follower has truncated for the leader in between.",
            source="Partition.makeLeader; every release",
            noticed_by=("isr-holds-committed", "lost-write"),
        ),
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
        guards=guards.LOGS,
        mutant=Mutant(
            name="known-state-undoes-isr-change",
            kafka="4.0",
            doc="A leader that hears from the metadata log what it knows commits without the follower that it has asked to have in the ISR.",
            source="Partition.makeLeader, Partition.updateAssignmentAndIsr; every release in KRaft",
            noticed_by=("isr-holds-committed", "lost-write"),
        ),
    )
    isr_lag_counts_messages: bool = _switch(
        "A follower leaves the ISR when it is more than replica.lag.max.messages behind, however quickly it catches up, or when it has sent no "
        "fetch for replica.lag.time.max.ms, which is how often a leader looks. Since 0.9 it leaves when it has not been caught up for that time. Up to "
        "0.8: before all releases that have a profile.",
        "KIP-16 (KAFKA-1546), Partition.getOutOfSyncReplicas",
        meaning="a follower leaves the ISR for the time that it is behind, not for a number of records (KIP-16)",
        latest=False,
        before=(("0.9", True),),
        is_repair=False,
    )
    isr_shrink_waits_for_write: bool = _switch(
        "A leader counts a follower out only when the smaller ISR is written. Off is a mutant: it counts at once, "
        "written or not.",
        "KIP-497 (maximal ISR), Partition.maybeShrinkIsr",
        meaning="a smaller ISR counts when it is written (KIP-497)",
        guards=guards.LOGS,
        mutant=Mutant(
            name="isr-counted-before-commit",
            doc=(
                "A leader that takes a follower out of the ISR commits without it before that is written: what it "
                "acknowledges meanwhile, the follower lacks that may be elected."
            ),
            source="KIP-497 (maximal ISR)",
            noticed_by=("lost-write", "isr-holds-committed", "log-matching"),
        ),
    )
    refused_isr_write_obeyed: bool = _switch(
        "A leader whose ISR write is refused keeps the ISR that it had. Off is a mutant: a leader that has been "
        "succeeded goes on with an ISR of its own making.",
        "Partition.expandIsr, Partition.shrinkIsr",
        meaning="a leader goes by no ISR that was refused",
        guards=guards.LOGS,
        mutant=Mutant(
            name="zombie-keeps-its-isr",
            doc="A leader that has been succeeded goes on with an ISR that ZooKeeper refused, and commits by itself.",
            source="Partition.maybeUpdateIsrAndVersion (skip updating ISR)",
            noticed_by=("lost-write", "isr-holds-committed", "log-matching"),
        ),
    )
    maximal_isr: bool = _switch(
        "A follower that the leader has tried to take into the ISR counts for the high watermark until the controller "
        "says otherwise. Before, a leader whose write was refused went by the ISR that it knew: if an earlier try had "
        "reached ZooKeeper and its answer was lost, that is smaller than the ISR from which its successor is elected.",
        "KIP-497 (KAFKA-8836), Partition.handleAlterIsrResponse",
        meaning="a follower that may have joined the ISR counts (KIP-497)",
        before=(("2.7", False),),
        guards=guards.LOGS,
        repair=Repair(
            name="KIP-497",
            since="2.7",
            text="a follower that a leader has tried to take into the ISR counts, whether or not the leader knows that it joined",
        ),
        mutant=Mutant(
            name="joined-member-forgotten",
            doc="A leader whose ISR write was refused forgets whom it had tried to take in: it commits without one that may be elected.",
            source="KIP-497 (KAFKA-8836); Kafka up to 2.6",
            noticed_by=("isr-holds-committed", "lost-write", "inconsistent-offsets"),
        ),
    )
    requests_wait_for_isr_write: bool = _switch(
        "Requests for a partition wait while its leader writes another ISR, and its high watermark stays. From KIP-497 on they do "
        "not: a follower that is to join counts at once, and one that is to leave until the change is written.",
        "KIP-497 (KAFKA-8836), Partition.sendAlterIsrRequest",
        meaning="a leader goes on while its ISR is being written (KIP-497)",
        latest=False,
        before=(("2.7", True),),
        is_repair=False,
    )
    min_isr_checked: bool = _switch(
        "acks=all is refused while the ISR is smaller than min.insync.replicas. Off is a mutant.",
        "KAFKA-1555, Partition.appendRecordsToLeader",
        meaning="acks=all is refused below min.insync.replicas (KAFKA-1555)",
        guards=("acked-below-min-isr",),
        mutant=Mutant(
            name="min-isr-ignored",
            doc="acks=all is accepted and acknowledged by fewer replicas than min.insync.replicas.",
            source="KAFKA-1555, Partition.appendRecordsToLeader",
            noticed_by=("acked-below-min-isr",),
        ),
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
        meaning="the high watermark stays below min.insync.replicas (KAFKA-15583)",
        before=(("3.7", False),),
        is_repair=False,
        guards=("hw-waits-for-min-isr",),
        mutant=Mutant(
            name="hw-exposed-below-min-isr",
            kafka="3.9",
            doc="The high watermark rises while the ISR is smaller than min.insync.replicas: consumers read what one replica has.",
            source="KAFKA-15583; Kafka up to 3.6",
            noticed_by=("hw-waits-for-min-isr",),
        ),
    )
    deposed_leader_fails_pending: bool = _switch(
        "A leader that is succeeded answers NOT_LEADER_FOR_PARTITION to the acks=all that wait with it. Off is a "
        "mutant: it answers that they are committed.",
        "DelayedProduce.tryComplete",
        meaning="a leader that is succeeded acknowledges nothing more",
        guards=guards.LOGS,
        mutant=Mutant(
            name="deposed-leader-acks-pending",
            doc="A leader that is succeeded acknowledges what waits with it for acks=all instead of refusing it.",
            source="DelayedProduce.tryComplete",
            noticed_by=("lost-write",),
        ),
    )
    duplicate_waits_for_hw: bool = _switch(
        "A retry that a leader recognises is answered like the first request, when the high watermark has passed the batch. Off is a "
        "mutant: it is answered at once.",
        "ReplicaManager.appendRecords, DelayedProduce",
        of=CLIENTS,
        meaning="a recognised retry is acknowledged when its record is committed",
        guards=guards.LOGS,
        mutant=Mutant(
            name="retry-acked-before-commit",
            doc="A retry that the leader recognises is acknowledged at once, whether or not its record is committed.",
            source="ReplicaManager.appendRecords, DelayedProduce",
            noticed_by=("lost-write", "inconsistent-offsets"),
        ),
    )
    unclean_election_only_if_enabled: bool = _switch(
        "A replica outside the ISR is elected only where unclean.leader.election.enable says so. Off is a mutant.",
        "KIP-106, PartitionLeaderElectionAlgorithms.offlinePartitionLeaderElection",
        meaning="unclean elections only where they are enabled (KIP-106)",
        guards=guards.LOGS,
        mutant=Mutant(
            name="silent-unclean-election",
            doc="A replica outside the ISR is elected where no other lives, whatever unclean.leader.election.enable says.",
            source="KIP-106; Partition state machine, offlinePartitionLeaderElection",
            noticed_by=("isr-holds-committed", "lost-write"),
        ),
    )
    replica_epoch_checked: bool = _switch(
        "In KRaft a fetch carries its follower's broker epoch, and the controller takes into an ISR only a broker that still has it. "
        "Before, a follower that had restarted, and lost what it had, might join the ISR on a fetch of its former life.",
        "KIP-903 (KAFKA-14139), ReplicationControlManager.ineligibleReplicasForIsr",
        of=KRAFT,
        meaning="a follower joins the ISR only in the life in which it has fetched (KIP-903)",
        before=(("3.5", False),),
        is_repair=False,
        guards=guards.LOGS,
        mutant=Mutant(
            name="former-life-joins-isr",
            kafka="4.3",
            doc="A fetch of a broker's former life brings it into the ISR after it has restarted and lost what it had.",
            source="KIP-903 (KAFKA-14139); Kafka 3.0 to 3.4",
            noticed_by=("isr-holds-committed", "lost-write"),
        ),
    )
    former_life_fetch_refused: bool = _switch(
        "In KRaft a leader counts no fetch of a broker's former life once the metadata log says that the broker has registered again. "
        "Before, a fetch that came so late was taken for what the log of the new life has.",
        "KAFKA-15221, Replica.updateFetchStateOrThrow",
        meaning="a fetch of a broker's former life does not count (KAFKA-15221)",
        before=(("3.7", False),),
        guards=guards.LOGS,
        repair=Repair(
            name="KAFKA-15221",
            since="3.7",
            needs="replica_epoch_checked",
            text="in KRaft a fetch of a broker's former life is not taken for what its new one has",
        ),
    )
    preferred_leader_elected_once_more: bool = _switch(
        "A preferred leader election starts a new leader epoch also where the preferred replica leads already.",
        "KIP-183, KafkaController.processPreferredReplicaLeaderElection",
        of=PREFERRED,
        meaning="a preferred leader that leads already is not elected again (KIP-183)",
        latest=False,
        before=(("1.1", False), ("2.2", True)),
    )
    preferred_leader_from_isr: bool = _switch(
        "The preferred replica is elected only if it is in the ISR. Off is a mutant.",
        "PartitionLeaderElectionAlgorithms.preferredReplicaPartitionLeaderElection",
        of=PREFERRED,
        meaning="the preferred replica leads only from within the ISR",
        guards=guards.LOGS,
        mutant=Mutant(
            name="preferred-leader-outside-isr",
            doc="The preferred replica gets the lead back before it has caught up.",
            source="Partition state machine, preferredReplicaPartitionLeaderElection",
            noticed_by=("isr-holds-committed", "lost-write"),
        ),
    )
