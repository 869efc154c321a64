"""Release profiles: what each Kafka release does, as named switches.

A campaign names a release; each behaviour is a switch that it can also set alone
(``behaviours:``). A switch set to a known-bad value is a mutant (`mutants.MUTANTS`).
"""

from dataclasses import dataclass, field, fields, replace
from typing import Any, Final

HIGH_WATERMARK: Final = "high_watermark"
LEADER_EPOCH: Final = "leader_epoch"
ANSWERED_EPOCH: Final = "answered_epoch"
NO_TRUNCATION: Final = "none"


def _switch(default: Any, doc: str, source: str, choices: tuple[Any, ...] = (False, True)) -> Any:
    return field(default=default, metadata={"doc": doc, "source": source, "choices": choices})


@dataclass(frozen=True, slots=True, kw_only=True)
class Behaviours:
    """The switches; their defaults are what release 2.4 does."""

    follower_truncation: str = _switch(
        ANSWERED_EPOCH,
        "What a new follower truncates its log to: its own high watermark; the end offset of its last "
        "leader epoch as the leader answers it; or the same with the answered epoch taken into account. "
        "`none` is a mutant that never truncates.",
        "KIP-101, KIP-279, AbstractFetcherThread.scala",
        (HIGH_WATERMARK, LEADER_EPOCH, ANSWERED_EPOCH, NO_TRUNCATION),
    )
    epoch_entry_on_election: bool = _switch(
        True,
        "A new leader puts (epoch, LEO) into its epoch cache at once, not with its first append.",
        "KAFKA-7415, Partition.makeLeader",
    )
    epoch_cache_cut_at_log_end: bool = _switch(
        False,
        "A truncation to the log's end drops an epoch that has an entry there but no records. Without that, "
        "a follower whose last epoch is such a one asks its leader for ever and never fetches.",
        "KAFKA-10706, Log.truncateTo",
    )
    isr_expansion_checks_epoch_start: bool = _switch(
        True,
        "A follower joins the ISR only when it has reached the start of the leader's epoch, not just the "
        "leader's high watermark, which lags after an election.",
        "KAFKA-7128, Partition.maybeExpandIsr",
    )
    fetch_leader_epoch_fencing: bool = _switch(
        True,
        "Fetch and OffsetsForLeaderEpoch carry the current leader epoch; a mismatch is FENCED_LEADER_EPOCH "
        "or UNKNOWN_LEADER_EPOCH.",
        "KIP-320",
    )
    broker_epoch: bool = _switch(
        True,
        "Control requests carry the broker's epoch, and the controller notices a broker that bounced "
        "between two looks at /brokers/ids.",
        "KIP-380 (KAFKA-7235), KAFKA-1120",
    )
    requests_after_registration: bool = _switch(
        True,
        "A starting broker handles no request before it is registered in ZooKeeper, so none that was meant "
        "for its earlier life while nobody knew that it had died.",
        "KAFKA-6772, KafkaServer.startup (SocketServer.startProcessors)",
    )
    controller_writes_fenced: bool = _switch(
        True,
        "The controller's writes to ZooKeeper are conditional on the version of /controller_epoch.",
        "KAFKA-6082",
    )
    failover_takes_out_dead_replicas: bool = _switch(
        True,
        "A new controller takes the replicas of brokers that are not alive out of the ISRs. Before, a broker "
        "that died while there was no controller stayed in them until its leader noticed.",
        "KAFKA-3143, ReplicaStateMachine.startup",
    )
    controller_epoch_fencing: bool = _switch(
        True,
        "Brokers refuse control requests with an older controller epoch (STALE_CONTROLLER_EPOCH).",
        "ReplicaManager.becomeLeaderOrFollower",
    )
    leader_epoch_fencing: bool = _switch(
        True,
        "Brokers ignore a LeaderAndIsr whose leader epoch is not newer than their own.",
        "ReplicaManager.becomeLeaderOrFollower",
    )
    idempotence: bool = _switch(True, "The idempotent producer exists.", "KIP-98")
    producer_batches_retained: int = _switch(
        5,
        "How many batches of a producer a partition remembers to recognise duplicates; 0: no producer state.",
        "KAFKA-5494, ProducerStateManager.scala",
        (0, 1, 5),
    )
    sequence_check: bool = _switch(
        True,
        "A leader refuses a batch whose sequence number does not follow the last one.",
        "KIP-98, ProducerAppendInfo.checkSequence",
    )
    idempotent_in_flight_max: int = _switch(
        5,
        "The most requests in flight that an idempotent producer may be configured with.",
        "KAFKA-5494",
        (1, 5),
    )
    unknown_producer_id_error: bool = _switch(
        True,
        "A batch of a producer of which the log has nothing is UNKNOWN_PRODUCER_ID unless its sequence is 0.",
        "KAFKA-5793, ProducerAppendInfo.checkSequence",
    )
    delivery_timeout: bool = _switch(
        True,
        "delivery.timeout.ms bounds the time from send to report, retries included.",
        "KIP-91",
    )
    oldest_request_fails_first: bool = _switch(
        True,
        "When a connection is lost, the oldest of the requests in flight fails first. A producer without "
        "idempotence puts each back to the front of its queue, and so turns their order round.",
        "InFlightRequests.clearAll",
    )
    sticky_partitioner: bool = _switch(
        True,
        "Records without a key stay with one partition until its batch is sent; before, round robin.",
        "KIP-480",
    )
    hw_counts_whole_isr: bool = _switch(
        True,
        "The leader's high watermark waits for every replica in the ISR. Off is a mutant.",
        "Partition.maybeIncrementLeaderHW",
    )
    ack_waits_for_hw: bool = _switch(
        True,
        "acks=all is answered when the high watermark has passed the batch. Off is a mutant.",
        "Partition.checkEnoughReplicasReachOffset",
    )
    consumer_limited_by_hw: bool = _switch(
        True,
        "Consumers read below the high watermark only. Off is a mutant.",
        "ReplicaManager.readFromLocalLog",
    )
    hw_never_falls: bool = _switch(
        True,
        "The leader's high watermark never falls, not even while it does not know its followers' LEOs. Off is a mutant.",
        "Partition.maybeIncrementLeaderHW",
    )
    hw_limited_to_log_end: bool = _switch(
        True,
        "A log that is opened cuts its checkpointed high watermark to its LEO: power loss may have taken what the "
        "checkpoint knew of. Off is a mutant.",
        "Partition.getOrCreateReplica, Log.updateHighWatermark",
    )
    recovery_point_follows_flush: bool = _switch(
        True,
        "The recovery point that is checkpointed is what has been flushed. Off is a mutant: it is the LEO.",
        "LogManager.checkpointLogRecoveryOffsets, Log.flush",
    )
    epoch_cache_follows_log: bool = _switch(
        True,
        "The epoch cache is cut where its log was cut: by a truncation, and by what a log that is opened has lost. "
        "Off is a mutant.",
        "KIP-101, Log.truncateTo, Log.loadSegments",
    )
    isr_expansion_checks_hw: bool = _switch(
        True,
        "A follower joins the ISR only when it has reached the leader's high watermark. Off is a mutant.",
        "Partition.maybeExpandIsr",
    )
    isr_shrink_waits_for_write: bool = _switch(
        True,
        "A leader counts a follower out only when the smaller ISR is written. Off is a mutant: it counts at once, "
        "written or not.",
        "KIP-497 (maximal ISR), Partition.maybeShrinkIsr",
    )
    refused_isr_write_obeyed: bool = _switch(
        True,
        "A leader whose ISR write is refused keeps the ISR that it had. Off is a mutant: a leader that has been "
        "succeeded goes on with an ISR of its own making.",
        "Partition.expandIsr, Partition.shrinkIsr",
    )
    isr_write_conditional: bool = _switch(
        True,
        "A leader writes an ISR only if nobody has written the znode since. Off is a mutant: a leader that has been "
        "succeeded writes itself back into it.",
        "ReplicationUtils.updateLeaderAndIsr",
    )
    min_isr_checked: bool = _switch(
        True,
        "acks=all is refused while the ISR is smaller than min.insync.replicas. Off is a mutant.",
        "KAFKA-1555, Partition.appendRecordsToLeader",
    )
    deposed_leader_fails_pending: bool = _switch(
        True,
        "A leader that is succeeded answers NOT_LEADER_FOR_PARTITION to the acks=all that wait with it. Off is a "
        "mutant: it answers that they are committed.",
        "DelayedProduce.tryComplete",
    )
    producer_state_follows_log: bool = _switch(
        True,
        "After a truncation the producers' states are learned again from what is left. Off is a mutant: a leader "
        "takes for a duplicate what it no longer has.",
        "Log.truncateTo, ProducerStateManager.truncateAndReload",
    )
    followers_learn_producers: bool = _switch(
        True,
        "A follower learns the producers' states from the batches that it copies. Off is a mutant: a new leader "
        "knows only what it has read from its disk.",
        "KIP-98, Log.append (analyzeAndValidateProducerState)",
    )
    unclean_election_only_if_enabled: bool = _switch(
        True,
        "A replica outside the ISR is elected only where unclean.leader.election.enable says so. Off is a mutant.",
        "KIP-106, PartitionLeaderElectionAlgorithms.offlinePartitionLeaderElection",
    )
    preferred_leader_from_isr: bool = _switch(
        True,
        "The preferred replica is elected only if it is in the ISR. Off is a mutant.",
        "PartitionLeaderElectionAlgorithms.preferredReplicaPartitionLeaderElection",
    )


@dataclass(frozen=True, slots=True)
class Release:
    """A release that a campaign can name, and what it does."""

    name: str
    version: tuple[int, ...]
    behaviours: Behaviours
    doc: str


_V2_4: Final = Behaviours()
_V2_0: Final = replace(
    _V2_4,
    fetch_leader_epoch_fencing=False,
    broker_epoch=False,
    failover_takes_out_dead_replicas=False,
    controller_writes_fenced=False,
    delivery_timeout=False,
    sticky_partitioner=False,
)
_V0_11: Final = replace(
    _V2_0,
    follower_truncation=LEADER_EPOCH,
    epoch_entry_on_election=False,
    oldest_request_fails_first=False,
    isr_expansion_checks_epoch_start=False,
    requests_after_registration=False,
    producer_batches_retained=1,
    idempotent_in_flight_max=1,
    unknown_producer_id_error=False,
)
_V0_10_2: Final = replace(
    _V0_11,
    follower_truncation=HIGH_WATERMARK,
    idempotence=False,
    producer_batches_retained=0,
)

RELEASES: Final[dict[str, Release]] = {
    release.name: release
    for release in (
        Release(
            "0.10.2", (0, 10, 2), _V0_10_2, "Followers truncate to their high watermark; no idempotence."
        ),
        Release("0.11", (0, 11), _V0_11, "Leader epochs (KIP-101), the idempotent producer (KIP-98)."),
        Release("2.0", (2, 0), _V2_0, "The epoch answer carries the epoch (KIP-279)."),
        Release(
            "2.4",
            (2, 4),
            _V2_4,
            "Leader epochs in fetches (KIP-320), broker epochs (KIP-380), delivery timeout (KIP-91).",
        ),
    )
}
"""The releases whose data plane is modelled, oldest first."""

DEFAULT_RELEASE: Final = "2.4"


def switch_docs() -> dict[str, dict[str, Any]]:
    """Return doc, source and choices of each switch, by name."""
    return {switch.name: dict(switch.metadata) for switch in fields(Behaviours)}
