"""Defines the links that several rules share: what happens to records, replicas and requests.

A kind of link that only one rule uses is defined in the file of that rule.
"""

from typing import Final

from harrow.checks.causes.facts import (
    ACKED,
    AHEAD,
    CHANGE_ASKED,
    CHANGE_PENDING,
    CONTROLLER,
    COPY,
    CUT_OFF,
    DAMAGED,
    DELETED,
    DISTURBED,
    DOWN,
    EPOCH,
    INTERRUPTED,
    ISR,
    LEADER,
    LOST,
    OUT_OF_SERVICE,
    PAUSED,
    RESENT,
    SEND_FAILED,
    STORED,
    UNASSIGNED,
    UNCLEAN,
)
from harrow.checks.causes.story import brokers, seconds, words
from harrow.checks.link import ACTOR, IN_HISTORY, NOTHING_HAPPENED, OWN_ACTION, RecordValue, link
from harrow.cluster_model import events
from harrow.cluster_model.log.unified_log import (
    HIGH_WATERMARK_TRUNCATION,
    LEADER_LOG_START,
    OUT_OF_RANGE_TRUNCATION,
)


def isr_text(isr: events.Brokers) -> str:
    """Format an ISR as Kafka logs it: ``[0, 2]``."""
    return str(list(isr))


# Records in logs


@link("not-appended", impersonal=True, needs_nothing_because=NOTHING_HAPPENED)
def not_appended() -> str:
    return "no broker appended it"


@link(
    "appended",
    events.BatchAppended,
    needs=(
        LEADER.of(then=ACTOR, unless=("is_deposed", "is_shared")),
        RESENT.of("value", where=("again", True)),
    ),
    makes=(
        COPY.of("value", ACTOR),
        STORED.of("value"),
        LEADER.of(then=ACTOR, unless=("is_deposed", "is_shared")),
    ),
)
def appended(
    *,
    value: RecordValue,
    offset: events.Offset,
    leader_epoch: events.Epoch,
    again: events.Flag = False,
    is_deposed: events.Flag = False,
    is_shared: events.Flag = False,
    producer_id: events.Number | None = None,
    producer_epoch: events.Epoch | None = None,
    sequence: events.Number | None = None,
) -> str:
    """A leader appended a record.

    ``is_deposed``: the leader's epoch had ended. ``is_shared``: another broker led in the same
    epoch.
    """
    ended = (
        ", which had ended" if is_deposed else ", in which another broker led as well" if is_shared else ""
    )
    of_epoch = "" if producer_epoch is None else f" with epoch {producer_epoch}"
    producer = "" if producer_id is None else f", producer id {producer_id}{of_epoch}, sequence {sequence}"
    return f"appended {value}{_again(again)} at offset {offset} (epoch {leader_epoch}{ended}{producer})"


@link("copied", events.BatchReplicated, needs=(STORED.of("value"),), makes=(COPY.of("value", ACTOR),))
def copied(
    *,
    value: RecordValue,
    offset: events.Offset,
    leader_epoch: events.Epoch | None = None,
    again: events.Flag = False,
) -> str:
    place = "" if leader_epoch is None else f" at offset {offset} (epoch {leader_epoch})"
    return f"copied {value}{_again(again)}{place}"


_LOST_WITH_MACHINE: Final = (
    COPY.of("value", ACTOR, then=False),
    DOWN.of(ACTOR),
    OUT_OF_SERVICE.of(ACTOR),
    CUT_OFF.of(ACTOR),
    DISTURBED.of(ACTOR),
    LOST.of(ACTOR),
)


@link("unflushed-lost", events.UnflushedLost, is_fault=True, makes=_LOST_WITH_MACHINE)
def unflushed_lost(*, leo: events.Offset, offset: events.Offset, value: RecordValue | None = None) -> str:
    return f"lost power, and all that it had not flushed, from offset {leo} on{_with(value)}"


@link(
    "torn",
    events.CorruptionCut,
    is_turn=True,
    needs=(DOWN.of(ACTOR),),
    makes=(COPY.of("value", ACTOR, then=False), DOWN.of(ACTOR, then=False), LOST.of(ACTOR)),
)
def torn(*, leo: events.Offset, offset: events.Offset, value: RecordValue | None = None) -> str:
    return f"found a torn batch and truncated its log to {leo}{_removing(value)}"


@link(
    "corruption-cut",
    events.CorruptionCut,
    is_turn=True,
    needs=(DAMAGED.of(ACTOR),),
    makes=(COPY.of("value", ACTOR, then=False), LOST.of(ACTOR)),
)
def corruption_cut(*, leo: events.Offset, offset: events.Offset, value: RecordValue | None = None) -> str:
    return f"found a batch with a bad CRC when it recovered, and truncated its log to {leo}{_removing(value)}"


@link(
    "retention-deleted",
    events.LogStartRaised,
    events.LogStartedAnew,
    needs=(COPY.of("value", ACTOR),),
    makes=(COPY.of("value", ACTOR, then=None), DELETED.of("value")),
)
def retention_deleted(
    *, log_start: events.Offset, reason: events.Text, offset: events.Offset, value: RecordValue | None = None
) -> str:
    """A replica deleted the start of its log, by its own settings or because its leader had."""
    if reason == LEADER_LOG_START:
        return f"deleted its log below offset {log_start}, where its leader's log begins{_with(value)}"
    if words(reason) == "log-start-offset-checkpoint":
        return f"began its log at offset {log_start}, from its {words(reason)}{_with(value)}"
    return f"deleted its log below offset {log_start} ({words(reason)}){_with(value)}"


@link(
    "compacted",
    events.LogCleaned,
    needs=(COPY.of("value", ACTOR), COPY.of("later", ACTOR)),
    makes=(COPY.of("value", ACTOR, then=None), DELETED.of("value")),
)
def compacted(
    *,
    value: RecordValue,
    offset: events.Offset,
    later: RecordValue | None = None,
    later_offset: events.Offset = -1,
) -> str:
    """A replica compacted its log and removed a record.

    ``later`` is the later record of the same key.
    """
    if later is None:
        return f"compacted its log, without {value} of offset {offset}"
    return f"compacted its log, without {value} of offset {offset}: {later} at offset {later_offset} has the same key"


@link(
    "begun-earlier",
    events.LogStartReverted,
    needs=(STORED.of("value"), DOWN.of(ACTOR)),
    makes=(COPY.of("value", ACTOR),),
)
def begun_earlier(*, log_start: events.Offset, offset: events.Offset, value: RecordValue) -> str:
    return f"began its log at offset {log_start} again, with {value}: no checkpoint had the later start"


@link("damaged", events.BatchDamaged, is_fault=True, makes=(DAMAGED.of(ACTOR), LOST.of(ACTOR)))
def damaged(*, value: RecordValue, offset: events.Offset) -> str:
    return f"has damaged bytes in {value}, at offset {offset}"


@link("disk-lost", events.LogLost, is_fault=True, makes=_LOST_WITH_MACHINE)
def disk_lost(*, leo: events.Offset, offset: events.Offset, value: RecordValue | None = None) -> str:
    return f"lost its disk, and its log{_with(value)}"


@link(
    "log-deleted",
    events.LogDeleted,
    is_turn=True,
    needs=(UNASSIGNED.of(ACTOR),),
    makes=(COPY.of("value", ACTOR, then=False), OUT_OF_SERVICE.of(ACTOR)),
)
def log_deleted(*, leo: events.Offset, offset: events.Offset, value: RecordValue | None = None) -> str:
    return f"deleted its log, because it is no longer a replica{_with(value)}"


@link(
    "truncated",
    events.LogTruncated,
    is_turn=True,
    needs=(LEADER.of(then="asked"),),
    makes=(COPY.of("value", ACTOR, then=False),),
)
def truncated(
    *,
    leo: events.Offset,
    reason: events.Text,
    offset: events.Offset,
    value: RecordValue | None = None,
    asked: events.BrokerId | None = None,
    asked_epoch: events.Epoch | None = None,
    answer: events.Offset | None = None,
) -> str:
    """A follower truncated its log.

    ``asked`` is the leader that told the follower where the epoch ``asked_epoch`` ends: at
    ``answer``.
    """
    how = f"truncated to {leo} ({words(reason)})"
    if value is None:
        return how
    if reason == HIGH_WATERMARK_TRUNCATION:
        how = f"truncated to its own high watermark, {leo}"
    elif reason == OUT_OF_RANGE_TRUNCATION:
        how = f"truncated to {leo}, where its leader's log ends"
    elif asked is not None:
        how = f"asked broker {asked} where epoch {asked_epoch} ends, got {answer}, and truncated to {leo}"
    return f"{how}, removing {value}"


@link(
    "overwritten",
    events.BatchAppended,
    events.BatchReplicated,
    event="gone",
    is_turn=True,
    needs=(COPY.of("value", ACTOR),),
    makes=(COPY.of("value", ACTOR, then=False),),
)
def overwritten(
    *, values: events.Values, base_offset: events.Offset, value: RecordValue, offset: events.Offset
) -> str:
    return f"appended {', '.join(values)} at offset {base_offset}, replacing {value}"


@link(
    "gone",
    events.LogTruncated,
    events.BatchAppended,
    events.BatchReplicated,
    events.LogOpened,
    is_turn=True,
    needs=(COPY.of("value", ACTOR),),
    makes=(COPY.of("value", ACTOR, then=False),),
)
def gone(*, value: RecordValue, offset: events.Offset) -> str:
    return f"no longer had {value}"


@link(
    "cut-back",
    events.LogTruncated,
    events.BatchAppended,
    events.BatchReplicated,
    events.LogOpened,
    event="truncated",
    is_turn=True,
    needs_nothing_because="the trace does not show why the log was truncated",
)
def cut_back(*, offset: events.Offset) -> str:
    return f"truncated its log to {offset}"


@link(
    "recovered",
    events.LogOpened,
    needs=(COPY.of("value", ACTOR), DOWN.of(ACTOR)),
    makes=(DOWN.of(ACTOR, then=False), CUT_OFF.of(ACTOR, then=False)),
)
def recovered(*, value: RecordValue, leo: events.Offset, hw: events.Offset) -> str:
    return f"came back with {value}: LEO {leo}, high watermark {hw}"


@link("kept", needs=(COPY.of("value", ACTOR),))
def kept(*, value: RecordValue) -> str:
    return f"still has {value}, which the leader lacks"


@link(
    "not-truncated",
    events.BecameFollower,
    is_turn=True,
    needs=(COPY.of("value", ACTOR), LEADER.of(then="leader")),
)
def not_truncated(
    *, leader: events.BrokerId, value: RecordValue, offset: events.Offset, hw: events.Offset | None = None
) -> str:
    """A follower kept a record that its new leader lacks.

    ``hw``: the follower's high watermark, if it was above the record.
    """
    above = "" if hw is None else f"with a high watermark of {hw} "
    return f"followed broker {leader} and {above}truncated nothing: it still has {value}"


# Leaders and controllers


_ELECTION_NEEDS: Final = (
    COPY.of("value", ACTOR, then="has_it"),
    ISR.of(then="isr"),
    OUT_OF_SERVICE.of("former"),
)
_ELECTION_MAKES: Final = (
    COPY.of("value", ACTOR, then="has_it"),
    ISR.of(then=None),
    LEADER.of(then=ACTOR),
    EPOCH.of("leader_epoch"),
    OUT_OF_SERVICE.of(ACTOR, then=False),
)


@link("elected", events.LeaderElected, is_turn=True, needs=_ELECTION_NEEDS, makes=_ELECTION_MAKES)
def elected(
    *,
    leader_epoch: events.Epoch,
    isr: events.Brokers | None = None,
    value: RecordValue | None = None,
    has_it: events.Flag = False,
    former: events.BrokerId | None = None,
    is_preferred: events.Flag = False,
) -> str:
    """A replica of the ISR was elected, with or without a record.

    ``former`` led before the replica, None if the controller returned the leadership to the
    preferred replica.
    """
    among = "" if isr is None else f" from the ISR {isr_text(isr)}"
    how = " as the preferred leader" if is_preferred else ""
    return f"was elected{how}{among}{_having(value, has_it=has_it)} (epoch {leader_epoch})"


@link(
    "elected-uncleanly",
    events.LeaderElected,
    is_turn=True,
    needs=_ELECTION_NEEDS,
    makes=(*_ELECTION_MAKES, UNCLEAN.of(ACTOR)),
)
def elected_uncleanly(
    *,
    leader_epoch: events.Epoch,
    isr: events.Brokers | None = None,
    value: RecordValue | None = None,
    has_it: events.Flag = False,
    former: events.BrokerId | None = None,
    is_preferred: events.Flag = False,
) -> str:
    """A replica was elected that may lack committed records.

    ``isr``: the ISR, if the replica was not a member. ``former`` led before the replica, None if
    the controller returned the leadership to the preferred replica.
    """
    outside = "" if isr is None else f", from outside the ISR {isr_text(isr)}"
    how = " as the preferred leader" if is_preferred else ""
    return f"was elected uncleanly{how}{outside}{_having(value, has_it=has_it)} (epoch {leader_epoch})"


@link(
    "chosen",
    events.LeaderElected,
    event="elected",
    role="as controller",
    about="leader",
    is_turn=True,
    needs=(OUT_OF_SERVICE.of("former"),),
    makes=(EPOCH.of("leader_epoch"), OUT_OF_SERVICE.of("leader", then=False)),
)
def chosen(
    *,
    leader: events.BrokerId,
    leader_epoch: events.Epoch,
    former: events.BrokerId | None = None,
    is_preferred: events.Flag = False,
) -> str:
    """A controller elected a leader, or found none.

    ``former`` led before, unless the preferred replica was elected.
    """
    return f"elected {'no leader' if leader < 0 else f'broker {leader}'} (epoch {leader_epoch})"


@link(
    "became-leader",
    events.BecameLeader,
    is_turn=True,
    needs=(EPOCH.of("leader_epoch"),),
    makes=(LEADER.of(then=ACTOR, unless=("is_second",)), LEADER.of(then=None, where=("is_second", True))),
)
def became_leader(
    *, leader_epoch: events.Epoch, offset: events.Offset, is_second: events.Flag = False
) -> str:
    """A broker became leader.

    ``is_second``: another broker had led in the same epoch, so two may lead at once.
    """
    also = ", in which another broker had led" if is_second else ""
    return f"became leader in epoch {leader_epoch}{also}"


@link("deposed-leader", events.BecameLeader, is_turn=True, needs=(EPOCH.of("newer_epoch"),))
def deposed_leader(*, leader_epoch: events.Epoch, newer_epoch: events.Epoch) -> str:
    return f"led again, in epoch {leader_epoch}, although epoch {newer_epoch} had begun"


@link("deposed-controller", is_turn=True, needs=(CONTROLLER.of("successor"),))
def deposed_controller(
    *, leader: events.BrokerId, leader_epoch: events.Epoch, successor: events.BrokerId
) -> str:
    return f"announced its election of broker {leader} (epoch {leader_epoch})"


@link(
    "controller-elected",
    events.ControllerElected,
    is_turn=True,
    needs=(CUT_OFF.of("former"),),
    makes=(CONTROLLER.of(ACTOR),),
)
def controller_elected(*, controller_epoch: events.Epoch, former: events.BrokerId | None = None) -> str:
    """A broker was elected controller; ``former`` was the controller before."""
    return f"was elected controller (controller epoch {controller_epoch})"


@link(
    "isr-shrank",
    events.IsrChanged,
    events.IsrWritten,
    events.IsrReduced,
    events.LeaderElected,
    events.BecameLeader,
    impersonal=True,
    is_turn=True,
    needs=(ISR.of(then="before"), DISTURBED.of("left")),
    makes=(ISR.of(then="isr"),),
)
def isr_shrank(
    *, before: events.Brokers, isr: events.Brokers, left: events.Brokers, died: events.Flag = False
) -> str:
    """The replicas in ``left`` left an ISR, because they had fallen behind or died."""
    why = "died" if died else "fallen behind"
    return f"the ISR shrank from {isr_text(before)} to {isr_text(isr)}: {brokers(left)} had {why}"


@link(
    "isr-asked",
    events.IsrPending,
    is_turn=True,
    needs=(LEADER.of(then=ACTOR, unless=("is_shared",)),),
    makes=(CHANGE_ASKED.of(ACTOR), CHANGE_PENDING.of(ACTOR)),
)
def isr_asked(*, isr: events.Brokers, is_shared: events.Flag = False) -> str:
    """A leader requested another member for its ISR (KIP-497).

    ``is_shared``: another broker led in the leader's epoch too.
    """
    return f"requested the ISR {isr_text(isr)}, which counts from now on"


@link(
    "isr-forgotten",
    events.IsrForgotten,
    is_turn=True,
    needs=(CHANGE_PENDING.of(ACTOR),),
    makes=(CHANGE_PENDING.of(ACTOR, then=False),),
)
def isr_forgotten(*, asked: events.Brokers, isr: events.Brokers) -> str:
    return f"forgot its request for the ISR {isr_text(asked)} when it heard again of {isr_text(isr)}"


@link("committed-alone", events.HighWatermarkSet, needs=(CHANGE_PENDING.of(ACTOR, then=False),))
def committed_alone(*, offset: events.Offset, hw: events.Offset, without: events.Brokers) -> str:
    return f"committed offset {offset} (high watermark {hw}) without waiting for {brokers(without)}"


@link(
    "isr-written",
    events.IsrWritten,
    is_turn=True,
    needs=(CHANGE_ASKED.of(ACTOR, where=("was_asked", True)),),
    makes=(ISR.of(then="isr"), CHANGE_ASKED.of(ACTOR, then=False)),
)
def isr_written(*, isr: events.Brokers, was_asked: events.Flag = False) -> str:
    """The control plane adopted a leader's ISR.

    ``was_asked``: the leader had requested this ISR, which is larger than the one before.
    """
    return f"had the ISR {isr_text(isr)} written"


@link("isr-refused", events.IsrRefused, is_turn=True, needs=(ISR.of(then="written"),))
def isr_refused(*, isr: events.Brokers, written: events.Brokers | None = None) -> str:
    """The control plane refused a leader's ISR and kept its own, ``written``."""
    also = ", although that was written" if written is not None and set(written) == set(isr) else ""
    return f"was refused the ISR {isr_text(isr)}{also}"


@link(
    "isr-reduced",
    events.IsrReduced,
    role="as controller",
    is_turn=True,
    needs=(ISR.of(then="before"), OUT_OF_SERVICE.of("gone")),
    makes=(ISR.of(then="isr"),),
)
def isr_reduced(*, before: events.Brokers | None = None, isr: events.Brokers, gone: events.Brokers) -> str:
    return f"removed {brokers(gone)} from the ISR, leaving {isr_text(isr)}"


@link(
    "left-leaderless",
    events.LeaderElected,
    role="as controller",
    is_turn=True,
    needs=(ISR.of(then="before"), OUT_OF_SERVICE.of("former")),
    makes=(ISR.of(then="isr"),),
)
def left_leaderless(
    *,
    before: events.Brokers | None = None,
    isr: events.Brokers,
    former: events.BrokerId | None = None,
) -> str:
    return f"found no leader, and left the ISR {isr_text(isr)}"


@link(
    "unfenced-fetch",
    events.FollowerFetched,
    needs=(EPOCH.of("leader_epoch"), COPY.of("value", "follower", then="has_it")),
)
def unfenced_fetch(
    *,
    follower: events.BrokerId,
    offset: events.Offset,
    value: RecordValue,
    leader_epoch: events.Epoch,
    fetch_epoch: events.Epoch,
    has_it: events.Flag = False,
) -> str:
    """A leader accepted a fetch of another epoch, from a follower with a different log.

    ``has_it``: the follower has the record.
    """
    taken = "and left it there" if has_it else "and took it as having"
    return (
        f"accepted a fetch of broker {follower} at offset {offset}, of epoch {fetch_epoch} instead of {leader_epoch}, "
        f"{taken} {value}: fetches carry no leader epoch"
    )


@link("took-outdated", events.OutdatedFetchAnswered, needs=(EPOCH.of("leader_epoch"),))
def took_outdated(*, asked: events.BrokerId, fetch_epoch: events.Epoch, leader_epoch: events.Epoch) -> str:
    return f"used broker {asked}'s answer to a fetch of epoch {fetch_epoch}, although epoch {leader_epoch} had begun"


@link("joined-early", events.IsrChanged, about="follower", is_turn=True, needs=(EPOCH.of("leader_epoch"),))
def joined_early(
    *, follower: events.BrokerId, leo: events.Offset, leader_epoch: events.Epoch, start_offset: events.Offset
) -> str:
    return (
        f"let broker {follower} into the ISR with LEO {leo}, before it had reached offset {start_offset}, "
        f"where epoch {leader_epoch} begins"
    )


# Processes


_STOPPED: Final = (DOWN.of(ACTOR), OUT_OF_SERVICE.of(ACTOR), CUT_OFF.of(ACTOR), DISTURBED.of(ACTOR))


@link("stopped", events.BrokerStopped, is_fault=True, makes=_STOPPED)
def stopped(
    *,
    cause: events.Text,
    value: RecordValue | None = None,
    before_fetching: events.Brokers = (),
    is_only: events.Flag = False,
    is_last: events.Flag = False,
) -> str:
    """A broker stopped.

    If it had a record: ``is_only``: no other broker had ever had the record. ``is_last``: the
    others had lost it; those in ``before_fetching`` had not fetched it again.
    """
    how = {events.POWER_LOSS: "lost power", events.SHUT_DOWN: "was stopped"}.get(cause, "crashed")
    if before_fetching:
        return f"{how} before {brokers(before_fetching)} had fetched {value} again"
    if is_only:
        return f"{how}, the only one with {value}"
    return f"{how}, the last one with {value}" if is_last else how


@link("halted", events.BrokerStopped, event="stopped", needs=(AHEAD.of(ACTOR),), makes=_STOPPED)
def halted() -> str:
    return "stopped itself"


@link(
    "truncation-refused",
    events.TruncationRefused,
    needs=(LEADER.of(then="leader"),),
    makes=(AHEAD.of(ACTOR),),
)
def truncation_refused(*, leader: events.BrokerId, leo: events.Offset, end_offset: events.Offset) -> str:
    return f"has offsets up to {leo} where its leader, broker {leader}, ends at {end_offset}, and may not truncate"


@link("stopping", events.BrokerStopping, is_fault=True, makes=(OUT_OF_SERVICE.of(ACTOR),))
def stopping() -> str:
    return "was asked to stop"


_PAUSED: Final = (PAUSED.of(ACTOR), CUT_OFF.of(ACTOR), DISTURBED.of(ACTOR))


@link("paused", events.BrokerPaused, is_fault=True, makes=_PAUSED)
def paused() -> str:
    return "was paused"


@link(
    "session-expired",
    events.SessionExpired,
    is_turn=True,
    needs=(CUT_OFF.of(ACTOR),),
    makes=(OUT_OF_SERVICE.of(ACTOR),),
)
def session_expired(*, is_fenced: events.Flag = False) -> str:
    """The control plane gave up on a broker; ``is_fenced``: it did so by fencing, in KRaft."""
    return "was fenced by the controller" if is_fenced else "lost its session"


@link("dir-failed", events.LogDirFailed, is_fault=True, makes=(OUT_OF_SERVICE.of(ACTOR), DOWN.of(ACTOR)))
def dir_failed(*, log_dir: events.Number) -> str:
    return f"could no longer write to its log directory {log_dir}"


@link(
    "fault-struck",
    events.FaultStruck,
    event="fault",
    impersonal=True,
    is_fault=True,
    makes=(
        CUT_OFF.of("struck"),
        OUT_OF_SERVICE.of("ends"),
        DISTURBED.of("hindered"),
        INTERRUPTED.of("stalled"),
    ),
)
def fault_struck(
    *,
    fault: events.Text,
    details: events.Pairs = (),
    struck: events.Brokers = (),
    ends: events.Brokers = (),
    hindered: events.Brokers = (),
    stalled: events.Texts = (),
) -> str:
    """A fault struck.

    ``struck`` are the brokers that the fault cut off from the control plane, and ``ends`` the
    leaders that it deposed. ``hindered`` are the brokers that it kept from answering, or from
    fetching the records for which an answer waits. ``stalled`` are the clients that it kept from
    their work.
    """
    text = ", ".join(f"{name} {_detail(value)}" for name, value in details if value is not None)
    return f"the fault {fault} struck{f' ({text})' if text else ''}"


def _detail(value: object) -> str:
    return " and ".join(map(str, value)) if isinstance(value, list | tuple) else str(value)


@link(
    "request-held",
    events.MessageRuleApplied,
    impersonal=True,
    is_fault=True,
    makes=(DISTURBED.of("hindered"), CUT_OFF.of("struck")),
)
def request_held(
    *,
    fault: events.Text,
    action: events.Text,
    api: events.Text,
    kind: events.Text,
    sender: events.ProcessName,
    receiver: events.ProcessName,
    struck: events.Brokers = (),
    hindered: events.Brokers = (),
) -> str:
    """A fault delayed or removed a message.

    ``struck`` are the brokers that this cut off from the control plane. ``hindered`` are the
    brokers that this kept from fetching the records for which an answer waits.
    """
    return f"the fault {fault} {_action(action)} the {api} {kind} from {sender} to {receiver}"


@link(
    "throttled",
    events.ClientThrottled,
    needs_nothing_because="a quota is a setting, and the client's own traffic exceeds it",
    makes=(DISTURBED.of(ACTOR),),
)
def throttled(*, client: events.ClientName, wait_us: events.Number) -> str:
    return f"throttled {client} for {seconds(wait_us)}"


@link(
    "replicas-assigned",
    events.ReplicasAssigned,
    impersonal=True,
    is_fault=True,
    makes=(OUT_OF_SERVICE.of("former"), UNASSIGNED.of("left")),
)
def replicas_assigned(
    *, replicas: events.Brokers, former: events.BrokerId | None = None, left: events.Brokers = ()
) -> str:
    """An administrator moved a partition.

    ``former`` may no longer lead the partition, and ``left`` are no longer its replicas.
    """
    return f"the replicas became {isr_text(replicas)}"


@link("metadata-log-lost", events.MetadataLogLost, is_fault=True, makes=(OUT_OF_SERVICE.of("former"),))
def metadata_log_lost(*, former: events.BrokerId) -> str:
    """A controller lost the metadata log with its disk; ``former`` led according to that log."""
    return "lost its disk, and the metadata log"


@link(
    "controller-paused",
    events.BrokerPaused,
    event="paused",
    role="the controller",
    is_fault=True,
    makes=_PAUSED,
)
def controller_paused() -> str:
    return "was paused"


@link(
    "controller-resumed",
    events.BrokerResumed,
    event="resumed",
    needs=(PAUSED.of(ACTOR),),
    makes=(PAUSED.of(ACTOR, then=False),),
)
def controller_resumed() -> str:
    return "resumed, and still took itself for the controller"


@link("client-stopped", events.ClientStopped, is_fault=True, makes=(INTERRUPTED.of(ACTOR),))
def client_stopped() -> str:
    return "died before it had an answer"


# Sends and answers


@link(
    "sent",
    events.ClientSent,
    needs_nothing_because=OWN_ACTION,
    makes=(RESENT.of("value", where=("again", True)),),
)
def sent(*, value: RecordValue, again: events.Flag = False, in_session: events.Flag = False) -> str:
    """A producer sent a record.

    ``again``: the producer's application had sent the record before. ``in_session``: it did so with
    the same producer.
    """
    return (
        f"sent {value}{' again' if again else ''}{', in a new session' if again and not in_session else ''}"
    )


@link(
    "answer-heard",
    events.BatchAcknowledged,
    events.ClientEnded,
    event="acked",
    impersonal=True,
    needs_nothing_because=IN_HISTORY,
    makes=(ACKED.of("value"),),
)
def answer_heard(*, value: RecordValue, offset: events.Offset | None = None) -> str:
    """A send succeeded, according to the history alone.

    Without an offset, the producer waited for no answer.
    """
    return f"{value} counted as sent" if offset is None else f"{value} was acked at offset {offset}"


@link(
    "acked",
    events.BatchAcknowledged,
    events.ClientEnded,
    needs=(
        COPY.of("value", "having"),
        COPY.of("value", "missing", then=False),
        ISR.of(then="isr", unless=("is_deposed",)),
    ),
    makes=(ISR.of(then="isr", unless=("is_deposed",)), ACKED.of("value")),
)
def acked(
    *,
    value: RecordValue,
    acks: events.Number,
    offset: events.Offset | None = None,
    alone: events.Flag = False,
    isr: events.Brokers | None = None,
    having: events.Brokers = (),
    missing: events.Brokers = (),
    counted: events.Brokers | None = None,
    is_deposed: events.Flag = False,
    has_shrunk: events.Flag = False,
    min_isr: events.Number | None = None,
) -> str:
    """A leader acknowledged a record: with acks of 0 or 1, or by the ISR of that moment.

    ``alone``: no follower had the record yet. ``having`` and ``missing``: the members of the ISR
    that had the record, and those that did not. ``counted``: the ISR that the leader used, if the
    control plane had another one. ``is_deposed``: another leader had been elected. ``has_shrunk``
    and ``min_isr``: the ISR was only the leader, and the setting that allowed this.
    """
    text = f"acked {value}"
    if acks >= 0:
        return f"{text} (acks={acks}){' before any follower had it' if alone else ''}"
    if isr is None:
        return text
    if counted is not None:
        return (
            f"{text} by the ISR {isr_text(counted)}, although {isr_text(isr)} was written, "
            f"and {brokers(missing)} of it did not have it"
        )
    if missing:
        return f"{text}, although {brokers(missing)} of the ISR {isr_text(isr)} did not have it"
    if is_deposed:
        return f"{text}, alone in the ISR {isr_text(isr)} as far as it knew" if len(isr) < 2 else text
    if has_shrunk:
        minimum = "" if min_isr is None else f" (min.insync.replicas={min_isr})"
        return f"{text} when the ISR had shrunk to {isr_text(isr)}{minimum}"
    return f"{text}: all of the ISR {isr_text(isr)} had it"


@link(
    "no-answer",
    events.SendFailed,
    event="request-failed",
    about="leader",
    needs=(DISTURBED.of("hindered"),),
    makes=(SEND_FAILED.of("values"),),
)
def no_answer(
    *, values: events.Values, leader: events.BrokerId, error: events.Text, hindered: events.Brokers
) -> str:
    """A request got no answer.

    ``hindered``: the brokers that could not answer, or could not fetch the records for which the
    answer waited.
    """
    return f"got no answer from broker {leader} ({error})"


@link(
    "refused",
    events.SendFailed,
    event="request-failed",
    needs=(ISR.of(then="isr"),),
    makes=(SEND_FAILED.of("values"),),
)
def refused(
    *, value: RecordValue, values: events.Values, error: events.Text, isr: events.Brokers | None = None
) -> str:
    """A leader refused a batch of ``values``, among them the record.

    ``isr``: the leader's ISR, if it was too small.
    """
    return f"refused {value}: {error}{f', its ISR was {isr_text(isr)}' if isr else ''}"


@link("gave-up", events.AppendedBatchGivenUp, needs=(SEND_FAILED.of("values"),))
def gave_up(*, values: events.Values, error: events.Text) -> str:
    return f"gave up on {', '.join(values)} ({error}), which may be in the log"


@link(
    "retried",
    events.SentAgain,
    about="leader",
    needs=(SEND_FAILED.of("value"),),
    makes=(RESENT.of("value"),),
)
def retried(*, value: RecordValue, leader: events.BrokerId, attempt: events.Number) -> str:
    return f"sent {value} again, to broker {leader} (attempt {attempt})"


@link("answered", events.BatchDeduplicated, events.BatchAcknowledged, needs=(COPY.of("value", ACTOR),))
def answered(*, value: RecordValue, stands_at: events.Offset) -> str:
    return f"answered that {value} is at offset {stands_at}"


@link("ack-lost", events.MessageRuleApplied, impersonal=True, is_fault=True, makes=(DISTURBED.of("leader"),))
def ack_lost(*, fault: events.Text, action: events.Text, leader: events.BrokerId) -> str:
    return f"the fault {fault} {_action(action)} the answer of broker {leader}"


@link(
    "request-lost", events.MessageRuleApplied, impersonal=True, is_fault=True, makes=(DISTURBED.of("leader"),)
)
def request_lost(*, fault: events.Text, action: events.Text, leader: events.BrokerId) -> str:
    return f"the fault {fault} {_action(action)} the request to broker {leader}"


_ACTIONS: Final = {
    "reset": "reset the connection of",
    "drop": "dropped",
    "hold": "held up",
    "delay": "delayed",
    "duplicate": "duplicated",
}


def _action(action: str) -> str:
    return _ACTIONS.get(action, f"struck ({action})")


# Consumers


@link("seen", impersonal=True, needs_nothing_because=IN_HISTORY)
def seen(*, value: RecordValue, offset: events.Offset) -> str:
    return f"{value} was seen at offset {offset}"


@link(
    "led-without",
    events.LeaderElected,
    events.BecameLeader,
    event="elected",
    is_turn=True,
    needs=(COPY.of("value", ACTOR, then=False),),
)
def led_without(
    *, value: RecordValue, offset: events.Offset, setting: events.Text, was_elected: events.Flag = False
) -> str:
    return f"{'was elected' if was_elected else 'led'} without {value} ({setting})"


@link("out-of-range", needs=(EPOCH.of("newer_epoch"),))
def out_of_range(
    *,
    client: events.ClientName,
    leader_epoch: events.Epoch,
    newer_epoch: events.Epoch,
    setting: events.Text,
) -> str:
    """A deposed leader made a consumer reset its position, although ``newer_epoch`` had begun."""
    return (
        f"told {client} that its position was out of range: "
        f"it still took itself for the leader, in epoch {leader_epoch} ({setting})"
    )


@link("out-of-range-at-follower", needs_nothing_because="a consumer chooses by itself which replica it reads")
def out_of_range_at_follower(*, client: events.ClientName, setting: events.Text) -> str:
    return f"told {client}, which no longer read from it, that its position was out of range: it follows ({setting})"


def _again(again: bool) -> str:
    return " again" if again else ""


def _with(value: RecordValue | None) -> str:
    return "" if value is None else f", with {value}"


def _removing(value: RecordValue | None) -> str:
    return "" if value is None else f", removing {value}"


def _having(value: RecordValue | None, *, has_it: bool) -> str:
    return "" if value is None else f", {'with' if has_it else 'without'} {value}"
