"""Rare states that a run counts when it reaches them, by name.

They are counted from what happened in the run (`harrow.campaigns.probes.probe_counter`). A campaign that
never reached what it is meant to test has shown nothing, and can say what it has to reach.
"""

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from harrow.campaigns.probes.reach import ProbeReach
from harrow.cluster_model import errors, events
from harrow.cluster_model.registry import Registry, derived
from harrow.cluster_model.release import history_of
from harrow.cluster_model.settings import CONSUMER_PROTOCOL
from harrow.cluster_model.topology import CONSUMER_OFFSETS, KRAFT, TRANSACTION_STATE, ZOOKEEPER
from harrow.faults.control_plane.features import API_CONTROL_PLANES, NAMES

_CONTROL: Final = ("LeaderAndIsr", "UpdateMetadata", "StopReplica")
_FETCHES: Final = ("Fetch", "OffsetsForLeaderEpoch")
_ALTER: Final = ("AlterPartition",)
_COMMITS: Final = ("OffsetCommit", "TxnOffsetCommit")
_GROUP_APIS: Final = (
    *("JoinGroup", "SyncGroup", "Heartbeat", "LeaveGroup", "ConsumerGroupHeartbeat", "OffsetFetch"),
    *_COMMITS,
)
_TOPIC_OF_API: Final = dict.fromkeys(_GROUP_APIS, CONSUMER_OFFSETS)
_MISSING: Final[Mapping[str, str]] = {
    CONSUMER_OFFSETS: "no client is a member of a group",
    TRANSACTION_STATE: "no client has transactions",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Probe:
    """A rare state. Its ``doc`` says what it is and, after an empty line, what it means.

    It is counted ``at`` events of these kinds, or when subscribers alone are told of them: at ``each`` of them, at those with one
    of the ``errors`` for one of the ``apis``, or as the probe counter says. Where it can be reached follows from that. What does
    not follow is said: ``only`` is a control plane, ``needs`` are internal topics, ``switch`` is a behaviour that has to be on, and
    ``protocol`` is the ``group.protocol`` that a client has to have.
    """

    doc: str
    at: tuple[type[events.Event], ...]
    each: bool = False
    apis: tuple[str, ...] = ()
    errors: tuple[str, ...] = ()
    only: str | None = None
    needs: tuple[str, ...] = ()
    switch: str | None = None
    protocol: str | None = None

    def control_planes(self) -> frozenset[str]:
        """Return the control planes with which it can be reached."""
        said = frozenset() if self.only is None else frozenset({self.only})
        bounds = (said, self._parts() & NAMES.keys(), _bound(self.apis, API_CONTROL_PLANES))
        return frozenset(NAMES).intersection(*filter(None, bounds))

    def topics(self) -> frozenset[str]:
        """Return the internal topics without which it is never reached."""
        return frozenset(self.needs) | (self._parts() & _MISSING.keys()) | _bound(self.apis, _TOPIC_OF_API)

    def obstacle(self, reach: ProbeReach) -> str | None:
        """Return why runs can never reach it; None if they can."""
        planes, missing = self.control_planes(), self.topics() - reach.topics
        if not planes & reach.control_planes:
            return f"it needs {' or '.join(NAMES[plane] for plane in NAMES if plane in planes)}"
        if self.switch is not None and reach.behaviours is not None and self.switch not in reach.behaviours:
            return f"it needs {self.switch}, which Kafka has since {_first_release(self.switch)}"
        why = next((_MISSING[topic] for topic in _MISSING if topic in missing), None)
        if why is None and self.protocol is not None and reach.group_protocols is not None:
            is_there = self.protocol in reach.group_protocols
            why = None if is_there else f"no client has group.protocol={self.protocol}"
        return why

    def _parts(self) -> frozenset[str]:
        return _bound(self.at, {kind: kind.of for kind in self.at})


def _first_release(switch: str) -> str:
    return next(release for release, value in history_of(switch) if value is True)


def _bound(alternatives: Iterable[Any], places: Mapping[Any, str | None]) -> frozenset[str]:
    """Return the only places of several alternatives; none where one of them is bound to no place."""
    found = [places.get(each) for each in alternatives]
    known = frozenset(place for place in found if place is not None)
    return frozenset() if None in found else known


PROBES: Final[Registry[str, Probe]] = Registry(
    {
        # Controllers
        "controller-changed": Probe(
            doc="A broker, or a voter of the quorum, became the active controller after virtual time 0.\n\n"
            "With ZooKeeper it reads everything anew and tells all brokers, and takes up what its predecessor left undone. In KRaft it has the metadata log, and gives every broker a whole session.",
            at=(events.ControllerElected,),
        ),
        "controller-reelected": Probe(
            doc="The controller that had resigned or died became controller again, and no other one in between.\n\n"
            "What it decided in its first term and did not get written, or committed, it does not know any more.",
            at=(events.ControllerElected,),
        ),
        "controller-died": Probe(
            doc="The broker of the controller died.\n\n"
            "Until its session ends, or another voter has been elected leader of the quorum, leaders that die are not replaced.",
            at=(events.BrokerStopped,),
        ),
        "controller-died-during-election": Probe(
            doc="The controller died while a partition waited for a leader.\n\n"
            "Its successor has to find that out by itself and finish what was begun.",
            at=(events.BrokerStopped,),
        ),
        "leader-died-without-controller": Probe(
            doc="A leader died while there was no controller.\n\n"
            "No controller hears of it. With ZooKeeper the next one finds out only by comparing what is registered; in KRaft the leader's session has to end with it first.",
            at=(events.BrokerStopped,),
        ),
        "controllers-overlapped": Probe(
            doc="A broker or voter became controller while another one, alive, still took itself for it.\n\n"
            "The former controller was paused or cut off. With ZooKeeper what it still sends has an older controller epoch; in KRaft nothing that it appends is committed any more.",
            at=(events.ControllerElected,),
        ),
        "paused-controller-woke-deposed": Probe(
            doc="A paused controller went on when another had been elected.\n\n"
            "It goes on where it stopped, perhaps in the middle of an election, before it hears of its successor.",
            at=(events.BrokerResumed,),
        ),
        "controller-lost-its-session": Probe(
            doc="ZooKeeper ended the session of a controller that was alive.\n\n"
            "It resigns once it hears of that, and not before.",
            at=(events.SessionExpired,),
            only=ZOOKEEPER,
        ),
        "stale-controller-refused": Probe(
            doc="A broker refused a control request of a former controller.\n\n"
            "The controller epoch did what it is there for (STALE_CONTROLLER_EPOCH).",
            at=(events.RequestRejected,),
            apis=_CONTROL,
            errors=(errors.STALE_CONTROLLER_EPOCH,),
        ),
        "stale-broker-epoch-refused": Probe(
            doc="A broker refused a control request meant for its earlier life.\n\n"
            "Obeyed, a delayed LeaderAndIsr or StopReplica would undo what the broker has learned since (KIP-380).",
            at=(events.RequestRejected,),
            apis=_CONTROL,
            errors=(errors.STALE_BROKER_EPOCH,),
        ),
        # The quorum of KRaft, and what its controller refuses
        "quorum-election-undecided": Probe(
            doc="A voter asked for votes, and the quorum neither elected nor rejected it in time.\n\n"
            "It is cut off from the majority, or too many voters are down. Without pre-votes (KIP-996) it raises the epoch each time that it tries.",
            at=(events.QuorumElectionUndecided,),
            each=True,
        ),
        "quorum-majority-lost": Probe(
            doc="The leader of the quorum resigned, for no majority had fetched from it for too long.\n\n"
            "It was cut off from them while brokers may still have reached it. Before 3.7 (KAFKA-15489) it went on as controller, and nothing that it wrote was committed.",
            at=(events.QuorumMajorityLost,),
            each=True,
            switch="check_quorum",
        ),
        "uncommitted-metadata-truncated": Probe(
            doc="A node cut off metadata records that its leader does not have.\n\n"
            "A former controller had appended them, and they were not committed: what it decided there never took effect.",
            at=(events.MetadataLogTruncated,),
            each=True,
        ),
        "metadata-snapshot-fetched": Probe(
            doc="A controller or a broker fetched a snapshot of the metadata.\n\n"
            "It was away for longer than the leader keeps the log, and goes on behind the snapshot (KIP-630).",
            at=(events.MetadataSnapshotFetched,),
            each=True,
        ),
        "metadata-log-start-raised": Probe(
            doc="A node deleted what its metadata log had below its oldest snapshot.\n\n"
            "A node that has not read that far needs a snapshot from now on.",
            at=(events.MetadataLogStarted,),
            each=True,
        ),
        "metadata-log-lost": Probe(
            doc="A voter lost its disk, with its metadata log and its vote.\n\n"
            "It may vote twice in an epoch, and counts again for a majority without what it had acknowledged.",
            at=(events.MetadataLogLost,),
            each=True,
        ),
        "metadata-majority-lost": Probe(
            doc="A voter lost its metadata log, and no majority was left that has all committed metadata.\n\n"
            "A controller may be elected that does not know what was decided.",
            at=(events.MetadataLogLost,),
        ),
        "registration-refused": Probe(
            doc="The controller refused a broker's registration, for it took the broker's former life for alive.\n\n"
            "The broker asks again until that session is over (DUPLICATE_BROKER_REGISTRATION).",
            at=(events.ControllerRequestRefused,),
            apis=("BrokerRegistration",),
            errors=(errors.DUPLICATE_BROKER_REGISTRATION,),
        ),
        "stale-heartbeat-refused": Probe(
            doc="The controller refused a heartbeat, for the broker is registered with another epoch.\n\n"
            "As a rule the heartbeat is late: the broker has registered again since, and what its former life asks for must not unfence it (STALE_BROKER_EPOCH).",
            at=(events.ControllerRequestRefused,),
            apis=("BrokerHeartbeat",),
            errors=(errors.STALE_BROKER_EPOCH,),
        ),
        # Brokers and their sessions
        "session-expired": Probe(
            doc="A broker's session with the control plane ended: ZooKeeper expired it, or the controller of KRaft fenced the broker.\n\n"
            "For the rest of the cluster the broker is gone, whether it is or not. In KRaft it has missed its heartbeats for broker.session.timeout.ms.",
            at=(events.SessionExpired,),
        ),
        "session-expired-alive": Probe(
            doc="The session of a broker ended that was running or paused.\n\n"
            "Until the broker hears of that, it acts as leader of partitions that others lead by now.",
            at=(events.SessionExpired,),
        ),
        "bounced-broker": Probe(
            doc="A broker was back before the control plane had noticed that it was gone.\n\n"
            "It has to wait for its former session. With ZooKeeper before KIP-380 a controller could miss that it had gone at all; in KRaft the registration of its former life is replaced.",
            at=(events.BrokerStarted,),
        ),
        "two-brokers-down": Probe(
            doc="A broker died while another one was down.\n\n"
            "With three replicas and min.insync.replicas=2, partitions on both can no longer take acks=all.",
            at=(events.BrokerStopped,),
        ),
        "all-replicas-down": Probe(
            doc="All replicas of a partition were down at once.\n\n"
            "Who leads next depends on who returns first and on who was in the ISR.",
            at=(events.BrokerStopped,),
        ),
        "last-isr-member-died": Probe(
            doc="The only member of an ISR died.\n\n"
            "Only it can lead again, unless an unclean election takes another replica. With eligible leader replicas (KIP-966) those may lead, too.",
            at=(events.BrokerStopped,),
        ),
        "partition-offline": Probe(
            doc="A partition was left without a leader.\n\n"
            "No member of its ISR was alive, and an unclean election was not allowed or not possible.",
            at=(
                events.IsrReduced,
                events.LeaderElected,
            ),
        ),
        # Elections
        "clean-election": Probe(
            doc="A member of the ISR was elected leader of a partition that had lost its leader.\n\n"
            "It has all that was committed; its high watermark and the other replicas may not show that yet.",
            at=(events.LeaderElected,),
        ),
        "unclean-election": Probe(
            doc="A replica outside the ISR was elected leader.\n\n"
            "What only the ISR had is lost, acknowledged or not.",
            at=(events.LeaderElected,),
        ),
        "elr-member-elected": Probe(
            doc="An eligible leader replica was elected, which was in no ISR.\n\n"
            "The ISR had become smaller than min.insync.replicas, and nothing has been committed since the replica left it (KIP-966).",
            at=(events.LeaderElected,),
            only=KRAFT,
            switch="eligible_leader_replicas",
        ),
        "last-known-leader-elected": Probe(
            doc="The last known leader was elected uncleanly, for neither ISR nor ELR had a member.\n\n"
            "All of them had stopped uncleanly. It is the best that is left, and may lack what was acknowledged (KIP-966).",
            at=(events.LastKnownLeaderElected,),
            each=True,
            only=KRAFT,
            switch="eligible_leader_replicas",
        ),
        "preferred-leader-elected": Probe(
            doc="The preferred replica was given the lead back.\n\n"
            "Leadership moves though nothing has failed; requests under way meet a leader that has resigned.",
            at=(events.LeaderElected,),
        ),
        "fast-leader-changes": Probe(
            doc="Another broker became leader before its predecessor had appended anything.\n\n"
            "Its epoch has no records to be known by: what leader epochs got wrong before KIP-279 needs this.",
            at=(events.BecameLeader,),
        ),
        "leader-hw-behind": Probe(
            doc="A new leader began with a high watermark below one that its partition had reached.\n\n"
            "Its own is from its last fetch. Until followers have fetched, what is committed counts as not committed.",
            at=(events.BecameLeader,),
        ),
        "leader-restarted-in-its-epoch": Probe(
            doc="A broker that had died led again in the same leader epoch.\n\n"
            "Its absence went unnoticed. If its log became shorter meanwhile, followers cannot tell by the epoch.",
            at=(events.BecameLeader,),
        ),
        "leader-missed-its-deposition": Probe(
            doc="A leader was elected again before it had heard that another one had led.\n\n"
            "It has been leader all along as far as it knows, and its followers may have truncated for the one in between.",
            at=(events.BecameLeader,),
        ),
        # Leaders that have been succeeded
        "zombie-leader-accepted-write": Probe(
            doc="A broker appended in a leader epoch that had been succeeded.\n\n"
            "The record will be truncated; with acks=1 it has been acknowledged.",
            at=(events.BatchAppended,),
        ),
        "zombie-leader-acknowledged": Probe(
            doc="A broker acknowledged a record when another one had been elected.\n\n"
            "With acks=1 the record is lost; with acks=all every member of the new ISR has to have it.",
            at=(events.BatchAcknowledged,),
        ),
        "zombie-leader-served-read": Probe(
            doc="A consumer read from a broker when another one had been elected.\n\n"
            "It must not see there what the new leader does not have.",
            at=(events.RecordsServed,),
        ),
        "zombie-leader-changed-isr": Probe(
            doc="A leader took an ISR for written when it had been succeeded.\n\n"
            "ZooKeeper, or the controller, refuses a write of a former leader epoch, so only a mutant gets here, or a leader that hears late of a write from before.",
            at=(events.IsrChanged,),
        ),
        "paused-leader-woke-deposed": Probe(
            doc="A paused leader went on when another one had been elected.\n\n"
            "It handles waiting requests before it hears of the election, as if it still led.",
            at=(events.BrokerResumed,),
        ),
        # The ISR
        "isr-shrank": Probe(
            doc="A leader took a follower out of the ISR.\n\n"
            "What is committed from now on that follower need not have.",
            at=(events.IsrChanged,),
        ),
        "isr-shrank-to-one": Probe(
            doc="An ISR was reduced to the leader alone.\n\n"
            "With min.insync.replicas=1, acks=all is no more than acks=1.",
            at=(
                events.IsrChanged,
                events.IsrReduced,
            ),
        ),
        "isr-expanded": Probe(
            doc="A follower came back into an ISR.\n\n"
            "It may be elected from now on, so it has to have all that is committed.",
            at=(events.IsrChanged,),
        ),
        "isr-flapped": Probe(
            doc="A follower was back in an ISR within a second of being taken out.\n\n"
            "What was committed in between was committed without it.",
            at=(events.IsrChanged,),
        ),
        "isr-write-refused": Probe(
            doc="A leader's ISR was refused.\n\n"
            "A controller had changed the partition, or a member may not join: the leader may have been succeeded, or its session may be over.",
            at=(events.IsrRefused,),
        ),
        "alter-partition-fenced": Probe(
            doc="A controller refused an AlterPartition of a former leader epoch.\n\n"
            "Another leader has been elected, and the one that asks has not heard of it (FENCED_LEADER_EPOCH, KIP-497).",
            at=(events.ControllerRequestRefused,),
            apis=_ALTER,
            errors=(errors.FENCED_LEADER_EPOCH,),
            switch="isr_altered_by_controller",
        ),
        "alter-partition-outdated": Probe(
            doc="A controller refused an AlterPartition that goes by a former state of the partition.\n\n"
            "The controller, or the leader itself, has changed the ISR since (INVALID_UPDATE_VERSION).",
            at=(events.ControllerRequestRefused,),
            apis=_ALTER,
            errors=(errors.INVALID_UPDATE_VERSION,),
            switch="isr_altered_by_controller",
        ),
        "alter-partition-stale-broker-epoch": Probe(
            doc="A controller refused an AlterPartition of a broker's former life, or of a broker that it has taken for dead.\n\n"
            "Obeyed, a leader that is gone would say who is in sync (STALE_BROKER_EPOCH).",
            at=(events.ControllerRequestRefused,),
            apis=_ALTER,
            errors=(errors.STALE_BROKER_EPOCH,),
            switch="isr_altered_by_controller",
        ),
        "ineligible-replica-refused": Probe(
            doc="A controller refused to take a replica into an ISR.\n\n"
            "Its broker was fenced, was stopping, or had been started again since the leader counted its fetches (INELIGIBLE_REPLICA, KIP-841, KIP-903).",
            at=(events.ControllerRequestRefused,),
            apis=_ALTER,
            errors=(errors.INELIGIBLE_REPLICA,),
            switch="isr_expansion_checks_registration",
        ),
        "isr-write-unheard": Probe(
            doc="Another leader was elected while the former one did not know of an ISR that it had written.\n\n"
            "Whom it had taken in may lead by now, and a leader that goes by the smaller ISR commits without it (KIP-497).",
            at=(events.LeaderElected,),
        ),
        "member-restarted-while-joining": Probe(
            doc="A broker was started again while its leader's request to take it into the ISR was under way.\n\n"
            "What the request goes by was a former life, and its records may be lost (KIP-903).",
            at=(events.BrokerStarted,),
        ),
        # Followers
        "truncated": Probe(
            doc="A follower cut its log back.\n\n"
            "What it had from a leader of the past, the present leader has not.",
            at=(events.LogTruncated,),
        ),
        "truncated-below-hw": Probe(
            doc="A follower cut its log below a high watermark that its partition had reached.\n\n"
            "Committed records go here. If it is elected before it has fetched them again, they are lost.",
            at=(events.LogTruncated,),
        ),
        "truncated-below-read": Probe(
            doc="A replica cut off what a consumer had read from its partition.\n\n"
            "If no other replica has it, another record will take its offset.",
            at=(events.LogTruncated,),
        ),
        "follower-ahead-of-leader": Probe(
            doc="A follower cut off what it had beyond the start of its leader's epoch.\n\n"
            "The leader was elected though another replica's log was longer.",
            at=(events.LogTruncated,),
        ),
        "follower-truncated-twice": Probe(
            doc="A follower cut its log twice before it followed.\n\n"
            "The first cut was not enough: the leader did not have its last epoch (KIP-279), or its log is shorter still.",
            at=(events.LogTruncated,),
        ),
        "epoch-unknown-to-leader": Probe(
            doc="A leader was asked for the end of an epoch that it did not have.\n\n"
            "It answers with an earlier epoch; before KIP-279 it could not say with which.",
            at=(events.EpochEndAnswered,),
        ),
        "epoch-undefined-answer": Probe(
            doc="A leader could not say where an epoch ends.\n\n"
            "The follower falls back to its high watermark, as before KIP-101.",
            at=(events.EpochEndAnswered,),
        ),
        "fetch-of-older-epoch-answered": Probe(
            doc="A follower got the answer to a fetch that it had sent in an older leader epoch, to the same leader.\n\n"
            "It still stood at the offset of that fetch. What the leader said then may not hold in the present epoch (KAFKA-18991).",
            at=(events.OutdatedFetchAnswered,),
            each=True,
        ),
        "follower-gave-up": Probe(
            doc="A follower gave up a partition: the leader's next batch did not begin where its log ended.\n\n"
            "The two logs have parted in a way that no epoch shows.",
            at=(events.FetcherFailed,),
            each=True,
        ),
        "fenced-by-leader-epoch": Probe(
            doc="A fetch was refused for its leader epoch.\n\n"
            "The follower or consumer had not heard of the last election (KIP-320).",
            at=(events.RequestRejected,),
            apis=_FETCHES,
            errors=(errors.FENCED_LEADER_EPOCH,),
        ),
        "leader-epoch-unknown": Probe(
            doc="A fetch knew of a newer leader epoch than the leader.\n\n"
            "The follower heard of the election first, and has to wait (UNKNOWN_LEADER_EPOCH).",
            at=(events.RequestRejected,),
            apis=_FETCHES,
            errors=(errors.UNKNOWN_LEADER_EPOCH,),
        ),
        "fetch-out-of-range": Probe(
            doc="A fetch asked for an offset behind the end of the log.\n\n"
            "The follower or consumer is ahead of the leader: something was truncated or lost.",
            at=(events.RequestRejected,),
            apis=("Fetch",),
            errors=(errors.OFFSET_OUT_OF_RANGE,),
        ),
        "fetch-waited-in-purgatory": Probe(
            doc="A fetch found nothing to read and waited.\n\n"
            "It answers with the high watermark of when it is woken, not of when it came.",
            at=(events.FetchDelayed,),
            each=True,
        ),
        "fetch-expired-in-purgatory": Probe(
            doc="A fetch waited until its time was over.\n\n"
            "Nothing was appended for so long; the high watermark travels with the empty answer.",
            at=(events.FetchExpired,),
            each=True,
        ),
        # Disks
        "hw-checkpoint-stale-at-restart": Probe(
            doc="A replica started with a high watermark below the one that it had when it stopped.\n\n"
            "The checkpoint is written every 5 s. Before KIP-101 the log was cut to it.",
            at=(events.LogOpened,),
        ),
        "unflushed-lost": Probe(
            doc="Power loss took records that were not flushed.\n\nOnly the other replicas have them now.",
            at=(events.UnflushedLost,),
        ),
        "committed-unflushed-lost": Probe(
            doc="Power loss took records below a high watermark that their partition had reached.\n\n"
            "They are safe only as long as another replica keeps its own, unflushed as it may be.",
            at=(events.UnflushedLost,),
        ),
        "log-lost-with-disk": Probe(
            doc="A broker lost its disk, and a log that had records.\n\n"
            "Only the other replicas have them now.",
            at=(events.LogLost,),
        ),
        "last-isr-member-lost-its-disk": Probe(
            doc="The only member of an ISR lost its disk.\n\n"
            "No other replica can be elected, so it leads with an empty log when it comes back (KIP-966).",
            at=(events.LogLost,),
        ),
        "corrupt-batch-fetched": Probe(
            doc="A follower or a consumer got a batch with a wrong CRC.\n\n"
            "It asks again and stays where it is, until another replica leads.",
            at=(events.CorruptBatchFetched,),
            each=True,
        ),
        "recovery-met-corruption": Probe(
            doc="A broker that was killed found a batch with a wrong CRC, and cut its log there.\n\n"
            "The good batches behind the bad one go with it.",
            at=(events.CorruptionCut,),
            each=True,
        ),
        "log-dir-failed": Probe(
            doc="A broker could not write to a log directory.\n\n"
            "With another one it goes on without the replicas there (KIP-112), else it ends.",
            at=(events.LogDirFailed,),
            each=True,
        ),
        "request-queue-full": Probe(
            doc="A broker's threads waited for its disk, and no more requests fitted into the queue.\n\n"
            "Its network threads wait as well then, with answers that are ready.",
            at=(events.RequestQueueFull,),
            each=True,
        ),
        "log-start-raised": Probe(
            doc="A log begins later than before: retention has deleted what was there.\n\n"
            "A consumer whose next record is gone goes where auto.offset.reset says.",
            at=(events.LogStartRaised,),
            each=True,
        ),
        "records-deleted-by-request": Probe(
            doc="An administrator had records deleted.\n\n"
            "The logs begin in the middle of a batch, perhaps; what is at the offset and after it has to stay (KIP-107).",
            at=(events.DeleteRecordsAnswered,),
        ),
        "log-started-anew": Probe(
            doc="A follower dropped its log, and went on where its leader's begins.\n\n"
            "It had been away for longer than its leader keeps records.",
            at=(events.LogStartedAnew,),
            each=True,
        ),
        "log-compacted": Probe(
            doc="A replica compacted its log.\n\n"
            "Of each key the latest record is left; each replica does that at times of its own.",
            at=(events.LogCleaned,),
        ),
        "compacted-above-hw": Probe(
            doc="A replica compacted what was not committed.\n\n"
            "If the later record of a key is cut off, the earlier one is gone already (KAFKA-13194, up to 3.0).",
            at=(events.LogCleaned,),
        ),
        "offset-reset": Probe(
            doc="A consumer's position was out of range, and it went where auto.offset.reset says.\n\n"
            "With latest, its default, it skips what is still there.",
            at=(events.OffsetReset,),
            each=True,
        ),
        "read-replica-preferred": Probe(
            doc="A leader had a consumer read from a follower.\n\n"
            "What it reads there is committed, but the follower's high watermark is behind the leader's (KIP-392).",
            at=(events.ReadReplicaPreferred,),
            each=True,
        ),
        "read-replica-cleared": Probe(
            doc="A consumer went back from a follower to the leader.\n\n"
            "The two may have got differently far, so its position may be ahead of what it asks next.",
            at=(events.ReadReplicaCleared,),
            each=True,
        ),
        # Producers
        "duplicate-batch-suppressed": Probe(
            doc="A leader recognised a batch that it had already.\n\n"
            "The first ack was lost. Without idempotence it would be there twice.",
            at=(events.BatchDeduplicated,),
            each=True,
        ),
        "batch-appended-again": Probe(
            doc="A batch that had been appended was appended once more.\n\n"
            "The first copy was truncated or lost, or the leader did not recognise it: then it is there twice.",
            at=(events.BatchAppended,),
        ),
        "sequence-refused": Probe(
            doc="A leader refused a batch for its sequence number.\n\n"
            "An earlier batch of the producer is missing, or its state is.",
            at=(events.RequestRejected,),
            apis=("Produce",),
            errors=(
                errors.OUT_OF_ORDER_SEQUENCE_NUMBER,
                errors.UNKNOWN_PRODUCER_ID,
            ),
        ),
        "not-enough-replicas": Probe(
            doc="A leader refused a batch because its ISR was below min.insync.replicas.\n\n"
            "The promise of acks=all is kept by not taking the record.",
            at=(events.RequestRejected,),
            apis=("Produce",),
            errors=(errors.NOT_ENOUGH_REPLICAS,),
        ),
        "not-enough-replicas-after-append": Probe(
            doc="The ISR fell below min.insync.replicas after the append.\n\n"
            "The producer hears of an error, yet the record is in the log and may stay.",
            at=(events.RequestRejected,),
            apis=("Produce",),
            errors=(errors.NOT_ENOUGH_REPLICAS_AFTER_APPEND,),
        ),
        "produce-timed-out": Probe(
            doc="A leader gave up waiting for its followers: an acks=all expired in the purgatory.\n\n"
            "The record is in the log all the same.",
            at=(events.RequestRejected,),
            apis=("Produce",),
            errors=(errors.REQUEST_TIMED_OUT,),
        ),
        "ack-lost-after-append": Probe(
            doc="An ack got lost on its way.\n\n"
            "The producer cannot know that the record is there, and sends it again.",
            at=(events.SendFailed,),
        ),
        "retried-after-append": Probe(
            doc="A producer sent again what had been appended.\n\n"
            "Only a leader that remembers the batch keeps it from being there twice.",
            at=(events.SentAgain,),
        ),
        "appended-batch-given-up": Probe(
            doc="An idempotent producer gave a batch up that may be in the log, because of an error that it handled after delivery.timeout.ms.\n\n"
            "Others are on their way behind it. If it takes the batch for refused, they get sequence numbers that the leader has seen (KAFKA-14397).",
            at=(events.AppendedBatchGivenUp,),
            each=True,
        ),
        "producer-retried-to-new-leader": Probe(
            doc="A producer sent a batch again, to another leader than before.\n\n"
            "Whether the new leader knows the batch depends on what it has copied.",
            at=(events.SentAgain,),
        ),
        "sent-to-former-leader": Probe(
            doc="A batch was refused by a broker that does not lead its partition.\n\n"
            "The producer's metadata was old (NOT_LEADER_FOR_PARTITION).",
            at=(events.RequestRejected,),
            apis=("Produce",),
            errors=(errors.NOT_LEADER_FOR_PARTITION,),
        ),
        "stale-producer-epoch-refused": Probe(
            doc="A leader refused a batch of a producer epoch that had been succeeded.\n\n"
            "A zombie still writes, or a batch came late: with transactions v2 each transaction has an epoch of its own (INVALID_PRODUCER_EPOCH, KIP-890).",
            at=(events.RequestRejected,),
            apis=("Produce",),
            errors=(errors.INVALID_PRODUCER_EPOCH,),
        ),
        # Groups
        "group-rebalanced": Probe(
            doc="A group got another assignment than before.\n\n"
            "Partitions went to other members, or to a member that came back under another id. Between two owners of a partition nothing may be skipped; what the first has processed and not committed the second processes again.",
            at=(events.GroupAssigned, events.TargetAssigned),
        ),
        "rebalance-interrupted": Probe(
            doc="A rebalance began before the members had the partitions of the one before.\n\n"
            "A generation passes in which no member reads; members that still wait for their partitions are sent to join again.",
            at=(events.GroupStateChanged,),
        ),
        "member-session-expired": Probe(
            doc="A coordinator removed a member that it had not heard of for session.timeout.ms.\n\n"
            "Its partitions go to others, whether the member is dead or not.",
            at=(events.MemberExpired,),
            each=True,
        ),
        "member-fenced": Probe(
            doc="A coordinator refused a member that was in its group no more, or in another epoch.\n\n"
            "The member was taken for dead, and others may have its partitions: what it has processed since it cannot commit (UNKNOWN_MEMBER_ID, FENCED_MEMBER_EPOCH).",
            at=(events.RequestRejected,),
            apis=_GROUP_APIS,
            errors=(errors.UNKNOWN_MEMBER_ID, errors.FENCED_MEMBER_EPOCH),
        ),
        "static-member-took-over": Probe(
            doc="A static member took the place of its former life.\n\n"
            "It has the same group.instance.id, and gets the same partitions without a rebalance (KIP-345).",
            at=(events.StaticMemberReplaced,),
            each=True,
        ),
        "static-member-fenced": Probe(
            doc="A coordinator refused the former life of a static member.\n\n"
            "Two processes had one group.instance.id; the older one may not commit or read on (FENCED_INSTANCE_ID).",
            at=(events.RequestRejected,),
            apis=_GROUP_APIS,
            errors=(errors.FENCED_INSTANCE_ID,),
        ),
        "static-member-unreleased": Probe(
            doc="A coordinator refused a static member, for its former life may be alive.\n\n"
            "With KIP-848 the member cannot take the place over before the session is over: until then no member reads its partitions (UNRELEASED_INSTANCE_ID).",
            at=(events.RequestRejected,),
            apis=_GROUP_APIS,
            errors=(errors.UNRELEASED_INSTANCE_ID,),
            switch="consumer_group_protocol",
            protocol=CONSUMER_PROTOCOL,
        ),
        "partitions-lost": Probe(
            doc="A consumer gave partitions up that others may read already.\n\n"
            "It learned too late that it was out of its group, so that it could not commit first (onPartitionsLost).",
            at=(events.PartitionsRevoked,),
        ),
        "member-asked-to-revoke": Probe(
            doc="A coordinator asked a member to give partitions up before others may have them.\n\n"
            "Until the member does, no other member reads them; one that stands still holds them up for as long as a rebalance may take (KIP-848).",
            at=(events.MemberReconciled,),
            switch="consumer_group_protocol",
            protocol=CONSUMER_PROTOCOL,
        ),
        "commit-during-rebalance": Probe(
            doc="A commit was taken while its group prepared a rebalance.\n\n"
            "It counts: who gets the partition begins there.",
            at=(events.OffsetsCommitted,),
        ),
        "commit-refused-by-generation": Probe(
            doc="A commit was refused for its generation, or its member epoch.\n\n"
            "The member has missed a rebalance. What it has processed since its last commit, the member that has the partition by now processes again (ILLEGAL_GENERATION, STALE_MEMBER_EPOCH).",
            at=(events.RequestRejected,),
            apis=_COMMITS,
            errors=(errors.ILLEGAL_GENERATION, errors.STALE_MEMBER_EPOCH),
        ),
        "commit-sent-to-former-coordinator": Probe(
            doc="A commit met a broker that does not coordinate the group, or is still loading it.\n\n"
            "Whether the commit is in the log or not the consumer cannot know; it looks for the coordinator and commits again.",
            at=(events.RequestRejected,),
            apis=_COMMITS,
            errors=(errors.NOT_COORDINATOR, errors.COORDINATOR_LOAD_IN_PROGRESS),
        ),
        "group-coordinator-moved": Probe(
            doc="Another broker went on with a group.\n\n"
            "It has the members and offsets that its replica of __consumer_offsets has: a commit that was not replicated is gone.",
            at=(events.GroupStateChanged,),
        ),
        "coordinator-moved-with-pending-offsets": Probe(
            doc="A group's coordinator moved while a transaction had the group, or another one of the same partition of __consumer_offsets.\n\n"
            "The new one has to find in the log which offsets the transaction has there, and have them count once the marker comes (KIP-447).",
            at=(events.BecameLeader,),
            needs=(CONSUMER_OFFSETS, TRANSACTION_STATE),
        ),
        "group-offsets-expired": Probe(
            doc="A group's offsets were forgotten, for they had not been committed for offsets.retention.minutes.\n\n"
            "Who reads next begins where auto.offset.reset says.",
            at=(events.OffsetsExpired,),
            each=True,
        ),
        # Transactions
        "transaction-timed-out": Probe(
            doc="A coordinator aborted a transaction that was open for longer than transaction.timeout.ms.\n\n"
            "Its producer is fenced, and hears of it with its next request.",
            at=(events.OpenTransactionFenced,),
        ),
        "transaction-aborted-for-successor": Probe(
            doc="A coordinator aborted a transaction for a producer that began with the same transactional id.\n\n"
            "The former session, dead or not, can write no more; what it wrote in the open transaction does not count.",
            at=(events.OpenTransactionFenced,),
        ),
        "producer-fenced": Probe(
            doc="A producer learned that another session has its transactional id, or that its transaction was ended without it.\n\n"
            "It is a zombie: it can do nothing more (PRODUCER_FENCED).",
            at=(events.TransactionError,),
        ),
        "transaction-only-abortable": Probe(
            doc="A producer could only abort its transaction.\n\n"
            "A batch or an offset of it was refused; what stands in the logs already has to be marked as aborted.",
            at=(events.TransactionError,),
        ),
        "transaction-coordinator-moved": Probe(
            doc="Another coordinator went on with a transaction that was open, or was being ended.\n\n"
            "It knows what its replica of __transaction_state says.",
            at=(events.TransactionStateChanged,),
        ),
        "markers-completed-by-successor": Probe(
            doc="A coordinator completed a transaction of which another one had decided how it ends.\n\n"
            "It sends the markers again that may be written already.",
            at=(events.TransactionStateChanged,),
        ),
        "markers-delayed": Probe(
            doc="A transaction was completed a second or more after it was decided how it ends.\n\n"
            "Its producer may have been told by then, and read_committed consumers do not see it: leaders did not answer WriteTxnMarkers.",
            at=(events.TransactionStateChanged,),
        ),
        "marker-without-transaction": Probe(
            doc="A leader got the marker of a transaction that is not open in its log.\n\n"
            "The marker has been sent twice, or the transaction has nothing there.",
            at=(events.TransactionMarkerWritten,),
        ),
        "late-transactional-batch": Probe(
            doc="A leader took a batch for a transaction that its coordinator does not have open.\n\n"
            "It opens a transaction that no coordinator ends, unless with the next one of the producer (KIP-890).",
            at=(events.TransactionBegun,),
        ),
        "lso-held-back": Probe(
            doc="A transaction held back the last stable offset of a log for five seconds or more.\n\n"
            "Consumers with read_committed got nothing from behind its first record, whatever others had committed there. One that no marker ends holds it back until the run is over.",
            at=(events.TransactionBegun, events.TransactionMarkerWritten),
        ),
    }
)
"""Every rare state, in the order in which they are listed."""


@derived
def in_reach(reach: ProbeReach) -> tuple[str, ...]:
    """Return the probes that runs can reach at all."""
    return tuple(name for name, probe in PROBES.items() if probe.obstacle(reach) is None)


def never_reached(reached: Collection[Mapping[str, int]], probes: Collection[str]) -> tuple[str, ...]:
    """Return those of *probes* that none of several runs reached, in their order."""
    return tuple(probe for probe in probes if not any(counts.get(probe) for counts in reached))
