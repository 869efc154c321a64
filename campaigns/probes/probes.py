"""Declares the rare states that runs count, with a function for each.

Lists and documents have the states in the same order.

A function is called before the event changes the memory of the run
(`harrow.campaigns.probes.probe_memory`).
"""

from collections.abc import Iterable, Mapping
from functools import partial
from typing import Final

from harrow.campaigns.probes.probe import PROBES, at_each, probe
from harrow.campaigns.probes.probe_memory import ProbeMemory
from harrow.campaigns.probes.reach import ProbeReach
from harrow.checks.replay.partition_state import LEADER
from harrow.cluster_model import errors, events
from harrow.cluster_model.apis import GROUP_APIS
from harrow.cluster_model.controller.control_plane import PREFERRED_LEADER, REASSIGNMENT, TOPIC_CREATION
from harrow.cluster_model.coordinators.groups.group import COMPLETING_REBALANCE, DEAD, PREPARING_REBALANCE
from harrow.cluster_model.coordinators.transactions.transaction_metadata import ONGOING, PREPARED
from harrow.cluster_model.kraft.committed_changes import METADATA_LOSS
from harrow.cluster_model.protocol import NO_LEADER
from harrow.cluster_model.registry import derived
from harrow.cluster_model.settings import CONSUMER_PROTOCOL
from harrow.cluster_model.sim.virtual_time import US_PER_SECOND
from harrow.cluster_model.topology import CONSUMER_OFFSETS, KRAFT, TRANSACTION_STATE, ZOOKEEPER
from harrow.cluster_model.zookeeper.service import protocol as zk

__all__ = ["PROBES", "in_reach", "never_reached"]

_CONTROL_REQUESTS: Final = ("LeaderAndIsr", "UpdateMetadata", "StopReplica")
_FETCH_REQUESTS: Final = ("Fetch", "OffsetsForLeaderEpoch")
_COMMIT_REQUESTS: Final = ("OffsetCommit", "TxnOffsetCommit")

_FLAP_US: Final = US_PER_SECOND
_MARKERS_DELAYED_US: Final = US_PER_SECOND
_HELD_BACK_US: Final = 5 * US_PER_SECOND
_OTHER_ELECTIONS: Final = (PREFERRED_LEADER, TOPIC_CREATION, METADATA_LOSS)
"""The reasons of elections that do not replace a leader that was lost."""
_alter_partition_refused: Final = partial(
    at_each, events.ControllerRequestRefused, api="AlterPartition", switch="isr_altered_by_controller"
)
_UNFINISHED: Final = (ONGOING, *PREPARED)
_OFFSETS_PREFIX: Final = f"{CONSUMER_OFFSETS}-"


def _is_clean(event: events.LeaderElected) -> bool:
    return event.reason not in _OTHER_ELECTIONS and event.leader != NO_LEADER and not event.unclean


def _held_back_at_end(run: ProbeMemory, at_us: int) -> int:
    """Count the transactions that are still open at the end, and have been for `_HELD_BACK_US`."""
    return sum(at_us - opened_us >= _HELD_BACK_US for opened_us, _ in run.opened.values())


# Controllers


@probe()
def controller_changed(_: ProbeMemory, event: events.ControllerElected) -> bool:
    """A broker, or a voter of the quorum, became the active controller after virtual time 0.

    With ZooKeeper the new controller reads all metadata again, sends it to every broker and
    finishes its predecessor's work. In KRaft it already has the metadata log, and starts a new
    session for every broker.
    """
    return event.at_us > 0


@probe()
def controller_reelected(run: ProbeMemory, event: events.ControllerElected) -> bool:
    """A controller that had resigned or died was elected again, with no other one in between.

    It no longer knows what it decided in its first term but did not write or commit.
    """
    return event.at_us > 0 and run.controller == event.broker


@probe()
def controller_died(run: ProbeMemory, event: events.BrokerStopped) -> bool:
    """The broker of the active controller died.

    Partition leaders that die now are not replaced until the controller's session expires, or until
    the quorum elects another leader.
    """
    return event.broker in run.controllers()


@probe()
def controller_died_during_election(run: ProbeMemory, event: events.BrokerStopped) -> bool:
    """The controller died while a partition waited for a leader.

    Its successor has to detect that and finish the election.
    """
    leaderless = {*run.brokers_down(), NO_LEADER}
    return event.broker in run.controllers() and any(
        partition.leader in leaderless for partition in run.partitions()
    )


@probe()
def leader_died_without_controller(run: ProbeMemory, event: events.BrokerStopped) -> bool:
    """A leader died while there was no controller.

    No controller is notified. With ZooKeeper the next controller notices only when it compares
    registrations; in KRaft the leader's session with the next controller has to expire first.
    """
    return not run.controllers() and any(partition.leader == event.broker for partition in run.partitions())


@probe()
def controllers_overlapped(run: ProbeMemory, event: events.ControllerElected) -> bool:
    """A broker or voter became controller while a live one still believed to be the controller.

    The former controller was paused or cut off. With ZooKeeper its requests carry an older
    controller epoch; in KRaft none of its records can be committed.
    """
    return any(other != event.broker for other in run.controllers())


@probe()
def paused_controller_woke_deposed(run: ProbeMemory, event: events.BrokerResumed) -> bool:
    """A paused controller resumed after another one had been elected.

    Before it learns of its successor, it continues where it stopped, perhaps in the middle of an
    election.
    """
    controllers = run.controllers()
    return event.broker in controllers and len(controllers) > 1


@probe(subsystems=(ZOOKEEPER,))
def controller_lost_its_session(run: ProbeMemory, event: events.SessionExpired) -> bool:
    """ZooKeeper expired the session of a controller that was alive.

    The controller resigns only when it learns that.
    """
    return zk.CONTROLLER in event.ephemerals and run.state.broker(event.broker).is_active_controller


@at_each(events.RequestRejected, api=_CONTROL_REQUESTS, error=errors.STALE_CONTROLLER_EPOCH)
def stale_controller_refused() -> None:
    """A broker refused a control request from a former controller.

    This is what the controller epoch is for (STALE_CONTROLLER_EPOCH).
    """


@at_each(events.RequestRejected, api=_CONTROL_REQUESTS, error=errors.STALE_BROKER_EPOCH)
def stale_broker_epoch_refused() -> None:
    """A broker refused a control request that was meant for its previous incarnation.

    If it obeyed such requests, a delayed LeaderAndIsr or StopReplica would undo later changes
    (KIP-380).
    """


# The quorum of KRaft, and what its controller refuses


@at_each(events.QuorumElectionUndecided)
def quorum_election_undecided() -> None:
    """A candidate for leader of the quorum was neither elected nor rejected in time.

    The candidate is cut off from the majority, or too many voters are down. Without pre-votes
    (KIP-996) each attempt raises the epoch.
    """


@at_each(events.QuorumMajorityLost, switch="check_quorum")
def quorum_majority_lost() -> None:
    """The leader of the quorum resigned because no majority had fetched from it for too long.

    It was cut off from the voters, while brokers may still have reached it. Before 3.7
    (KAFKA-15489) it stayed controller, although nothing that it wrote was committed.
    """


@at_each(events.MetadataLogTruncated)
def uncommitted_metadata_truncated() -> None:
    """A node truncated metadata records that its leader does not have.

    A former controller had appended them without committing them, so its decisions never took
    effect.
    """


@at_each(events.MetadataSnapshotFetched)
def metadata_snapshot_fetched() -> None:
    """A controller or a broker fetched a snapshot of the metadata.

    It was away for longer than the leader keeps the log. It continues with the records after the
    snapshot (KIP-630).
    """


@at_each(events.MetadataLogStarted)
def metadata_log_start_raised() -> None:
    """A node deleted the records of its metadata log below its oldest snapshot.

    A node that has not read that far now needs a snapshot.
    """


@at_each(events.MetadataLogLost)
def metadata_log_lost() -> None:
    """A voter lost its disk, with its metadata log and its vote.

    It may vote twice in an epoch, and it counts towards a majority again without the records it had
    acknowledged.
    """


@at_each(events.MetadataLogLost, is_kept=False)
def metadata_majority_lost() -> None:
    """A voter lost its metadata log, and no majority with all committed metadata remained.

    A controller without some of the committed decisions may be elected.
    """


@at_each(
    events.ControllerRequestRefused, api="BrokerRegistration", error=errors.DUPLICATE_BROKER_REGISTRATION
)
def registration_refused() -> None:
    """The controller refused to register a broker because its previous incarnation had a session.

    The broker retries until that session expires (DUPLICATE_BROKER_REGISTRATION).
    """


@at_each(events.ControllerRequestRefused, api="BrokerHeartbeat", error=errors.STALE_BROKER_EPOCH)
def stale_heartbeat_refused() -> None:
    """The controller refused a heartbeat because the broker is registered with another epoch.

    Usually the heartbeat is late: the broker has registered again, and a heartbeat of its previous
    incarnation must not unfence it (STALE_BROKER_EPOCH).
    """


# Brokers and their sessions


@at_each(events.SessionExpired)
def session_expired() -> None:
    """A broker's session ended: ZooKeeper expired it, or the KRaft controller fenced the broker.

    The cluster treats the broker as dead, whether it is or not. In KRaft the broker sent no
    heartbeat for broker.session.timeout.ms.
    """


@probe()
def session_expired_alive(run: ProbeMemory, event: events.SessionExpired) -> bool:
    """The session of a running or paused broker ended.

    Until the broker learns that, it acts as leader of partitions that now have other leaders.
    """
    state = run.state.brokers.get(event.broker)
    is_unregistered = events.ends_registration(event.broker, event.ephemerals)
    return is_unregistered and (state is None or state.is_live)


@probe()
def bounced_broker(run: ProbeMemory, event: events.BrokerStarted) -> bool:
    """A broker restarted before the control plane noticed that it had stopped.

    It has to wait for its former session to end. With ZooKeeper before KIP-380 a controller could
    miss the restart; in KRaft the new registration replaces the old one.
    """
    return run.state.broker(event.broker).is_registered


@probe()
def two_brokers_down(run: ProbeMemory, event: events.BrokerStopped) -> bool:
    """A broker died while another one was down.

    With three replicas and min.insync.replicas=2, partitions on both brokers no longer accept
    acks=all.
    """
    return any(other != event.broker for other in run.brokers_down())


@probe()
def all_replicas_down(run: ProbeMemory, event: events.BrokerStopped) -> int:
    """All replicas of a partition were down at once.

    Which replica leads next depends on which one returns first, and which were in the ISR.
    """
    down = {*run.brokers_down(), event.broker}
    # The memory has every replica that has been leader or follower.
    return sum(
        event.broker in partition.replicas and partition.replicas.keys() <= down
        for partition in run.partitions()
    )


@probe()
def last_isr_member_died(run: ProbeMemory, event: events.BrokerStopped) -> int:
    """The only member of an ISR died.

    No other replica can lead without an unclean election, except eligible leader replicas
    (KIP-966).
    """
    return sum(partition.isr == (event.broker,) for partition in run.partitions())


@probe()
def partition_offline(run: ProbeMemory, event: events.IsrReduced | events.LeaderElected) -> bool:
    """A partition had no leader.

    No member of its ISR was alive, and an unclean election was disabled or impossible.
    """
    if event.leader != NO_LEADER:
        return False
    # In KRaft losing the leader raises the leader epoch, as an election does.
    return isinstance(event, events.LeaderElected) or not any(
        run.state.broker(member).is_registered for member in event.isr
    )


# Elections


@probe()
def clean_election(_: ProbeMemory, event: events.LeaderElected) -> bool:
    """A member of the ISR was elected leader of a partition that had lost its leader.

    It has all committed records, but its high watermark and the other replicas may be behind.
    """
    return _is_clean(event)


@probe()
def unclean_election(_: ProbeMemory, event: events.LeaderElected) -> bool:
    """A replica outside the ISR was elected leader.

    Records that only the ISR had are lost, acknowledged or not.
    """
    return event.unclean and event.leader != NO_LEADER


@probe(subsystems=(KRAFT,), switch="eligible_leader_replicas")
def elr_member_elected(run: ProbeMemory, event: events.LeaderElected) -> bool:
    """An eligible leader replica (ELR) that was not in the ISR was elected.

    The ISR had shrunk below min.insync.replicas, so nothing was committed after the replica left it
    (KIP-966).
    """
    # The change that completes a reassignment can add a replica to the ISR and make it leader.
    if not _is_clean(event) or event.reason == REASSIGNMENT:
        return False
    state = run.state.partition(event.partition)
    return bool(state.elections) and event.leader not in state.isr


@at_each(events.LastKnownLeaderElected, subsystems=(KRAFT,), switch="eligible_leader_replicas")
def last_known_leader_elected() -> None:
    """The last known leader was elected uncleanly because neither ISR nor ELR had a member.

    All members had stopped uncleanly. The last known leader is the best choice left, but it may
    lack acknowledged records (KIP-966).
    """


@probe()
def preferred_leader_elected(_: ProbeMemory, event: events.LeaderElected) -> bool:
    """Leadership moved back to the preferred replica.

    Leadership moves although nothing has failed. Requests in flight reach a leader that has
    resigned.
    """
    return event.reason == PREFERRED_LEADER and event.leader != NO_LEADER and not event.unclean


@probe(events.BecameLeader)
def fast_leader_changes(run: ProbeMemory, broker: int, partition: str, start_offset: int) -> bool:
    """Another broker became leader before its predecessor had appended anything.

    No record carries the predecessor's epoch. The flaws of leader epochs before KIP-279 show only
    then.
    """
    before, previous_start = run.last_leader.get(partition, (broker, 0))
    return before != broker and previous_start == start_offset and not run.leads(broker, partition)


@probe(events.BecameLeader)
def leader_hw_behind(run: ProbeMemory, broker: int, partition: str) -> bool:
    """A new leader started with a high watermark below an earlier one of the partition.

    It learned its high watermark with its last fetch. Until followers fetch, it treats some
    committed records as uncommitted.
    """
    committed = run.committed.get(partition)
    if committed is None:
        return False
    state = run.state.partition(partition).replica(broker)
    return state.role != LEADER and state.high_watermark < committed


@probe(events.BecameLeader)
def leader_restarted_in_its_epoch(run: ProbeMemory, broker: int, partition: str, leader_epoch: int) -> bool:
    """A broker died and led again in the same leader epoch.

    Nobody noticed its absence. If its log became shorter meanwhile, followers cannot tell that from
    the epoch.
    """
    epoch, incarnation = run.last_leadership.get((broker, partition), (-1, 0))
    return epoch == leader_epoch and incarnation != run.incarnations.get(broker, 0)


@probe(events.BecameLeader)
def leader_missed_its_deposition(run: ProbeMemory, broker: int, partition: str, leader_epoch: int) -> bool:
    """A leader was elected again before it learned that another broker had led in between.

    It believes that it has led all the time, while its followers may have truncated their logs for
    the other leader.
    """
    if not run.leads(broker, partition):
        return False
    incarnation = run.incarnations.get(broker, 0)
    led_epoch, led_incarnation = run.last_leadership.get((broker, partition), (-1, incarnation))
    return led_incarnation == incarnation and any(
        election.leader_epoch < leader_epoch and election.leader not in (broker, NO_LEADER)
        for election in run.elections_after(partition, led_epoch)
    )


# Leaders that have a successor


@probe(events.BatchAppended)
def zombie_leader_accepted_write(run: ProbeMemory, partition: str, leader_epoch: int) -> bool:
    """A broker appended in a leader epoch that had ended.

    The record will be truncated. With acks=1 it is acknowledged nevertheless.
    """
    return leader_epoch < run.elected_epoch.get(partition, 0)


@probe(events.BatchAcknowledged)
def zombie_leader_acknowledged(run: ProbeMemory, broker: int, partition: str) -> bool:
    """A broker acknowledged a record after another leader had been elected.

    With acks=1 the record is lost. With acks=all every member of the new ISR must have it.
    """
    return run.is_zombie(broker, partition)


@probe(events.RecordsServed)
def zombie_leader_served_read(run: ProbeMemory, broker: int, partition: str) -> bool:
    """A consumer read from a broker after another leader had been elected.

    The consumer must not get records that the new leader does not have.
    """
    return run.is_zombie(broker, partition) and not run.follows(broker, partition)


@probe()
def zombie_leader_changed_isr(run: ProbeMemory, event: events.IsrChanged) -> bool:
    """A leader assumed that its ISR change was written, although it had a successor.

    ZooKeeper and the controller refuse writes of a former leader epoch. So either a mutant is on,
    or the change was written before the election, and the leader learned that late.
    """
    return event.leader_epoch < run.elected_epoch.get(event.partition, 0)


@probe()
def paused_leader_woke_deposed(run: ProbeMemory, event: events.BrokerResumed) -> int:
    """A paused leader resumed after another one had been elected.

    Before it learns of the election, it handles waiting requests as if it still led.
    """
    return sum(
        replica.role == LEADER and replica.leader_epoch < run.elected_epoch.get(name, 0)
        for name, replica in run.replicas_on(event.broker)
    )


# The ISR


@at_each(events.IsrChanged, change="shrink")
def isr_shrank() -> None:
    """A leader removed a follower from the ISR.

    Records that are committed from now on may be missing on that follower.
    """


@probe()
def isr_shrank_to_one(_: ProbeMemory, event: events.IsrChanged | events.IsrReduced) -> bool:
    """An ISR was reduced to the leader alone.

    With min.insync.replicas=1, acks=all now promises no more than acks=1.
    """
    return len(event.isr) == 1


@at_each(events.IsrChanged, change="expand")
def isr_expanded() -> None:
    """A follower rejoined an ISR.

    It may be elected from now on, so it must have every committed record.
    """


@probe()
def isr_flapped(run: ProbeMemory, event: events.IsrChanged) -> int:
    """A follower rejoined an ISR within a second of leaving it.

    Records committed in between were committed without it.
    """
    if event.change == "shrink":
        return 0
    removals_us = (run.removed_us.get((member, event.partition)) for member in event.isr)
    return sum(at_us is not None and event.at_us - at_us <= _FLAP_US for at_us in removals_us)


@at_each(events.IsrRefused)
def isr_write_refused() -> None:
    """A leader's change of the ISR was refused.

    Perhaps a controller had changed the partition, a replica was not allowed to join, the leader
    had a successor, or its session had ended.
    """


@_alter_partition_refused(error=errors.FENCED_LEADER_EPOCH)
def alter_partition_fenced() -> None:
    """A controller refused an AlterPartition of a former leader epoch.

    Another leader has been elected, and the sender does not know that yet (FENCED_LEADER_EPOCH,
    KIP-497).
    """


@_alter_partition_refused(error=errors.INVALID_UPDATE_VERSION)
def alter_partition_outdated() -> None:
    """A controller refused an AlterPartition that was based on an older state of the partition.

    The controller, or the leader itself, has changed the ISR since (INVALID_UPDATE_VERSION).
    """


@_alter_partition_refused(error=errors.STALE_BROKER_EPOCH)
def alter_partition_stale_broker_epoch() -> None:
    """A controller refused an AlterPartition of a dead broker, or of an earlier incarnation.

    Otherwise a dead leader would decide which replicas are in sync (STALE_BROKER_EPOCH).
    """


@at_each(
    events.ControllerRequestRefused,
    api="AlterPartition",
    error=errors.INELIGIBLE_REPLICA,
    switch="isr_expansion_checks_registration",
)
def ineligible_replica_refused() -> None:
    """A controller refused to add a replica to an ISR.

    Its broker was fenced, was shutting down, or had restarted since the leader counted its fetches
    (INELIGIBLE_REPLICA, KIP-841, KIP-903).
    """


@probe()
def isr_write_unheard(run: ProbeMemory, event: events.LeaderElected) -> bool:
    """Another leader was elected while the former one did not know that its ISR change was written.

    A replica that the change added may lead now. While the former leader still uses the smaller
    ISR, it commits records without that replica (KIP-497).
    """
    state = run.state.partition(event.partition)
    former = state.replicas.get(state.leader)
    if former is None or former.role != LEADER or event.leader == state.leader:
        return False
    return former.leader_epoch == state.leader_epoch and not set(state.isr) <= {state.leader, *former.isr}


@probe()
def member_restarted_while_joining(run: ProbeMemory, event: events.BrokerStarted) -> bool:
    """A broker restarted while its leader's request to add it to the ISR was in flight.

    The request is based on the broker's previous incarnation, whose records may be lost (KIP-903).
    """
    return any(event.broker in joining for joining in run.joining.values())


# Followers


@at_each(events.LogTruncated)
def truncated() -> None:
    """A follower truncated its log.

    The present leader does not have records that the follower copied from an earlier leader.
    """


@probe()
def truncated_below_hw(run: ProbeMemory, event: events.LogTruncated) -> bool:
    """A follower truncated its log below an earlier high watermark of the partition.

    This removes committed records. If the follower is elected before it has fetched them again,
    they are lost.
    """
    return event.to_offset < run.committed.get(event.partition, 0)


@probe()
def truncated_below_read(run: ProbeMemory, event: events.LogTruncated) -> bool:
    """A replica truncated records that a consumer had read.

    If no other replica has them, other records will take their offsets.
    """
    return event.to_offset < run.read_end.get(event.partition, 0)


@probe()
def follower_ahead_of_leader(run: ProbeMemory, event: events.LogTruncated) -> bool:
    """A follower truncated records beyond the start of its leader's epoch.

    The leader was elected although another replica had a longer log.
    """
    leadership = run.last_leader.get(event.partition)
    return leadership is not None and event.from_offset > leadership[1]


@probe()
def follower_truncated_twice(run: ProbeMemory, event: events.LogTruncated) -> bool:
    """A follower truncated its log twice before it started to fetch.

    The first truncation was not enough: the leader did not have the follower's last epoch
    (KIP-279), or the leader's log is even shorter.
    """
    return (event.broker, event.partition) in run.truncated


@probe()
def epoch_unknown_to_leader(_: ProbeMemory, event: events.EpochEndAnswered) -> bool:
    """A leader was asked for the end of an epoch that it did not have.

    It answers with an earlier epoch. Before KIP-279 the answer could not name that epoch.
    """
    return event.end_offset != -1 and event.answer_epoch not in (event.leader_epoch, -1)


@at_each(events.EpochEndAnswered, end_offset=-1)
def epoch_undefined_answer() -> None:
    """A leader did not know where an epoch ends.

    The follower falls back to its high watermark, as before KIP-101.
    """


@at_each(events.OutdatedFetchAnswered)
def fetch_of_older_epoch_answered() -> None:
    """A follower got the response to a fetch it had sent in an older epoch of the same leader.

    Its log still ended at the offset of that fetch. In the present epoch, the response may be wrong
    (KAFKA-18991).
    """


@at_each(events.FetcherFailed)
def follower_gave_up() -> None:
    """A follower stopped fetching: the next batch did not start at the end of its own log.

    The two logs differ in a way that no epoch shows.
    """


@at_each(events.RequestRejected, api=_FETCH_REQUESTS, error=errors.FENCED_LEADER_EPOCH)
def fenced_by_leader_epoch() -> None:
    """A fetch was refused because its leader epoch was outdated.

    The follower or consumer had not learned of the last election (KIP-320).
    """


@at_each(events.RequestRejected, api=_FETCH_REQUESTS, error=errors.UNKNOWN_LEADER_EPOCH)
def leader_epoch_unknown() -> None:
    """A fetch carried a newer leader epoch than its leader knew.

    The follower learned of the election first, and has to wait (UNKNOWN_LEADER_EPOCH).
    """


@at_each(events.RequestRejected, api="Fetch", error=errors.OFFSET_OUT_OF_RANGE)
def fetch_out_of_range() -> None:
    """A fetch asked for an offset beyond the end of the log.

    The follower or consumer is ahead of the leader: records were truncated or lost.
    """


@at_each(events.FetchDelayed)
def fetch_waited_in_purgatory() -> None:
    """A fetch found nothing to read and waited in the purgatory.

    Its response carries the high watermark at the time when the wait ends, not when it began.
    """


@at_each(events.FetchExpired)
def fetch_expired_in_purgatory() -> None:
    """A fetch waited in the purgatory until it expired.

    Nothing was appended meanwhile. The empty response carries the high watermark.
    """


# Disks


@probe(events.LogOpened)
def hw_checkpoint_stale_at_restart(run: ProbeMemory, broker: int, partition: str, hw: int) -> bool:
    """A replica started with a lower high watermark than it had when it stopped.

    The checkpoint of high watermarks is written only every 5 s. Before KIP-101 a follower truncated
    its log to that high watermark.
    """
    return hw < run.state.partition(partition).replica(broker).high_watermark


@at_each(events.UnflushedLost)
def unflushed_lost() -> None:
    """Power loss destroyed records that were not flushed.

    Now only the other replicas have them.
    """


@probe()
def committed_unflushed_lost(run: ProbeMemory, event: events.UnflushedLost) -> bool:
    """Power loss destroyed records below an earlier high watermark of their partition.

    They are safe only while another replica keeps its copy, which may not be flushed either.
    """
    return event.from_offset < run.committed.get(event.partition, 0)


@at_each(events.LogLost)
def log_lost_with_disk() -> None:
    """A broker lost its disk, and with it a log that had records.

    Now only the other replicas have them.
    """


@probe()
def last_isr_member_lost_its_disk(run: ProbeMemory, event: events.LogLost) -> bool:
    """The only member of an ISR lost its disk.

    No other replica can be elected, so it leads with an empty log when it returns (KIP-966).
    """
    return run.state.partition(event.partition).isr == (event.broker,)


@at_each(events.CorruptBatchFetched)
def corrupt_batch_fetched() -> None:
    """A follower or a consumer fetched a batch with a wrong CRC.

    It retries at the same offset until another replica leads.
    """


@at_each(events.CorruptionCut)
def recovery_met_corruption() -> None:
    """A broker that had been killed found a batch with a wrong CRC, and truncated its log there.

    The valid batches after it are lost as well.
    """


@at_each(events.LogDirFailed)
def log_dir_failed() -> None:
    """A broker could not write to a log directory.

    If it has another log directory, it continues without the replicas in the failed one (KIP-112).
    Otherwise it stops.
    """


@at_each(events.RequestQueueFull)
def request_queue_full() -> None:
    """A broker's request queue was full while its threads waited for the disk.

    Then its network threads wait too, and responses that are ready wait with them.
    """


@at_each(events.LogStartRaised)
def log_start_raised() -> None:
    """The start offset of a log rose because retention deleted records.

    A consumer whose next record was deleted continues where auto.offset.reset says.
    """


@at_each(events.DeleteRecordsAnswered, error=errors.NONE)
def records_deleted_by_request() -> None:
    """An administrator deleted records.

    The logs may now start in the middle of a batch. Records from the requested offset on must stay
    (KIP-107).
    """


@at_each(events.LogStartedAnew)
def log_started_anew() -> None:
    """A follower dropped its log and continued from the start of its leader's log.

    It was away for longer than its leader keeps records.
    """


@at_each(events.LogCleaned)
def log_compacted() -> None:
    """A replica compacted its log.

    The latest record of each key remains. Each replica compacts at its own times.
    """


@probe()
def compacted_above_hw(run: ProbeMemory, event: events.LogCleaned) -> bool:
    """A replica compacted records that were not committed.

    If the later record of a key is truncated afterwards, the earlier record of the key is already
    gone (KAFKA-13194, up to 3.0).
    """
    return event.to_offset > run.committed.get(event.partition, 0)


@at_each(events.OffsetReset)
def offset_reset() -> None:
    """A consumer's position was out of range, and it continued where auto.offset.reset says.

    With latest, the default of that setting, the consumer skips records that still exist.
    """


@at_each(events.ReadReplicaPreferred)
def read_replica_preferred() -> None:
    """A leader told a consumer to read from a follower.

    The records that the consumer reads are committed, but the follower's high watermark lags behind
    the leader's (KIP-392).
    """


@at_each(events.ReadReplicaCleared)
def read_replica_cleared() -> None:
    """A consumer went back from a follower to the leader.

    The two replicas may differ in length, so the consumer's position may be beyond the end of the
    leader's log.
    """


# Producers


@at_each(events.BatchDeduplicated)
def duplicate_batch_suppressed() -> None:
    """A leader recognised a batch that it already had.

    The ack of the first copy was lost. Without idempotence the batch would be in the log twice.
    """


@probe(events.BatchAppended)
def batch_appended_again(run: ProbeMemory, values: events.Values) -> bool:
    """A batch that had been appended before was appended again.

    The first copy was truncated or lost, or the leader did not recognise the batch, which is then
    in the log twice.
    """
    return run.is_appended(values)


@at_each(
    events.RequestRejected,
    api="Produce",
    error=(errors.OUT_OF_ORDER_SEQUENCE_NUMBER, errors.UNKNOWN_PRODUCER_ID),
)
def sequence_refused() -> None:
    """A leader refused a batch because of its sequence number.

    An earlier batch of the producer, or the producer's state, is missing.
    """


@at_each(events.RequestRejected, api="Produce", error=errors.NOT_ENOUGH_REPLICAS)
def not_enough_replicas() -> None:
    """A leader refused a batch because its ISR was below min.insync.replicas.

    Refusing the record keeps the promise of acks=all.
    """


@at_each(events.RequestRejected, api="Produce", error=errors.NOT_ENOUGH_REPLICAS_AFTER_APPEND)
def not_enough_replicas_after_append() -> None:
    """The ISR fell below min.insync.replicas after a batch was appended.

    The producer gets an error, yet the record is in the log and may stay.
    """


@at_each(events.RequestRejected, api="Produce", error=errors.REQUEST_TIMED_OUT)
def produce_timed_out() -> None:
    """A produce request with acks=all expired in the purgatory while it waited for followers.

    The record is in the log nevertheless.
    """


@probe(events.SendFailed)
def ack_lost_after_append(run: ProbeMemory, error: str, values: events.Values) -> bool:
    """An ack was lost on its way to the producer.

    The producer cannot know that the record was appended, and sends it again.
    """
    return error == errors.NETWORK_EXCEPTION and run.is_acknowledged(values)


@probe(events.SentAgain)
def retried_after_append(run: ProbeMemory, values: events.Values) -> bool:
    """A producer resent a batch that had been appended.

    Only a leader that remembers the batch prevents a duplicate.
    """
    return run.is_appended(values)


@at_each(events.AppendedBatchGivenUp)
def appended_batch_given_up() -> None:
    """An idempotent producer gave up a batch that may be in the log, because an error came late.

    The producer got the error after delivery.timeout.ms, with later batches in flight. If it
    assumes that the batch was refused, it gives the later batches sequence numbers that the leader
    has already seen (KAFKA-14397).
    """


@probe(events.SentAgain)
def producer_retried_to_new_leader(run: ProbeMemory, leader: int, values: events.Values) -> bool:
    """A producer resent a batch to another leader than before.

    The new leader recognises the batch only if it copied the batch from the former leader.
    """
    return run.failed_leader.get(values, leader) != leader


@at_each(events.RequestRejected, api="Produce", error=errors.NOT_LEADER_FOR_PARTITION)
def sent_to_former_leader() -> None:
    """A broker refused a batch because it does not lead the partition.

    The producer's metadata was outdated (NOT_LEADER_FOR_PARTITION).
    """


@at_each(events.RequestRejected, api="Produce", error=errors.INVALID_PRODUCER_EPOCH)
def stale_producer_epoch_refused() -> None:
    """A leader refused a batch with an outdated producer epoch.

    A zombie still writes, or the batch arrived late: with transactions v2 each transaction has its
    own epoch (INVALID_PRODUCER_EPOCH, KIP-890).
    """


# Groups


@probe()
def group_rebalanced(run: ProbeMemory, event: events.GroupAssigned | events.TargetAssigned) -> bool:
    """A group's assignment changed.

    Partitions moved to other members, or to a member that returned with another id. No record must
    be skipped when a partition gets another owner. Records that the former owner processed but did
    not commit are processed again.
    """
    return run.assignments.get(event.group, event.assignments) != event.assignments


@probe()
def rebalance_interrupted(run: ProbeMemory, event: events.GroupStateChanged) -> bool:
    """A rebalance began before the members had the partitions of the previous one.

    No member reads during that generation. Members that still wait for their partitions have to
    join again.
    """
    is_completing = run.groups.get(event.group) == (event.broker, COMPLETING_REBALANCE)
    return event.state == PREPARING_REBALANCE and is_completing


@at_each(events.MemberExpired)
def member_session_expired() -> None:
    """A coordinator removed a member that had sent no heartbeat for session.timeout.ms.

    Its partitions go to other members, whether it is dead or not.
    """


@at_each(events.RequestRejected, api=GROUP_APIS, error=(errors.UNKNOWN_MEMBER_ID, errors.FENCED_MEMBER_EPOCH))
def member_fenced() -> None:
    """A coordinator refused a request of a member that it did not know, or that had another epoch.

    The coordinator considered the member dead, and other members may have its partitions. The
    member cannot commit the records that it has processed since (UNKNOWN_MEMBER_ID,
    FENCED_MEMBER_EPOCH).
    """


@at_each(events.StaticMemberReplaced)
def static_member_took_over() -> None:
    """A static member replaced its previous incarnation.

    It has the same group.instance.id, and gets the same partitions without a rebalance (KIP-345).
    """


@at_each(events.RequestRejected, api=GROUP_APIS, error=errors.FENCED_INSTANCE_ID)
def static_member_fenced() -> None:
    """A coordinator refused the previous incarnation of a static member.

    Two processes had the same group.instance.id. The older one can no longer commit or read
    (FENCED_INSTANCE_ID).
    """


@at_each(
    events.RequestRejected,
    api=GROUP_APIS,
    error=errors.UNRELEASED_INSTANCE_ID,
    switch="consumer_group_protocol",
    protocol=CONSUMER_PROTOCOL,
)
def static_member_unreleased() -> None:
    """A coordinator refused a static member because its previous incarnation may be alive.

    With KIP-848 the member cannot take over before the session ends. Until then no member reads its
    partitions (UNRELEASED_INSTANCE_ID).
    """


@at_each(events.PartitionsRevoked, lost=True)
def partitions_lost() -> None:
    """A consumer gave up partitions that other members may already read.

    It learned too late that it had been removed from its group, so it could not commit first
    (onPartitionsLost).
    """


@probe(switch="consumer_group_protocol", protocol=CONSUMER_PROTOCOL)
def member_asked_to_revoke(_: ProbeMemory, event: events.MemberReconciled) -> bool:
    """A coordinator asked a member to give up partitions before other members get them.

    Until it has given them up, no other member reads them. If it is paused, that lasts up to the
    rebalance timeout (KIP-848).
    """
    return bool(event.revoking)


@probe()
def commit_during_rebalance(run: ProbeMemory, event: events.OffsetsCommitted) -> bool:
    """A coordinator accepted a commit while its group was preparing a rebalance.

    The commit counts: the next owner of the partition starts at the committed offset.
    """
    _, state = run.groups.get(event.group, (event.broker, ""))
    return bool(event.member) and state == PREPARING_REBALANCE


@at_each(
    events.RequestRejected, api=_COMMIT_REQUESTS, error=(errors.ILLEGAL_GENERATION, errors.STALE_MEMBER_EPOCH)
)
def commit_refused_by_generation() -> None:
    """A commit was refused because of its generation or its member epoch.

    The member missed a rebalance. The new owner of the partition processes its uncommitted records
    again (ILLEGAL_GENERATION, STALE_MEMBER_EPOCH).
    """


@at_each(
    events.RequestRejected,
    api=_COMMIT_REQUESTS,
    error=(errors.NOT_COORDINATOR, errors.COORDINATOR_LOAD_IN_PROGRESS),
)
def commit_sent_to_former_coordinator() -> None:
    """A commit reached a broker that did not coordinate the group, or was still loading the group.

    The consumer cannot know whether the commit is in the log. It looks up the coordinator and
    commits again.
    """


@probe()
def group_coordinator_moved(run: ProbeMemory, event: events.GroupStateChanged) -> bool:
    """Another broker took over a group.

    It has the members and offsets in its own replica of __consumer_offsets. A commit that was not
    replicated to it is lost.
    """
    # A former coordinator reports the group as dead when another broker takes over.
    broker, _ = run.groups.get(event.group, (event.broker, ""))
    return event.state != DEAD and broker != event.broker


@probe(events.BecameLeader, subsystems=(CONSUMER_OFFSETS, TRANSACTION_STATE))
def coordinator_moved_with_pending_offsets(run: ProbeMemory, broker: int, partition: str) -> bool:
    """A group's coordinator moved while a transaction had pending offsets in its partition.

    The new coordinator has to find these offsets in the log, and apply them once the marker arrives
    (KIP-447).
    """
    if not partition.startswith(_OFFSETS_PREFIX):
        return False
    before, _ = run.last_leader.get(partition, (broker, 0))
    has_moved = before != broker and not run.leads(broker, partition)
    # A completed transaction has no partitions.
    return has_moved and any(partition in transaction.partitions for transaction in run.transactions.values())


@at_each(events.OffsetsExpired)
def group_offsets_expired() -> None:
    """A group's offsets expired: nothing had been committed for offsets.retention.minutes.

    The next consumer of the group starts where auto.offset.reset says.
    """


# Transactions


@at_each(events.OpenTransactionFenced, is_timed_out=True)
def transaction_timed_out() -> None:
    """A coordinator aborted a transaction that was open for longer than transaction.timeout.ms.

    Its producer is fenced, and learns that with its next request.
    """


@at_each(events.OpenTransactionFenced, is_timed_out=False)
def transaction_aborted_for_successor() -> None:
    """A coordinator aborted a transaction for a new producer with the same transactional id.

    The former producer, dead or not, can no longer write. Its records in the open transaction do
    not count.
    """


@at_each(events.TransactionError, fatal=True, error=(errors.PRODUCER_FENCED, errors.INVALID_PRODUCER_EPOCH))
def producer_fenced() -> None:
    """A producer was fenced by another one, or because the coordinator had ended its transaction.

    It is a zombie and can do nothing more (PRODUCER_FENCED).
    """


@at_each(events.TransactionError, fatal=False)
def transaction_only_abortable() -> None:
    """A producer could only abort its transaction.

    One of its batches or offsets was refused. The batches and offsets that are already in logs have
    to be marked as aborted.
    """


@probe()
def transaction_coordinator_moved(run: ProbeMemory, event: events.TransactionStateChanged) -> bool:
    """Another coordinator took over a transaction that was open or ending.

    It knows only the records of its own replica of __transaction_state.
    """
    before = run.transactions.get(event.transactional_id)
    return before is not None and before.broker != event.broker and before.state in _UNFINISHED


@probe()
def markers_completed_by_successor(run: ProbeMemory, event: events.TransactionStateChanged) -> bool:
    """A coordinator completed a transaction whose end another coordinator had decided.

    It sends all markers again, although some may have been written already.
    """
    before = run.prepared(event)
    return before is not None and before.broker != event.broker


@probe()
def markers_delayed(run: ProbeMemory, event: events.TransactionStateChanged) -> bool:
    """A transaction was completed a second or more after its end was decided.

    Leaders did not answer WriteTxnMarkers. The producer may already have its answer, while
    read_committed consumers do not see the transaction yet.
    """
    before = run.prepared(event)
    return before is not None and event.at_us - before.at_us >= _MARKERS_DELAYED_US


@probe(events.TransactionMarkerWritten)
def marker_without_transaction(run: ProbeMemory, broker: int, partition: str, first_offset: int) -> bool:
    """A leader got the marker of a transaction that is not open in its log.

    The marker was sent twice, or the transaction has no records in the log.
    """
    return first_offset < 0 and run.leads(broker, partition)


@probe(events.TransactionBegun)
def late_transactional_batch(run: ProbeMemory, broker: int, partition: str, producer_id: int) -> bool:
    """A leader accepted a batch for a transaction that is not open at its coordinator.

    The batch opens a transaction in the log. It stays open until the producer's next transaction
    ends, if there is a next one (KIP-890).
    """
    transaction = run.producers.get(producer_id)
    if transaction is None or (transaction.state == ONGOING and partition in transaction.partitions):
        return False
    # The last known state may be outdated: a new coordinator does not report the states that it
    # loads from its log, and a former coordinator may still report.
    return (
        transaction.at_us >= run.coordinators_elected_us
        and run.coordinates(transaction.broker)
        and run.leads(broker, partition)
    )


@probe(events.TransactionBegun, events.TransactionMarkerWritten, at_end=_held_back_at_end)
def lso_held_back(
    run: ProbeMemory, at_us: int, name: str, broker: int, partition: str, producer_id: int, first_offset: int
) -> bool:
    """A transaction held back the last stable offset of a log for five seconds or more.

    Consumers with read_committed got no records beyond its first one, even if other transactions
    had committed there. A transaction without a marker holds the offset back until the end of the
    run.
    """
    if name != events.TransactionMarkerWritten.name or first_offset < 0:
        return False
    opened = run.opened.get((partition, producer_id))
    return opened is not None and at_us - opened[0] >= _HELD_BACK_US and run.leads(broker, partition)


# Probes and the runs that reach them


@derived
def in_reach(reach: ProbeReach) -> tuple[str, ...]:
    """Return the probes that runs with this reach can reach."""
    return tuple(name for name, declared in PROBES.items() if declared.obstacle(reach) is None)


def never_reached(runs: Iterable[Mapping[str, int]], probes: Iterable[str]) -> tuple[str, ...]:
    """Return the *probes* that no run reached; *runs* has the counts of each run."""
    counts = list(runs)
    return tuple(name for name in probes if not any(run.get(name) for run in counts))
