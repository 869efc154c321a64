"""The controller in KRaft and its quorum."""

from dataclasses import dataclass
from functools import partial
from typing import Final

from harrow.cluster_model.release import guards
from harrow.cluster_model.release.subjects import KRAFT, KRAFT_DISKS
from harrow.cluster_model.release.switch import ALWAYS, NEVER, Mutant, Repair, switch

WHILE_SILENT: Final = "while_silent"
CAPPED: Final = "capped"
JITTERED: Final = "jittered"
AFTER_REFUSAL: Final = "after_refusal"

_switch: Final = partial(switch, of=KRAFT)


@dataclass(frozen=True, slots=True, kw_only=True)
class KRaftSwitches:
    """The switches; their defaults are what the default release does."""

    kraft_elects_uncleanly: bool = _switch(
        "In KRaft the controller goes by unclean.leader.election.enable. Before, it elected no replica from outside the ISR, whatever that said.",
        "KAFKA-12670, ConfigurationControlManager.uncleanLeaderElectionEnabledForTopic",
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
    eligible_leader_replicas: bool = _switch(
        "In KRaft members that have left an ISR which is smaller than min.insync.replicas are remembered, and lead when "
        "no replica in it can; the last member leaves the ISR, too, and a broker that stopped uncleanly is not elected. Before, the last "
        "member stayed whatever it had lost.",
        "KIP-966, PartitionChangeBuilder",
        meaning="an eligible replica leads when the ISR cannot (KIP-966)",
        before=(("4.1", False),),
        is_repair=False,
        guards=("unclean-replica-not-elected",),
        repair=Repair(
            name="KIP-966",
            since="4.0",
            is_opt_in=True,
            text="a replica that has stopped uncleanly is elected only when no other can lead",
        ),
        mutant=Mutant(
            name="last-replica-standing",
            kafka="4.3",
            doc="The last member stays in the ISR whatever it has lost, and leads again.",
            source="KIP-966; Kafka up to 4.0",
            noticed_by=("unclean-replica-not-elected",),
        ),
    )
    fenced_broker_keeps_session: bool = _switch(
        "In KRaft a broker that was heard of within broker.session.timeout.ms cannot register as a new process, also where it is "
        "fenced or has stopped in good order. Before, that held for one that was not fenced.",
        "BrokerHeartbeatTracker, ClusterControlManager.registerBroker",
        meaning="a broker that was just heard of does not register anew, fenced or not",
        before=(("4.0", False),),
        is_repair=False,
    )
    repeated_registration_kept: bool = _switch(
        "In KRaft a process that registers once more keeps its broker epoch, and is fenced only if it was. Before, it had another epoch, and up to "
        "3.7.0 it was fenced as well, without another leader or ISR, until its next heartbeat; one that does not know of its other epoch is "
        "refused for good.",
        "KAFKA-16952, KAFKA-16757, ClusterControlManager.registerBroker",
        meaning="a process that registers once more stays what it was (KAFKA-16952)",
        before=(("3.9", False),),
        is_repair=False,
        is_met=False,
    )
    unfenced_broker_heard_anew: bool = _switch(
        "In KRaft the record that unfences a broker resets up to where the controller knows it to have the metadata: another one that stops "
        "waits for its next heartbeat. Before, the heartbeat with which it was unfenced counted.",
        "BrokerHeartbeatManager.register (32576f61ce8)",
        meaning="a broker that was unfenced just now has to be heard of before another one stops",
        before=(("3.7", False),),
        is_repair=False,
    )
    check_quorum: bool = _switch(
        "In KRaft a leader of the quorum that no majority of the voters has fetched from for one and a half of "
        "controller.quorum.fetch.timeout.ms resigns. Before, one that was cut off led on, and brokers that reached no other "
        "went on with it.",
        "KAFKA-15489, LeaderState.timeUntilCheckQuorumExpires",
        meaning="a leader of the quorum that no majority fetches from resigns (KAFKA-15489)",
        before=(("3.7", False),),
        is_repair=False,
    )
    unclean_shutdown_leaves_elr: bool = _switch(
        "In KRaft with eligible leader replicas, a broker that registers again after an unclean stop leaves the ISRs and ELRs that it was in. Off is a "
        "mutant: it is elected for what it may have lost.",
        "KIP-966, ClusterControlManager.registerBroker (handleUncleanBrokerShutdown)",
        meaning="a broker that stopped uncleanly is no longer eligible (KIP-966)",
        guards=("unclean-replica-not-elected",),
        mutant=Mutant(
            name="elr-survives-unclean-shutdown",
            kafka="4.3",
            doc="Who has stopped uncleanly stays eligible to lead, whatever it has lost.",
            source="KIP-966, ClusterControlManager.registerBroker",
            noticed_by=("unclean-replica-not-elected",),
        ),
    )
    alter_partition_fenced: bool = _switch(
        "In KRaft the controller takes an ISR from the present leader alone, and on top of the present partition state. Off is a mutant: "
        "what a former leader wanted comes late and takes effect.",
        "KIP-497, ReplicationControlManager.validateAlterPartitionData",
        meaning="the controller takes no ISR that goes by an older state (KIP-497)",
        guards=guards.LOGS,
        mutant=Mutant(
            name="stale-alter-partition",
            kafka="4.3",
            doc="The controller takes the ISR that a leader wanted when it led still, or before somebody else changed it.",
            source="KIP-497, ReplicationControlManager.validateAlterPartitionData",
            noticed_by=("isr-holds-committed", "lost-write", "inconsistent-offsets", "unavailable"),
        ),
    )
    election_raises_leader_epoch: bool = _switch(
        "In KRaft another leader has another leader epoch. Off is a mutant.",
        "PartitionChangeBuilder.electLeader",
        meaning="another leader has another leader epoch",
        guards=(*guards.LOGS, "two-leaders"),
        mutant=Mutant(
            name="election-in-same-epoch",
            kafka="4.3",
            doc="The controller elects a leader in the leader epoch of its predecessor.",
            source="PartitionChangeBuilder.electLeader",
            noticed_by=("two-leaders",),
        ),
    )
    producer_ids_given_once: bool = _switch(
        "In KRaft a block of producer ids that was given is noted in the metadata log. Off is a mutant: the next broker gets the same block.",
        "KIP-730, ProducerIdControlManager.generateNextProducerId",
        meaning="a producer id is given once (KIP-730)",
        guards=guards.SEQUENCES,
        mutant=Mutant(
            name="producer-ids-given-twice",
            kafka="4.3",
            doc="Two brokers give the same producer ids away: a leader takes what one producer sends for a retry of the other's.",
            source="KIP-730, ProducerIdControlManager",
            noticed_by=("lost-write", "duplicate"),
        ),
    )
    one_vote_per_epoch: bool = _switch(
        "In KRaft a voter votes once in an epoch. Off is a mutant: it votes for everyone whose log goes as far as its own.",
        "KIP-595, KafkaRaftClient.handleVoteRequest (QuorumState.votedKey)",
        meaning="a voter votes once in an epoch (KIP-595)",
        guards=(*guards.QUORUM, *guards.LOGS),
        mutant=Mutant(
            name="two-votes-an-epoch",
            kafka="4.3",
            doc="A voter votes for two candidates in one epoch: the quorum has two leaders.",
            source="KIP-595, KafkaRaftClient.handleVoteRequest",
            noticed_by=("one-controller-per-epoch", "committed-metadata-kept"),
        ),
    )
    snapshot_cuts_shorter_log_only: bool = _switch(
        "In KRaft a node that starts begins anew behind its latest snapshot only where its log does not go that far. Off is a mutant: it always "
        "does, and has forgotten what it has told the leader that it has.",
        "KIP-630, KafkaMetadataLog.truncateToLatestSnapshot",
        meaning="a node that starts keeps what its metadata log has behind its latest snapshot (KIP-630)",
        guards=guards.SNAPSHOTS,
        mutant=Mutant(
            name="snapshot-cuts-log",
            doc="A controller or broker that starts begins behind its latest snapshot, and has forgotten what its metadata log had there.",
            source="KIP-630, KafkaMetadataLog.truncateToLatestSnapshot",
            noticed_by=("committed-metadata-kept", "metadata-snapshot-committed"),
            kafka="4.3",
        ),
    )
    snapshot_of_committed_metadata: bool = _switch(
        "In KRaft a snapshot has what is committed. Off is a mutant: that of the active controller has what it goes by, which is ahead of that.",
        "KIP-630, KafkaMetadataLog.createNewSnapshot; MetadataLoader.handleCommit",
        meaning="a snapshot of the metadata has what is committed, and nothing else (KIP-630)",
        guards=guards.SNAPSHOTS,
        mutant=Mutant(
            name="snapshot-of-uncommitted",
            doc="The active controller's snapshots have what it has decided and what is not committed; a node that begins with one takes it for the truth.",
            source="KIP-630, KafkaMetadataLog.createNewSnapshot",
            noticed_by=("metadata-snapshot-committed",),
            kafka="4.3",
        ),
    )
    pre_vote: bool = _switch(
        "In KRaft a voter asks whether it would be elected before it runs for office, so that one that was cut off deposes "
        "no leader when it is back. A leader that has resigned and sees no successor asks in the next epoch. Before, it stood for "
        "election there.",
        "KIP-996, KafkaRaftClient",
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
        meaning="a voter without a leader looks for one (KAFKA-17030)",
        before=(("3.9.1", False),),
        is_repair=False,
    )
    begin_quorum_epoch_repeated: str = _switch(
        "Whether a leader of KRaft says again that it leads, each half of controller.quorum.fetch.timeout.ms: never, once a voter has heard it; "
        "always, to all voters; or to those alone that have not fetched for that long. A voter that is in a later epoch answers so, and "
        "deposes the leader.",
        "KAFKA-16536, KAFKA-16926, LeaderState.timeUntilBeginQuorumEpochTimerExpires, needToSendBeginQuorumRequests",
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
        meaning="brokers hear at once of what is committed (KIP-1166)",
        before=(("4.1", False),),
        is_repair=False,
    )
