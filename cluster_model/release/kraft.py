"""Declares the switches of the KRaft controller and its quorum."""

from functools import partial
from typing import Final

from harrow.cluster_model.lazy_dataclass import dataclass
from harrow.cluster_model.release import guards
from harrow.cluster_model.release.subjects import KRAFT, KRAFT_DISKS
from harrow.cluster_model.release.switch import ALWAYS, NEVER, Mutant, Repair, switch

WHILE_SILENT: Final = "while_silent"
"""A value of `begin_quorum_epoch_repeated`: only to voters that have not fetched for a while."""
CAPPED: Final = "capped"
JITTERED: Final = "jittered"
AFTER_REFUSAL: Final = "after_refusal"
"""Values of `election_backoff`, which explains them."""

_switch: Final = partial(switch, subject=KRAFT)


@dataclass(frozen=True, slots=True, kw_only=True)
class KRaftSwitches:
    """Each field is a switch. Its default is the value that the default release has."""

    kraft_allows_unclean_election: bool = _switch(
        "In KRaft the controller applies unclean.leader.election.enable. Before, it elected no replica "
        "outside the ISR, whatever the setting.",
        "KAFKA-12670, ConfigurationControlManager.uncleanLeaderElectionEnabledForTopic",
        meaning="KRaft applies unclean.leader.election.enable (KAFKA-12670)",
        since="3.9",
        is_repair=False,
    )
    log_dir_failure_reported: bool = _switch(
        "In KRaft a broker reports replicas in failed log directories with its heartbeats, and the "
        "controller elects other leaders. Before, the controller did not learn of it, so a partition that "
        "the broker led had no working leader until it restarted.",
        "KIP-858 (KAFKA-14127), BrokerLifecycleManager.propagateDirectoryFailure",
        subject=KRAFT_DISKS,
        meaning="the KRaft controller learns of failed log directories (KIP-858)",
        since="3.7",
        is_repair=False,
    )
    eligible_leader_replicas: bool = _switch(
        "In KRaft replicas that leave an ISR smaller than min.insync.replicas are remembered, and lead if "
        "no replica in the ISR can. The last member may leave the ISR too, and a broker that stopped "
        "uncleanly is not elected. Before, the last member stayed in the ISR whatever it had lost.",
        "KIP-966, PartitionChangeBuilder",
        meaning="an eligible replica leads if the ISR cannot (KIP-966)",
        since="4.1",
        is_repair=False,
        guards=("unclean-replica-not-elected",),
        repair=Repair(
            "KIP-966",
            "a replica that stopped uncleanly is elected only if no other can lead",
            since="4.0",
            is_opt_in=True,
        ),
        mutant=Mutant(
            "last-replica-standing",
            "The last member stays in the ISR whatever it has lost, and leads again.",
            source="KIP-966; Kafka up to 4.0",
            noticed_by=("unclean-replica-not-elected",),
            kafka="4.3",
        ),
    )
    fenced_broker_keeps_session: bool = _switch(
        "In KRaft a broker with a heartbeat within broker.session.timeout.ms cannot register as a new "
        "process, even if it is fenced or has shut down cleanly. Before, this applied only to unfenced "
        "brokers.",
        "BrokerHeartbeatTracker, ClusterControlManager.registerBroker",
        meaning="a broker with a recent heartbeat cannot register again, fenced or not",
        since="4.0",
        is_repair=False,
    )
    repeated_registration_keeps_epoch: bool = _switch(
        "In KRaft a process that registers again keeps its broker epoch, and its fencing. Before, it got "
        "another epoch, and up to 3.7.0 it was also fenced until its next heartbeat, without a new leader "
        "or ISR. A process that does not learn of its other epoch is refused for good.",
        "KAFKA-16952, KAFKA-16757, ClusterControlManager.registerBroker",
        meaning="a process that registers again keeps its state (KAFKA-16952)",
        since="3.9",
        is_repair=False,
        is_read_in_campaign=False,
    )
    unfencing_resets_broker_metadata_offset: bool = _switch(
        "In KRaft the record that unfences a broker resets the controller's knowledge of how much metadata "
        "it has, so another broker that shuts down waits for its next heartbeat. Before, the heartbeat that "
        "unfenced it counted.",
        "BrokerHeartbeatManager.register (32576f61ce8)",
        meaning="a shutdown waits for a heartbeat of each broker that was just unfenced",
        since="3.7",
        is_repair=False,
    )
    check_quorum: bool = _switch(
        "In KRaft a quorum leader resigns if no majority of voters has fetched from it for one and a half "
        "times controller.quorum.fetch.timeout.ms. Before, an isolated leader continued, and brokers that "
        "reached no other stayed with it.",
        "KAFKA-15489, LeaderState.timeUntilCheckQuorumExpires",
        meaning="a quorum leader from which no majority fetches resigns (KAFKA-15489)",
        since="3.7",
        is_repair=False,
    )
    unclean_shutdown_removes_from_elr: bool = _switch(
        "In KRaft with eligible leader replicas, a broker that registers after an unclean shutdown leaves "
        "the ISRs and ELRs that it was in.",
        "KIP-966, ClusterControlManager.registerBroker (handleUncleanBrokerShutdown)",
        meaning="a broker that stopped uncleanly is no longer eligible (KIP-966)",
        guards=("unclean-replica-not-elected",),
        mutant=Mutant(
            "elr-survives-unclean-shutdown",
            "A broker that stopped uncleanly stays eligible to lead, whatever it has lost.",
            source="KIP-966, ClusterControlManager.registerBroker",
            noticed_by=("unclean-replica-not-elected",),
            kafka="4.3",
        ),
    )
    alter_partition_fenced: bool = _switch(
        "In KRaft the controller accepts an ISR only from the current leader, and only on top of the "
        "current partition state.",
        "KIP-497, ReplicationControlManager.validateAlterPartitionData",
        meaning="the controller accepts no ISR that is based on an older state (KIP-497)",
        guards=guards.LOGS,
        mutant=Mutant(
            "stale-alter-partition",
            "The controller accepts an ISR from a former leader, or one that is based on an older partition "
            "state.",
            noticed_by=("isr-holds-committed", "lost-write", "inconsistent-offsets", "unavailable"),
            kafka="4.3",
        ),
    )
    election_raises_leader_epoch: bool = _switch(
        "In KRaft every new leader gets a new leader epoch.",
        "PartitionChangeBuilder.electLeader",
        meaning="a new leader has a new leader epoch",
        guards=(*guards.LOGS, "two-leaders"),
        mutant=Mutant(
            "election-in-same-epoch",
            "The controller elects a leader in the leader epoch of its predecessor.",
            noticed_by=("two-leaders",),
            kafka="4.3",
        ),
    )
    producer_ids_allocated_once: bool = _switch(
        "In KRaft the metadata log records each allocated block of producer ids.",
        "KIP-730, ProducerIdControlManager.generateNextProducerId",
        meaning="a producer id is allocated once (KIP-730)",
        guards=guards.SEQUENCES,
        mutant=Mutant(
            "producer-ids-given-twice",
            "Two brokers allocate the same producer ids, so a leader takes the batches of one producer as "
            "retries of the other's.",
            source="KIP-730, ProducerIdControlManager",
            noticed_by=("lost-write", "duplicate"),
            kafka="4.3",
        ),
    )
    one_vote_per_epoch: bool = _switch(
        "In KRaft a voter votes once in an epoch.",
        "KIP-595, KafkaRaftClient.handleVoteRequest (QuorumState.votedKey)",
        meaning="a voter votes once in an epoch (KIP-595)",
        guards=(*guards.QUORUM, *guards.LOGS),
        mutant=Mutant(
            "two-votes-an-epoch",
            "A voter votes for every candidate whose log is as long as its own, so the quorum may have two "
            "leaders in one epoch.",
            source="KIP-595, KafkaRaftClient.handleVoteRequest",
            noticed_by=("one-controller-per-epoch", "committed-metadata-kept"),
            kafka="4.3",
        ),
    )
    snapshot_replaces_only_shorter_log: bool = _switch(
        "In KRaft a starting node discards its metadata log in favour of its latest snapshot only if the "
        "log does not reach that far.",
        "KIP-630, KafkaMetadataLog.truncateToLatestSnapshot",
        meaning="a starting node keeps its metadata log behind its latest snapshot (KIP-630)",
        guards=guards.SNAPSHOTS,
        mutant=Mutant(
            "snapshot-cuts-log",
            "A starting controller or broker discards its metadata log behind its latest snapshot, "
            "including records that it has acknowledged to the leader.",
            noticed_by=("committed-metadata-kept", "metadata-snapshot-committed"),
            kafka="4.3",
        ),
    )
    snapshot_of_committed_metadata: bool = _switch(
        "In KRaft a snapshot contains only committed metadata.",
        "KIP-630, KafkaMetadataLog.createNewSnapshot; MetadataLoader.handleCommit",
        meaning="a metadata snapshot contains only committed records (KIP-630)",
        guards=guards.SNAPSHOTS,
        mutant=Mutant(
            "snapshot-of-uncommitted",
            "The active controller's snapshots contain decisions that are not committed, and a node that "
            "starts from one takes them as committed.",
            source="KIP-630, KafkaMetadataLog.createNewSnapshot",
            noticed_by=("metadata-snapshot-committed",),
            kafka="4.3",
        ),
    )
    pre_vote: bool = _switch(
        "In KRaft a voter asks whether it would win before it becomes a candidate, so one that was isolated "
        "does not depose a leader when it comes back. A leader that has resigned and sees no successor asks "
        "in the next epoch. Before, it became a candidate there.",
        "KIP-996, KafkaRaftClient",
        meaning="a voter asks before it becomes a candidate (KIP-996)",
        since="4.0",
        is_repair=False,
    )
    election_backoff: str = _switch(
        "How long a KRaft candidate that was not elected waits until it tries again. With `capped`, up to "
        "100 ms times 2, 4, 8 and so on, at most controller.quorum.election.backoff.max.ms, so several "
        "candidates at that maximum keep colliding. With `jittered`, the same in steps of 50 ms, with "
        "jitter at the maximum too. With `after_refusal`, only after a refusal; a candidate that hears "
        "nothing tries again after its election timeout. With `never`, a refused candidate also waits for "
        "that timeout.",
        "KAFKA-18345, KafkaRaftClient.pollCandidate, RaftUtil.binaryExponentialElectionBackoffMs",
        meaning="a candidate waits for its election timeout and has no backoff (KAFKA-18345)",
        latest=NEVER,
        choices=(CAPPED, JITTERED, AFTER_REFUSAL, NEVER),
        former_values=(("3.9.2", CAPPED), ("4.0", JITTERED), ("4.1", AFTER_REFUSAL)),
        is_repair=False,
    )
    voters_look_for_leader: bool = _switch(
        "In KRaft a voter that has no leader, or whose leader does not answer, fetches from other voters to "
        "find the leader, as brokers do. Before, it waited for its timeout and became a candidate, which "
        "deposes a leader that it had not heard of.",
        "KAFKA-17030, KafkaRaftClient.pollUnattachedCommon, maybeSendFetchToBestNode",
        meaning="a voter without a leader looks for one (KAFKA-17030)",
        since="3.9.1",
        is_repair=False,
    )
    begin_quorum_epoch_repeated: str = _switch(
        "Whether a KRaft leader repeats BeginQuorumEpoch every half of controller.quorum.fetch.timeout.ms: "
        "never, after a voter has received it; always, to all voters; or only to voters that have not "
        "fetched for that long. A voter in a later epoch answers with that, which deposes the leader.",
        "KAFKA-16536, KAFKA-16926, LeaderState.timeUntilBeginQuorumEpochTimerExpires, "
        "needToSendBeginQuorumRequests",
        meaning="a leader repeats BeginQuorumEpoch to voters that do not fetch (KAFKA-16536, KAFKA-16926)",
        latest=WHILE_SILENT,
        choices=(NEVER, ALWAYS, WHILE_SILENT),
        former_values=(("3.9", NEVER), ("4.2", ALWAYS)),
        is_repair=False,
    )
    fetch_carries_high_watermark: bool = _switch(
        "In KRaft a fetch of metadata carries the high watermark of its sender, and is answered as soon as "
        "there is a higher one. Before, the high watermark came with the next record, or after half a "
        "second.",
        "KIP-1166, KafkaRaftClient",
        meaning="brokers learn at once what is committed (KIP-1166)",
        since="4.1",
        is_repair=False,
    )
