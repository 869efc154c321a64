"""The rare states that runs count: a function for each, in the order in which they are listed.

Each is asked before the memory of the run takes its event into account (`harrow.campaigns.probes.probe_memory`).
"""

from collections.abc import Iterable, Mapping
from typing import Final

from harrow.campaigns.probes.probe import PROBES, at_each, probe
from harrow.campaigns.probes.probe_memory import ProbeMemory
from harrow.campaigns.probes.reach import ProbeReach
from harrow.checks.replay.partition_state import LEADER
from harrow.cluster_model import errors, events
from harrow.cluster_model.apis import GROUP_APIS
from harrow.cluster_model.controller.control_plane import REASSIGNMENT
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

_CONTROL: Final = ("LeaderAndIsr", "UpdateMetadata", "StopReplica")
_FETCHES: Final = ("Fetch", "OffsetsForLeaderEpoch")
_COMMITS: Final = ("OffsetCommit", "TxnOffsetCommit")

_FLAP_US: Final = US_PER_SECOND
_MARKERS_DELAYED_US: Final = US_PER_SECOND
_HELD_BACK_US: Final = 5 * US_PER_SECOND
_PREFERRED: Final = "preferred leader"
_NOT_CLEAN: Final = (_PREFERRED, "topic creation", METADATA_LOSS)
"""Why a leader is elected that replaces none which was lost."""
_UNFINISHED: Final = (ONGOING, *PREPARED)
_OFFSETS_PREFIX: Final = f"{CONSUMER_OFFSETS}-"


def _is_clean(event: events.LeaderElected) -> bool:
    return event.leader != NO_LEADER and not event.unclean and event.reason not in _NOT_CLEAN


def _held_back_at_end(run: ProbeMemory, at_us: int) -> int:
    """Count the transactions that no marker has ended."""
    return sum(at_us - opened_us >= _HELD_BACK_US for opened_us, _ in run.opened.values())


# Controllers


@probe()
def controller_changed(_: ProbeMemory, event: events.ControllerElected) -> bool:
    """A broker, or a voter of the quorum, became the active controller after virtual time 0.

    With ZooKeeper it reads everything anew and tells all brokers, and takes up what its
    predecessor left undone. In KRaft it has the metadata log, and gives every broker a whole
    session.
    """
    return event.at_us > 0


@probe()
def controller_reelected(run: ProbeMemory, event: events.ControllerElected) -> bool:
    """The controller that had resigned or died became controller again, and no other one in between.

    What it decided in its first term and did not get written, or committed, it does not know
    any more.
    """
    return event.at_us > 0 and run.controller == event.broker


@probe()
def controller_died(run: ProbeMemory, event: events.BrokerStopped) -> bool:
    """The broker of the controller died.

    Until its session ends, or another voter has been elected leader of the quorum, leaders that
    die are not replaced.
    """
    return event.broker in run.controllers()


@probe()
def controller_died_during_election(run: ProbeMemory, event: events.BrokerStopped) -> bool:
    """The controller died while a partition waited for a leader.

    Its successor has to find that out by itself and finish what was begun.
    """
    leaderless = {*run.brokers_down(), NO_LEADER}
    return event.broker in run.controllers() and any(each.leader in leaderless for each in run.partitions())


@probe()
def leader_died_without_controller(run: ProbeMemory, event: events.BrokerStopped) -> bool:
    """A leader died while there was no controller.

    No controller hears of it. With ZooKeeper the next one finds out only by comparing what is
    registered; in KRaft the leader's session has to end with it first.
    """
    return not run.controllers() and any(each.leader == event.broker for each in run.partitions())


@probe()
def controllers_overlapped(run: ProbeMemory, event: events.ControllerElected) -> bool:
    """A broker or voter became controller while another one, alive, still took itself for it.

    The former controller was paused or cut off. With ZooKeeper what it still sends has an older
    controller epoch; in KRaft nothing that it appends is committed any more.
    """
    return any(other != event.broker for other in run.controllers())


@probe()
def paused_controller_woke_deposed(run: ProbeMemory, event: events.BrokerResumed) -> bool:
    """A paused controller went on when another had been elected.

    It goes on where it stopped, perhaps in the middle of an election, before it hears of its
    successor.
    """
    controllers = run.controllers()
    return event.broker in controllers and len(controllers) > 1


@probe(of=(ZOOKEEPER,))
def controller_lost_its_session(run: ProbeMemory, event: events.SessionExpired) -> bool:
    """ZooKeeper ended the session of a controller that was alive.

    It resigns once it hears of that, and not before.
    """
    return zk.CONTROLLER in event.ephemerals and run.state.broker(event.broker).is_active_controller


@at_each(events.RequestRejected, api=_CONTROL, error=errors.STALE_CONTROLLER_EPOCH)
def stale_controller_refused() -> None:
    """A broker refused a control request of a former controller.

    The controller epoch did what it is there for (STALE_CONTROLLER_EPOCH).
    """


@at_each(events.RequestRejected, api=_CONTROL, error=errors.STALE_BROKER_EPOCH)
def stale_broker_epoch_refused() -> None:
    """A broker refused a control request meant for its earlier life.

    Obeyed, a delayed LeaderAndIsr or StopReplica would undo what the broker has learned since
    (KIP-380).
    """


# The quorum of KRaft, and what its controller refuses


@at_each(events.QuorumElectionUndecided)
def quorum_election_undecided() -> None:
    """A voter asked for votes, and the quorum neither elected nor rejected it in time.

    It is cut off from the majority, or too many voters are down. Without pre-votes (KIP-996) it
    raises the epoch each time that it tries.
    """


@at_each(events.QuorumMajorityLost, switch="check_quorum")
def quorum_majority_lost() -> None:
    """The leader of the quorum resigned, for no majority had fetched from it for too long.

    It was cut off from them while brokers may still have reached it. Before 3.7 (KAFKA-15489)
    it went on as controller, and nothing that it wrote was committed.
    """


@at_each(events.MetadataLogTruncated)
def uncommitted_metadata_truncated() -> None:
    """A node cut off metadata records that its leader does not have.

    A former controller had appended them, and they were not committed: what it decided there
    never took effect.
    """


@at_each(events.MetadataSnapshotFetched)
def metadata_snapshot_fetched() -> None:
    """A controller or a broker fetched a snapshot of the metadata.

    It was away for longer than the leader keeps the log, and goes on behind the snapshot
    (KIP-630).
    """


@at_each(events.MetadataLogStarted)
def metadata_log_start_raised() -> None:
    """A node deleted what its metadata log had below its oldest snapshot.

    A node that has not read that far needs a snapshot from now on.
    """


@at_each(events.MetadataLogLost)
def metadata_log_lost() -> None:
    """A voter lost its disk, with its metadata log and its vote.

    It may vote twice in an epoch, and counts again for a majority without what it had
    acknowledged.
    """


@at_each(events.MetadataLogLost, is_kept=False)
def metadata_majority_lost() -> None:
    """A voter lost its metadata log, and no majority was left that has all committed metadata.

    A controller may be elected that does not know what was decided.
    """


@at_each(
    events.ControllerRequestRefused, api="BrokerRegistration", error=errors.DUPLICATE_BROKER_REGISTRATION
)
def registration_refused() -> None:
    """The controller refused a broker's registration, for it took the broker's former life for alive.

    The broker asks again until that session is over (DUPLICATE_BROKER_REGISTRATION).
    """


@at_each(events.ControllerRequestRefused, api="BrokerHeartbeat", error=errors.STALE_BROKER_EPOCH)
def stale_heartbeat_refused() -> None:
    """The controller refused a heartbeat, for the broker is registered with another epoch.

    As a rule the heartbeat is late: the broker has registered again since, and what its former
    life asks for must not unfence it (STALE_BROKER_EPOCH).
    """


# Brokers and their sessions


@at_each(events.SessionExpired)
def session_expired() -> None:
    """A broker's session with the control plane ended: ZooKeeper expired it, or the controller of KRaft fenced the broker.

    For the rest of the cluster the broker is gone, whether it is or not. In KRaft it has missed
    its heartbeats for broker.session.timeout.ms.
    """


@probe()
def session_expired_alive(run: ProbeMemory, event: events.SessionExpired) -> bool:
    """The session of a broker ended that was running or paused.

    Until the broker hears of that, it acts as leader of partitions that others lead by now.
    """
    known = run.state.brokers.get(event.broker)
    is_gone = events.ends_registration(event.broker, event.ephemerals)
    return is_gone and (known is None or known.is_live)


@probe()
def bounced_broker(run: ProbeMemory, event: events.BrokerStarted) -> bool:
    """A broker was back before the control plane had noticed that it was gone.

    It has to wait for its former session. With ZooKeeper before KIP-380 a controller could miss
    that it had gone at all; in KRaft the registration of its former life is replaced.
    """
    return run.state.broker(event.broker).is_registered


@probe()
def two_brokers_down(run: ProbeMemory, event: events.BrokerStopped) -> bool:
    """A broker died while another one was down.

    With three replicas and min.insync.replicas=2, partitions on both can no longer take
    acks=all.
    """
    return any(other != event.broker for other in run.brokers_down())


@probe()
def all_replicas_down(run: ProbeMemory, event: events.BrokerStopped) -> int:
    """All replicas of a partition were down at once.

    Who leads next depends on who returns first and on who was in the ISR.
    """
    down = {*run.brokers_down(), event.broker}
    # A replica is known from its first leadership on.
    return sum(event.broker in each.replicas and each.replicas.keys() <= down for each in run.partitions())


@probe()
def last_isr_member_died(run: ProbeMemory, event: events.BrokerStopped) -> int:
    """The only member of an ISR died.

    Only it can lead again, unless an unclean election takes another replica. With eligible
    leader replicas (KIP-966) those may lead, too.
    """
    return sum(each.isr == (event.broker,) for each in run.partitions())


@probe()
def partition_offline(run: ProbeMemory, event: events.IsrReduced | events.LeaderElected) -> bool:
    """A partition was left without a leader.

    No member of its ISR was alive, and an unclean election was not allowed or not possible.
    """
    if event.leader != NO_LEADER:
        return False
    # In KRaft a partition without a leader has another leader epoch, as after an election.
    return isinstance(event, events.LeaderElected) or not any(
        run.state.broker(member).is_registered for member in event.isr
    )


# Elections


@probe()
def clean_election(_: ProbeMemory, event: events.LeaderElected) -> bool:
    """A member of the ISR was elected leader of a partition that had lost its leader.

    It has all that was committed; its high watermark and the other replicas may not show that
    yet.
    """
    return _is_clean(event)


@probe()
def unclean_election(_: ProbeMemory, event: events.LeaderElected) -> bool:
    """A replica outside the ISR was elected leader.

    What only the ISR had is lost, acknowledged or not.
    """
    return event.leader != NO_LEADER and event.unclean


@probe(of=(KRAFT,), switch="eligible_leader_replicas")
def elr_member_elected(run: ProbeMemory, event: events.LeaderElected) -> bool:
    """An eligible leader replica was elected, which was in no ISR.

    The ISR had become smaller than min.insync.replicas, and nothing has been committed since
    the replica left it (KIP-966).
    """
    state = run.state.partition(event.partition)
    # The change that completes a reassignment takes a replica into the ISR and has it lead.
    is_outside = event.leader not in state.isr and event.reason != REASSIGNMENT
    return _is_clean(event) and bool(state.elections) and is_outside


@at_each(events.LastKnownLeaderElected, of=(KRAFT,), switch="eligible_leader_replicas")
def last_known_leader_elected() -> None:
    """The last known leader was elected uncleanly, for neither ISR nor ELR had a member.

    All of them had stopped uncleanly. It is the best that is left, and may lack what was
    acknowledged (KIP-966).
    """


@probe()
def preferred_leader_elected(_: ProbeMemory, event: events.LeaderElected) -> bool:
    """The preferred replica was given the lead back.

    Leadership moves though nothing has failed; requests under way meet a leader that has
    resigned.
    """
    return event.leader != NO_LEADER and not event.unclean and event.reason == _PREFERRED


@probe()
def fast_leader_changes(run: ProbeMemory, event: events.BecameLeader) -> bool:
    """Another broker became leader before its predecessor had appended anything.

    Its epoch has no records to be known by: what leader epochs got wrong before KIP-279 needs
    this.
    """
    before, start_offset = run.last_leader.get(event.partition, (event.broker, 0))
    return not run.leads(event.broker, event.partition) and (
        before != event.broker and start_offset == event.start_offset
    )


@probe()
def leader_hw_behind(run: ProbeMemory, event: events.BecameLeader) -> bool:
    """A new leader began with a high watermark below one that its partition had reached.

    Its own is from its last fetch. Until followers have fetched, what is committed counts as
    not committed.
    """
    state = run.state.partition(event.partition).replica(event.broker)
    return state.role != LEADER and state.high_watermark < run.committed.get(event.partition, 0)


@probe()
def leader_restarted_in_its_epoch(run: ProbeMemory, event: events.BecameLeader) -> bool:
    """A broker that had died led again in the same leader epoch.

    Its absence went unnoticed. If its log became shorter meanwhile, followers cannot tell by
    the epoch.
    """
    led = run.led.get((event.broker, event.partition))
    return led is not None and led[0] == event.leader_epoch and led[1] != run.lives.get(event.broker, 0)


@probe()
def leader_missed_its_deposition(run: ProbeMemory, event: events.BecameLeader) -> bool:
    """A leader was elected again before it had heard that another one had led.

    It has been leader all along as far as it knows, and its followers may have truncated for
    the one in between.
    """
    life = run.lives.get(event.broker, 0)
    led_epoch, led_life = run.led.get((event.broker, event.partition), (-1, life))
    return (
        run.leads(event.broker, event.partition)
        and led_life == life
        and any(
            led_epoch < line.event.leader_epoch < event.leader_epoch
            and line.event.leader not in (event.broker, NO_LEADER)
            for line in run.state.partition(event.partition).elections
        )
    )


# Leaders that have been succeeded


@probe()
def zombie_leader_accepted_write(run: ProbeMemory, event: events.BatchAppended) -> bool:
    """A broker appended in a leader epoch that had been succeeded.

    The record will be truncated; with acks=1 it has been acknowledged.
    """
    return event.leader_epoch < run.elected_epoch.get(event.partition, 0)


@probe()
def zombie_leader_acknowledged(run: ProbeMemory, event: events.BatchAcknowledged) -> bool:
    """A broker acknowledged a record when another one had been elected.

    With acks=1 the record is lost; with acks=all every member of the new ISR has to have it.
    """
    return run.is_zombie(event.broker, event.partition)


@probe()
def zombie_leader_served_read(run: ProbeMemory, event: events.RecordsServed) -> bool:
    """A consumer read from a broker when another one had been elected.

    It must not see there what the new leader does not have.
    """
    return run.is_zombie(event.broker, event.partition) and not run.follows(event.broker, event.partition)


@probe()
def zombie_leader_changed_isr(run: ProbeMemory, event: events.IsrChanged) -> bool:
    """A leader took an ISR for written when it had been succeeded.

    ZooKeeper, or the controller, refuses a write of a former leader epoch, so only a mutant
    gets here, or a leader that hears late of a write from before.
    """
    return event.leader_epoch < run.elected_epoch.get(event.partition, 0)


@probe()
def paused_leader_woke_deposed(run: ProbeMemory, event: events.BrokerResumed) -> int:
    """A paused leader went on when another one had been elected.

    It handles waiting requests before it hears of the election, as if it still led.
    """
    return sum(
        replica.role == LEADER and replica.leader_epoch < run.elected_epoch.get(name, 0)
        for name, replica in run.replicas_on(event.broker)
    )


# The ISR


@at_each(events.IsrChanged, change="shrink")
def isr_shrank() -> None:
    """A leader took a follower out of the ISR.

    What is committed from now on that follower need not have.
    """


@probe()
def isr_shrank_to_one(_: ProbeMemory, event: events.IsrChanged | events.IsrReduced) -> bool:
    """An ISR was reduced to the leader alone.

    With min.insync.replicas=1, acks=all is no more than acks=1.
    """
    return len(event.isr) == 1


@at_each(events.IsrChanged, change="expand")
def isr_expanded() -> None:
    """A follower came back into an ISR.

    It may be elected from now on, so it has to have all that is committed.
    """


@probe()
def isr_flapped(run: ProbeMemory, event: events.IsrChanged) -> int:
    """A follower was back in an ISR within a second of being taken out.

    What was committed in between was committed without it.
    """
    if event.change == "shrink":
        return 0
    taken_out = (run.taken_out_us.get((member, event.partition)) for member in event.isr)
    return sum(at_us is not None and event.at_us - at_us <= _FLAP_US for at_us in taken_out)


@at_each(events.IsrRefused)
def isr_write_refused() -> None:
    """A leader's ISR was refused.

    A controller had changed the partition, or a member may not join: the leader may have been
    succeeded, or its session may be over.
    """


@at_each(
    events.ControllerRequestRefused,
    api="AlterPartition",
    error=errors.FENCED_LEADER_EPOCH,
    switch="isr_altered_by_controller",
)
def alter_partition_fenced() -> None:
    """A controller refused an AlterPartition of a former leader epoch.

    Another leader has been elected, and the one that asks has not heard of it
    (FENCED_LEADER_EPOCH, KIP-497).
    """


@at_each(
    events.ControllerRequestRefused,
    api="AlterPartition",
    error=errors.INVALID_UPDATE_VERSION,
    switch="isr_altered_by_controller",
)
def alter_partition_outdated() -> None:
    """A controller refused an AlterPartition that goes by a former state of the partition.

    The controller, or the leader itself, has changed the ISR since (INVALID_UPDATE_VERSION).
    """


@at_each(
    events.ControllerRequestRefused,
    api="AlterPartition",
    error=errors.STALE_BROKER_EPOCH,
    switch="isr_altered_by_controller",
)
def alter_partition_stale_broker_epoch() -> None:
    """A controller refused an AlterPartition of a broker's former life, or of a broker that it has taken for dead.

    Obeyed, a leader that is gone would say who is in sync (STALE_BROKER_EPOCH).
    """


@at_each(
    events.ControllerRequestRefused,
    api="AlterPartition",
    error=errors.INELIGIBLE_REPLICA,
    switch="isr_expansion_checks_registration",
)
def ineligible_replica_refused() -> None:
    """A controller refused to take a replica into an ISR.

    Its broker was fenced, was stopping, or had been started again since the leader counted its
    fetches (INELIGIBLE_REPLICA, KIP-841, KIP-903).
    """


@probe()
def isr_write_unheard(run: ProbeMemory, event: events.LeaderElected) -> bool:
    """Another leader was elected while the former one did not know of an ISR that it had written.

    Whom it had taken in may lead by now, and a leader that goes by the smaller ISR commits
    without it (KIP-497).
    """
    state = run.state.partition(event.partition)
    former = state.replicas.get(state.leader)
    if former is None or former.role != LEADER or event.leader == state.leader:
        return False
    return former.leader_epoch == state.leader_epoch and not set(state.isr) <= {state.leader, *former.isr}


@probe()
def member_restarted_while_joining(run: ProbeMemory, event: events.BrokerStarted) -> bool:
    """A broker was started again while its leader's request to take it into the ISR was under way.

    What the request goes by was a former life, and its records may be lost (KIP-903).
    """
    return any(event.broker in joining for joining in run.joining.values())


# Followers


@at_each(events.LogTruncated)
def truncated() -> None:
    """A follower cut its log back.

    What it had from a leader of the past, the present leader has not.
    """


@probe()
def truncated_below_hw(run: ProbeMemory, event: events.LogTruncated) -> bool:
    """A follower cut its log below a high watermark that its partition had reached.

    Committed records go here. If it is elected before it has fetched them again, they are lost.
    """
    return event.to_offset < run.committed.get(event.partition, 0)


@probe()
def truncated_below_read(run: ProbeMemory, event: events.LogTruncated) -> bool:
    """A replica cut off what a consumer had read from its partition.

    If no other replica has it, another record will take its offset.
    """
    return event.to_offset < run.read_end.get(event.partition, 0)


@probe()
def follower_ahead_of_leader(run: ProbeMemory, event: events.LogTruncated) -> bool:
    """A follower cut off what it had beyond the start of its leader's epoch.

    The leader was elected though another replica's log was longer.
    """
    led = run.last_leader.get(event.partition)
    return led is not None and event.from_offset > led[1]


@probe()
def follower_truncated_twice(run: ProbeMemory, event: events.LogTruncated) -> bool:
    """A follower cut its log twice before it followed.

    The first cut was not enough: the leader did not have its last epoch (KIP-279), or its log
    is shorter still.
    """
    return (event.broker, event.partition) in run.truncated


@probe()
def epoch_unknown_to_leader(_: ProbeMemory, event: events.EpochEndAnswered) -> bool:
    """A leader was asked for the end of an epoch that it did not have.

    It answers with an earlier epoch; before KIP-279 it could not say with which.
    """
    return event.end_offset != -1 and event.answer_epoch not in (event.leader_epoch, -1)


@at_each(events.EpochEndAnswered, end_offset=-1)
def epoch_undefined_answer() -> None:
    """A leader could not say where an epoch ends.

    The follower falls back to its high watermark, as before KIP-101.
    """


@at_each(events.OutdatedFetchAnswered)
def fetch_of_older_epoch_answered() -> None:
    """A follower got the answer to a fetch that it had sent in an older leader epoch, to the same leader.

    It still stood at the offset of that fetch. What the leader said then may not hold in the
    present epoch (KAFKA-18991).
    """


@at_each(events.FetcherFailed)
def follower_gave_up() -> None:
    """A follower gave up a partition: the leader's next batch did not begin where its log ended.

    The two logs have parted in a way that no epoch shows.
    """


@at_each(events.RequestRejected, api=_FETCHES, error=errors.FENCED_LEADER_EPOCH)
def fenced_by_leader_epoch() -> None:
    """A fetch was refused for its leader epoch.

    The follower or consumer had not heard of the last election (KIP-320).
    """


@at_each(events.RequestRejected, api=_FETCHES, error=errors.UNKNOWN_LEADER_EPOCH)
def leader_epoch_unknown() -> None:
    """A fetch knew of a newer leader epoch than the leader.

    The follower heard of the election first, and has to wait (UNKNOWN_LEADER_EPOCH).
    """


@at_each(events.RequestRejected, api="Fetch", error=errors.OFFSET_OUT_OF_RANGE)
def fetch_out_of_range() -> None:
    """A fetch asked for an offset behind the end of the log.

    The follower or consumer is ahead of the leader: something was truncated or lost.
    """


@at_each(events.FetchDelayed)
def fetch_waited_in_purgatory() -> None:
    """A fetch found nothing to read and waited.

    It answers with the high watermark of when it is woken, not of when it came.
    """


@at_each(events.FetchExpired)
def fetch_expired_in_purgatory() -> None:
    """A fetch waited until its time was over.

    Nothing was appended for so long; the high watermark travels with the empty answer.
    """


# Disks


@probe()
def hw_checkpoint_stale_at_restart(run: ProbeMemory, event: events.LogOpened) -> bool:
    """A replica started with a high watermark below the one that it had when it stopped.

    The checkpoint is written every 5 s. Before KIP-101 the log was cut to it.
    """
    return event.hw < run.state.partition(event.partition).replica(event.broker).high_watermark


@at_each(events.UnflushedLost)
def unflushed_lost() -> None:
    """Power loss took records that were not flushed.

    Only the other replicas have them now.
    """


@probe()
def committed_unflushed_lost(run: ProbeMemory, event: events.UnflushedLost) -> bool:
    """Power loss took records below a high watermark that their partition had reached.

    They are safe only as long as another replica keeps its own, unflushed as it may be.
    """
    return event.from_offset < run.committed.get(event.partition, 0)


@at_each(events.LogLost)
def log_lost_with_disk() -> None:
    """A broker lost its disk, and a log that had records.

    Only the other replicas have them now.
    """


@probe()
def last_isr_member_lost_its_disk(run: ProbeMemory, event: events.LogLost) -> bool:
    """The only member of an ISR lost its disk.

    No other replica can be elected, so it leads with an empty log when it comes back (KIP-966).
    """
    return run.state.partition(event.partition).isr == (event.broker,)


@at_each(events.CorruptBatchFetched)
def corrupt_batch_fetched() -> None:
    """A follower or a consumer got a batch with a wrong CRC.

    It asks again and stays where it is, until another replica leads.
    """


@at_each(events.CorruptionCut)
def recovery_met_corruption() -> None:
    """A broker that was killed found a batch with a wrong CRC, and cut its log there.

    The good batches behind the bad one go with it.
    """


@at_each(events.LogDirFailed)
def log_dir_failed() -> None:
    """A broker could not write to a log directory.

    With another one it goes on without the replicas there (KIP-112), else it ends.
    """


@at_each(events.RequestQueueFull)
def request_queue_full() -> None:
    """A broker's threads waited for its disk, and no more requests fitted into the queue.

    Its network threads wait as well then, with answers that are ready.
    """


@at_each(events.LogStartRaised)
def log_start_raised() -> None:
    """A log begins later than before: retention has deleted what was there.

    A consumer whose next record is gone goes where auto.offset.reset says.
    """


@at_each(events.DeleteRecordsAnswered, error=errors.NONE)
def records_deleted_by_request() -> None:
    """An administrator had records deleted.

    The logs begin in the middle of a batch, perhaps; what is at the offset and after it has to
    stay (KIP-107).
    """


@at_each(events.LogStartedAnew)
def log_started_anew() -> None:
    """A follower dropped its log, and went on where its leader's begins.

    It had been away for longer than its leader keeps records.
    """


@at_each(events.LogCleaned)
def log_compacted() -> None:
    """A replica compacted its log.

    Of each key the latest record is left; each replica does that at times of its own.
    """


@probe()
def compacted_above_hw(run: ProbeMemory, event: events.LogCleaned) -> bool:
    """A replica compacted what was not committed.

    If the later record of a key is cut off, the earlier one is gone already (KAFKA-13194, up to
    3.0).
    """
    return event.to_offset > run.committed.get(event.partition, 0)


@at_each(events.OffsetReset)
def offset_reset() -> None:
    """A consumer's position was out of range, and it went where auto.offset.reset says.

    With latest, its default, it skips what is still there.
    """


@at_each(events.ReadReplicaPreferred)
def read_replica_preferred() -> None:
    """A leader had a consumer read from a follower.

    What it reads there is committed, but the follower's high watermark is behind the leader's
    (KIP-392).
    """


@at_each(events.ReadReplicaCleared)
def read_replica_cleared() -> None:
    """A consumer went back from a follower to the leader.

    The two may have got differently far, so its position may be ahead of what it asks next.
    """


# Producers


@at_each(events.BatchDeduplicated)
def duplicate_batch_suppressed() -> None:
    """A leader recognised a batch that it had already.

    The first ack was lost. Without idempotence it would be there twice.
    """


@probe()
def batch_appended_again(run: ProbeMemory, event: events.BatchAppended) -> bool:
    """A batch that had been appended was appended once more.

    The first copy was truncated or lost, or the leader did not recognise it: then it is there
    twice.
    """
    return run.is_appended(event.values)


@at_each(
    events.RequestRejected,
    api="Produce",
    error=(errors.OUT_OF_ORDER_SEQUENCE_NUMBER, errors.UNKNOWN_PRODUCER_ID),
)
def sequence_refused() -> None:
    """A leader refused a batch for its sequence number.

    An earlier batch of the producer is missing, or its state is.
    """


@at_each(events.RequestRejected, api="Produce", error=errors.NOT_ENOUGH_REPLICAS)
def not_enough_replicas() -> None:
    """A leader refused a batch because its ISR was below min.insync.replicas.

    The promise of acks=all is kept by not taking the record.
    """


@at_each(events.RequestRejected, api="Produce", error=errors.NOT_ENOUGH_REPLICAS_AFTER_APPEND)
def not_enough_replicas_after_append() -> None:
    """The ISR fell below min.insync.replicas after the append.

    The producer hears of an error, yet the record is in the log and may stay.
    """


@at_each(events.RequestRejected, api="Produce", error=errors.REQUEST_TIMED_OUT)
def produce_timed_out() -> None:
    """A leader gave up waiting for its followers: an acks=all expired in the purgatory.

    The record is in the log all the same.
    """


@probe()
def ack_lost_after_append(run: ProbeMemory, event: events.SendFailed) -> bool:
    """An ack got lost on its way.

    The producer cannot know that the record is there, and sends it again.
    """
    return event.error == errors.NETWORK_EXCEPTION and run.is_acknowledged(event.values)


@probe()
def retried_after_append(run: ProbeMemory, event: events.SentAgain) -> bool:
    """A producer sent again what had been appended.

    Only a leader that remembers the batch keeps it from being there twice.
    """
    return run.is_appended(event.values)


@at_each(events.AppendedBatchGivenUp)
def appended_batch_given_up() -> None:
    """An idempotent producer gave a batch up that may be in the log, because of an error that it handled after delivery.timeout.ms.

    Others are on their way behind it. If it takes the batch for refused, they get sequence
    numbers that the leader has seen (KAFKA-14397).
    """


@probe()
def producer_retried_to_new_leader(run: ProbeMemory, event: events.SentAgain) -> bool:
    """A producer sent a batch again, to another leader than before.

    Whether the new leader knows the batch depends on what it has copied.
    """
    return run.failed_leader.get(event.values, event.leader) != event.leader


@at_each(events.RequestRejected, api="Produce", error=errors.NOT_LEADER_FOR_PARTITION)
def sent_to_former_leader() -> None:
    """A batch was refused by a broker that does not lead its partition.

    The producer's metadata was old (NOT_LEADER_FOR_PARTITION).
    """


@at_each(events.RequestRejected, api="Produce", error=errors.INVALID_PRODUCER_EPOCH)
def stale_producer_epoch_refused() -> None:
    """A leader refused a batch of a producer epoch that had been succeeded.

    A zombie still writes, or a batch came late: with transactions v2 each transaction has an
    epoch of its own (INVALID_PRODUCER_EPOCH, KIP-890).
    """


# Groups


@probe()
def group_rebalanced(run: ProbeMemory, event: events.GroupAssigned | events.TargetAssigned) -> bool:
    """A group got another assignment than before.

    Partitions went to other members, or to a member that came back under another id. Between
    two owners of a partition nothing may be skipped; what the first has processed and not
    committed the second processes again.
    """
    return run.assignments.get(event.group, event.assignments) != event.assignments


@probe()
def rebalance_interrupted(run: ProbeMemory, event: events.GroupStateChanged) -> bool:
    """A rebalance began before the members had the partitions of the one before.

    A generation passes in which no member reads; members that still wait for their partitions
    are sent to join again.
    """
    known = (event.broker, COMPLETING_REBALANCE)
    return event.state == PREPARING_REBALANCE and run.groups.get(event.group) == known


@at_each(events.MemberExpired)
def member_session_expired() -> None:
    """A coordinator removed a member that it had not heard of for session.timeout.ms.

    Its partitions go to others, whether the member is dead or not.
    """


@at_each(events.RequestRejected, api=GROUP_APIS, error=(errors.UNKNOWN_MEMBER_ID, errors.FENCED_MEMBER_EPOCH))
def member_fenced() -> None:
    """A coordinator refused a member that was in its group no more, or in another epoch.

    The member was taken for dead, and others may have its partitions: what it has processed
    since it cannot commit (UNKNOWN_MEMBER_ID, FENCED_MEMBER_EPOCH).
    """


@at_each(events.StaticMemberReplaced)
def static_member_took_over() -> None:
    """A static member took the place of its former life.

    It has the same group.instance.id, and gets the same partitions without a rebalance
    (KIP-345).
    """


@at_each(events.RequestRejected, api=GROUP_APIS, error=errors.FENCED_INSTANCE_ID)
def static_member_fenced() -> None:
    """A coordinator refused the former life of a static member.

    Two processes had one group.instance.id; the older one may not commit or read on
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
    """A coordinator refused a static member, for its former life may be alive.

    With KIP-848 the member cannot take the place over before the session is over: until then no
    member reads its partitions (UNRELEASED_INSTANCE_ID).
    """


@at_each(events.PartitionsRevoked, lost=True)
def partitions_lost() -> None:
    """A consumer gave partitions up that others may read already.

    It learned too late that it was out of its group, so that it could not commit first
    (onPartitionsLost).
    """


@probe(switch="consumer_group_protocol", protocol=CONSUMER_PROTOCOL)
def member_asked_to_revoke(_: ProbeMemory, event: events.MemberReconciled) -> bool:
    """A coordinator asked a member to give partitions up before others may have them.

    Until the member does, no other member reads them; one that stands still holds them up for
    as long as a rebalance may take (KIP-848).
    """
    return bool(event.revoking)


@probe()
def commit_during_rebalance(run: ProbeMemory, event: events.OffsetsCommitted) -> bool:
    """A commit was taken while its group prepared a rebalance.

    It counts: who gets the partition begins there.
    """
    _, state = run.groups.get(event.group, (event.broker, ""))
    return bool(event.member) and state == PREPARING_REBALANCE


@at_each(events.RequestRejected, api=_COMMITS, error=(errors.ILLEGAL_GENERATION, errors.STALE_MEMBER_EPOCH))
def commit_refused_by_generation() -> None:
    """A commit was refused for its generation, or its member epoch.

    The member has missed a rebalance. What it has processed since its last commit, the member
    that has the partition by now processes again (ILLEGAL_GENERATION, STALE_MEMBER_EPOCH).
    """


@at_each(
    events.RequestRejected, api=_COMMITS, error=(errors.NOT_COORDINATOR, errors.COORDINATOR_LOAD_IN_PROGRESS)
)
def commit_sent_to_former_coordinator() -> None:
    """A commit met a broker that does not coordinate the group, or is still loading it.

    Whether the commit is in the log or not the consumer cannot know; it looks for the
    coordinator and commits again.
    """


@probe()
def group_coordinator_moved(run: ProbeMemory, event: events.GroupStateChanged) -> bool:
    """Another broker went on with a group.

    It has the members and offsets that its replica of __consumer_offsets has: a commit that was
    not replicated is gone.
    """
    # A broker reports a group as dead, too, that another one coordinates by now.
    broker, _ = run.groups.get(event.group, (event.broker, ""))
    return event.state != DEAD and broker != event.broker


@probe(of=(CONSUMER_OFFSETS, TRANSACTION_STATE))
def coordinator_moved_with_pending_offsets(run: ProbeMemory, event: events.BecameLeader) -> bool:
    """A group's coordinator moved while a transaction had the group, or another one of the same partition of __consumer_offsets.

    The new one has to find in the log which offsets the transaction has there, and have them
    count once the marker comes (KIP-447).
    """
    before, _ = run.last_leader.get(event.partition, (event.broker, 0))
    has_moved = before != event.broker and not run.leads(event.broker, event.partition)
    # A transaction that is complete has no partitions any more.
    return (
        has_moved
        and event.partition.startswith(_OFFSETS_PREFIX)
        and any(event.partition in known.partitions for known in run.transactions.values())
    )


@at_each(events.OffsetsExpired)
def group_offsets_expired() -> None:
    """A group's offsets were forgotten, for they had not been committed for offsets.retention.minutes.

    Who reads next begins where auto.offset.reset says.
    """


# Transactions


@at_each(events.OpenTransactionFenced, is_timed_out=True)
def transaction_timed_out() -> None:
    """A coordinator aborted a transaction that was open for longer than transaction.timeout.ms.

    Its producer is fenced, and hears of it with its next request.
    """


@at_each(events.OpenTransactionFenced, is_timed_out=False)
def transaction_aborted_for_successor() -> None:
    """A coordinator aborted a transaction for a producer that began with the same transactional id.

    The former session, dead or not, can write no more; what it wrote in the open transaction
    does not count.
    """


@at_each(events.TransactionError, fatal=True, error=(errors.PRODUCER_FENCED, errors.INVALID_PRODUCER_EPOCH))
def producer_fenced() -> None:
    """A producer learned that another session has its transactional id, or that its transaction was ended without it.

    It is a zombie: it can do nothing more (PRODUCER_FENCED).
    """


@at_each(events.TransactionError, fatal=False)
def transaction_only_abortable() -> None:
    """A producer could only abort its transaction.

    A batch or an offset of it was refused; what stands in the logs already has to be marked as
    aborted.
    """


@probe()
def transaction_coordinator_moved(run: ProbeMemory, event: events.TransactionStateChanged) -> bool:
    """Another coordinator went on with a transaction that was open, or was being ended.

    It knows what its replica of __transaction_state says.
    """
    before = run.transactions.get(event.transactional_id)
    return before is not None and before.broker != event.broker and before.state in _UNFINISHED


@probe()
def markers_completed_by_successor(run: ProbeMemory, event: events.TransactionStateChanged) -> bool:
    """A coordinator completed a transaction of which another one had decided how it ends.

    It sends the markers again that may be written already.
    """
    before = run.prepared(event)
    return before is not None and before.broker != event.broker


@probe()
def markers_delayed(run: ProbeMemory, event: events.TransactionStateChanged) -> bool:
    """A transaction was completed a second or more after it was decided how it ends.

    Its producer may have been told by then, and read_committed consumers do not see it: leaders
    did not answer WriteTxnMarkers.
    """
    before = run.prepared(event)
    return before is not None and event.at_us - before.at_us >= _MARKERS_DELAYED_US


@probe()
def marker_without_transaction(run: ProbeMemory, event: events.TransactionMarkerWritten) -> bool:
    """A leader got the marker of a transaction that is not open in its log.

    The marker has been sent twice, or the transaction has nothing there.
    """
    return event.first_offset < 0 and run.leads(event.broker, event.partition)


@probe()
def late_transactional_batch(run: ProbeMemory, event: events.TransactionBegun) -> bool:
    """A leader took a batch for a transaction that its coordinator does not have open.

    It opens a transaction that no coordinator ends, unless with the next one of the producer
    (KIP-890).
    """
    known = run.producers.get(event.producer_id)
    # A new coordinator does not report what it has read in its log, and a former one may still report its own.
    if (
        known is None
        or known.at_us < run.coordinators_elected_us
        or not run.coordinates(known.broker)
        or not run.leads(event.broker, event.partition)
    ):
        return False
    return known.state != ONGOING or event.partition not in known.partitions


@probe(at_end=_held_back_at_end)
def lso_held_back(run: ProbeMemory, event: events.TransactionBegun | events.TransactionMarkerWritten) -> bool:
    """A transaction held back the last stable offset of a log for five seconds or more.

    Consumers with read_committed got nothing from behind its first record, whatever others had
    committed there. One that no marker ends holds it back until the run is over.
    """
    if isinstance(event, events.TransactionBegun) or not run.leads(event.broker, event.partition):
        return False
    opened = run.opened.get((event.partition, event.producer_id))
    return opened is not None and event.first_offset >= 0 and event.at_us - opened[0] >= _HELD_BACK_US


# Which of them runs reach


@derived
def in_reach(reach: ProbeReach) -> tuple[str, ...]:
    """Return the probes that runs can reach at all."""
    return tuple(name for name, each in PROBES.items() if each.obstacle(reach) is None)


def never_reached(reached: Iterable[Mapping[str, int]], probes: Iterable[str]) -> tuple[str, ...]:
    """Return those of *probes* that none of several runs reached, in their order."""
    counts = list(reached)
    return tuple(name for name in probes if not any(each.get(name) for each in counts))
