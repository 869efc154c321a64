"""unconsumed: a group with running members leaves acked records unread, and nothing explains that.

This rule demands progress of groups, as `unavailable` demands it of brokers. The cluster is healthy
and the group is stable, but a partition of a subscribed topic has acked records beyond the group's
position. Either no member has the partition, or the member that has it polls nothing. KAFKA-13435
is such a flaw: a static member that led its group returns, and after that no member looks for new
partitions.

A group's timer starts at the last event that may have disturbed the group: a fault or its end, any
event of a broker or a leader, a rebalance, a poll of the member that has the partition. The group
then has to read the records within the patience of its most patient member: the sum of that
member's timeouts (`ConsumerSettings.patience_us`). If a poll returned records, the member may take
another ``max.poll.interval.ms``, because histories do not show when its next poll began. If the run
ends before the timer does, the rule has no finding.
"""

from collections.abc import Iterator, Sequence
from itertools import compress, count, repeat
from operator import eq
from typing import Final

from harrow.checks import promise
from harrow.checks.causes import compaction
from harrow.checks.causes.catalogue import damaged_on_leader
from harrow.checks.causes.effects import application_died, group_committed
from harrow.checks.causes.links import chosen
from harrow.checks.causes.loss import Cause
from harrow.checks.causes.story import END, Story, seconds
from harrow.checks.evidence import ConsumerSettings
from harrow.checks.finding import Finding
from harrow.checks.group_work import GroupPartition
from harrow.checks.history.records import UNKNOWN, SendRecord
from harrow.checks.index import Index
from harrow.checks.link import NOTHING_HAPPENED, OWN_ACTION, cause, claim, link
from harrow.checks.permission import Permission, Promise
from harrow.checks.prevention import EARLIEST_RESET
from harrow.checks.rule import Rule
from harrow.cluster_model import events
from harrow.cluster_model.clients.consumer import EARLIEST, LATEST
from harrow.cluster_model.coordinators.groups.group import STABLE
from harrow.cluster_model.coordinators.protocol import NO_OFFSET_COMMITTED
from harrow.cluster_model.errors import OFFSET_OUT_OF_RANGE
from harrow.cluster_model.history import ASSIGN, OK, columns_of
from harrow.cluster_model.lazy_dataclass import dataclass
from harrow.cluster_model.settings import AUTO_OFFSET_RESET
from harrow.cluster_model.trace import TraceLine

_NO_POSITION: Final = f"{AUTO_OFFSET_RESET}=none"

_DISTURBANCES: Final = (
    *(events.FaultStruck, events.FaultEnded, events.MessageRuleApplied, events.ClockStepped),
    *(events.BrokerStarted, events.BrokerStopped, events.BrokerPaused, events.BrokerResumed),
    *(events.BrokerRegistered, events.SessionExpired, events.ControllerElected),
    *(events.ReplicasAssigned, events.LeaderElected, events.BecameLeader, events.BecameFollower),
    *(events.LogDirFailed, events.RequestQueueFull, events.ClientThrottled),
    *(events.GroupStateChanged, events.PartitionsAssigned, events.PartitionsRevoked),
    *(events.MembershipLost, events.CommitFailed, events.ClientStopped, events.ApplicationEnded),
    *(events.TransactionMarkerWritten, events.OffsetReset),
)
"""Events that may keep a group from reading for a while, wherever they happen. They restart the
time of a group, so that a slow group is not taken for a stuck one."""


@link("assigned-partitions", events.PartitionsAssigned, needs_nothing_because=OWN_ACTION)
def assigned_partitions(*, partitions: events.Texts, generation: events.Number) -> str:
    return f"was assigned {', '.join(partitions) or 'nothing'} (generation {generation})"


@claim("not-consumed")
def not_consumed(
    *, group: events.Text, records: events.Number, offset: events.Offset, after_us: events.Number
) -> str:
    count = f"{records} acked records" if records > 1 else "1 acked record"
    return f"{seconds(after_us)} later, group {group} had still not read {count} at offset {offset} or above"


@cause("assigned-to-no-member", needs_nothing_because=NOTHING_HAPPENED)
def assigned_to_no_member(*, partition: events.PartitionName, group: events.Text) -> str:
    return f"no member of group {group} had {partition}, although they subscribe to its topic"


@cause("member-does-not-read", needs_nothing_because=NOTHING_HAPPENED)
def member_does_not_read(
    *, partition: events.PartitionName, member: events.Text, offset: events.Offset
) -> str:
    return f"{member} had {partition}, and none of its polls returned offset {offset}"


@cause("no-position", needs_nothing_because=NOTHING_HAPPENED)
def no_position(*, member: events.Text) -> str:
    return f"nothing was committed, and {member} does not begin by itself ({_NO_POSITION})"


@dataclass(frozen=True, slots=True)
class _Group:
    """A group with members that still run at the end of a run, and their partitions, by process."""

    name: str
    members: dict[int, ConsumerSettings]
    owned: dict[int, tuple[str, ...]]
    is_stable: bool

    def owner(self, partition: str) -> int | None:
        return next((process for process, owned in self.owned.items() if partition in owned), None)

    @property
    def patience_us(self) -> int:
        rebalance_us = 0 if self.is_stable else max(map(self.absence_max_us, self.members))
        return rebalance_us + max(member.patience_us for member in self.members.values())

    def absence_max_us(self, process: int) -> int:
        return self.members[process].max_poll_interval_us


def find(index: Index) -> Iterator[Finding]:
    """Check each partition that groups with running members have to read."""
    groups = _running_groups(index)
    if not groups:
        return
    end_us = index.history.times_us[-1]
    quiet_since_us = _last_disturbance(index)
    for group in groups:
        for partition in index.acked:
            is_subscribed = any(member.is_to_read(partition) for member in group.members.values())
            if is_subscribed and partition in index.evidence.read_back:
                finding = _stalled(index, group, partition, quiet_since_us, end_us)
                if finding is not None:
                    yield finding


def _running_groups(index: Index) -> list[_Group]:
    settings = {
        process: member
        for process, member in index.evidence.consumers.items()
        if member.group and member.patience_us
    }
    owned: dict[int, tuple[int, tuple[str, ...]]] = {}
    for _, processes, types, fs, values, times_us, _ in (
        columns_of(index.evidence.operations) if settings else ()
    ):
        for place in compress(count(), map(eq, fs, repeat(ASSIGN))):
            process = processes[place]
            if types[place] == OK and process in settings:
                owned[process] = times_us[place], tuple(values[place])
    ends: Sequence[TraceLine[events.ClientStopped | events.MembershipLost | events.ApplicationEnded]]
    ends = index.events(events.ClientStopped, events.MembershipLost, events.ApplicationEnded)
    ends_us = {event.client: event.at_us for _, event in ends}
    latest = {settings[process].name: process for process in sorted(owned)}
    members = {
        process: settings[process]
        for name, process in latest.items()
        if owned[process][0] > ends_us.get(name, -1)
    }
    states = {event.group: event.state for _, event in index.events(events.GroupStateChanged)}
    return [
        _Group(
            name,
            {process: member for process, member in members.items() if member.group == name},
            {process: owned[process][1] for process, member in members.items() if member.group == name},
            states.get(name, STABLE) == STABLE,
        )
        for name in dict.fromkeys(member.group for member in members.values())
    ]


def _last_disturbance(index: Index) -> int:
    """Return the time of the last event that may have kept a group from reading.

    A fault without an end in the trace ends when the run heals the cluster.
    """
    last_us = index.last_us(*_DISTURBANCES) or 0
    open_strikes = {event.strike for _, event in index.events(events.FaultStruck)}
    open_strikes -= {event.strike for _, event in index.events(events.FaultEnded)}
    healed = [event.at_us for _, event in index.events(events.Healed, events.CoreHealed)]
    return max(last_us, *healed) if open_strikes and healed else last_us


def _stalled(index: Index, group: _Group, partition: str, quiet_since_us: int, end_us: int) -> Finding | None:
    """Return a finding if a group has left records unread for longer than its timeouts allow."""
    done = index.group_work.partitions.get(group.name, {}).get(partition) or GroupPartition()
    position = _position(index, group, partition, done)
    if position is None:
        return None
    owed = _unread_sends(index, partition, position)
    if not owed:
        return None
    owner = group.owner(partition)
    last_polls = _last_polls(index, group)
    since_us = max(
        quiet_since_us,
        owed[0].completed_us or 0,
        *(poll.at_us for poll in done.polls[-1:]),
        0 if owner is None else last_polls.get(owner, 0),
    )
    # If no member has the partition, the group's leader has to return, which may be any member.
    return_us = (
        min(at_us, since_us) + group.absence_max_us(process)
        for process, at_us in last_polls.items()
        if owner in (None, process)
    )
    if end_us - max((since_us, *return_us)) <= group.patience_us:
        return None
    return _finding(index, group, partition, done, owed, end_us - since_us)


def _position(index: Index, group: _Group, partition: str, done: GroupPartition) -> int | None:
    """Return the position of a group in a partition, None if it is unknown."""
    names = index.group_work.members(group.name)
    resets = [
        event.offset
        for _, event in index.events(events.OffsetReset, partition=partition)
        if event.client in names
    ]
    ends = [*(poll.last + 1 for poll in done.polls), *(commit.offset for commit in done.commits), *resets]
    if ends:
        return max(ends)
    policies = {member.offset_reset for member in group.members.values()}
    return None if LATEST in policies else 0


def _unread_sends(index: Index, partition: str, position: int) -> list[SendRecord]:
    """Return the acked, readable sends at or above a position, by ascending offset."""
    history = index.history.partitions[partition]
    records, readable = index.history.records, index.group_work.records_of(partition)
    held_up = index.evidence.held_up.get(partition, END)
    # Nearly all acks named an offset below the position, so this cheap check comes first.
    acked_at = records.acked_at
    offsets = {
        offset: row
        for row in history.acked
        if not UNKNOWN < acked_at[row] < position
        and (offset := records.offset(row)) is not None
        and position <= offset < held_up
    }
    return [
        index.history.send(partition, row)
        for offset, row in sorted(offsets.items())
        if readable.get(offset) == records.values[row]
        and not compaction.is_superseded(index, partition, records.values[row], offset)
    ]


def _last_polls(index: Index, group: _Group) -> dict[int, int]:
    """Return when a poll of each member last returned records of any partition."""
    last: dict[int, int] = {}
    for work in index.group_work.partitions.get(group.name, {}).values():
        for poll in work.polls:
            if poll.process in group.members:
                last[poll.process] = max(poll.at_us, last.get(poll.process, 0))
    return last


def _finding(
    index: Index,
    group: _Group,
    partition: str,
    done: GroupPartition,
    owed: Sequence[SendRecord],
    after_us: int,
) -> Finding:
    story = Story(index, partition)
    first = owed[0]
    names = {index.group_work.client(process) for process in group.members}
    _tell_members(story, names)
    for number, event in story.elections[:1]:
        if number > _first_assignment(index, group):
            choice = chosen(
                event.at_us, event.controller, leader=event.leader, leader_epoch=event.leader_epoch
            )
            story.tell(number, choice, decides=True)
    for commit in done.commits[-1:]:
        last = group_committed(commit.at_us, index.group_work.client(commit.process), offset=commit.offset)
        story.tell(story.start(commit.at_us), last)
    assert first.offset is not None, "acked sends without an offset are not owed"
    claimed = not_consumed.conclude(
        group=group.name, records=len(owed), offset=first.offset, after_us=after_us
    )
    why = _cause(story, group, first.offset)
    return why.finding(
        story,
        claimed,
        offset=first.offset,
        value=first.value,
        details=(("group", group.name), ("records", len(owed)), ("after_us", after_us)),
    )


def _first_assignment(index: Index, group: _Group) -> float:
    assigned = index.events(events.PartitionsAssigned)
    return next((number for number, event in assigned if event.group == group.name), END)


def _tell_members(story: Story, names: set[str]) -> None:
    """Tell the last assignment of each member, and which members died."""
    assigned = [line for line in story.index.events(events.PartitionsAssigned) if line.event.client in names]
    latest = {line.event.client: line for line in assigned}
    for line in latest.values():
        story.tell_event(line, assigned_partitions, decides=True)
    for stop in story.index.events(events.ClientStopped):
        if stop.event.client in names:
            story.tell_event(stop, application_died, decides=True)


def _cause(story: Story, group: _Group, offset: int) -> Cause:
    index, partition = story.index, story.partition
    owner = group.owner(partition)
    if owner is None:
        because = assigned_to_no_member.conclude(partition=partition, group=group.name)
        return Cause((because,))
    member = index.group_work.client(owner)
    for _, corrupt in story.events(events.CorruptBatchFetched):
        if corrupt.receiver == member and corrupt.offset <= offset:
            return _by_damage(story, corrupt)
    if group.members[owner].offset_reset not in (EARLIEST, LATEST) and _has_no_position(story, member):
        because = no_position.conclude(member=member)
        return Cause((because,), _NO_POSITION, (EARLIEST_RESET,))
    because = member_does_not_read.conclude(partition=partition, member=member, offset=offset)
    return Cause((because,))


def _by_damage(story: Story, corrupt: events.CorruptBatchFetched) -> Cause:
    """Return the cause if a consumer cannot pass a batch that is damaged on the leader's disk."""
    intact = [
        copy for copy in story.copies_at(corrupt.offset) if copy.removed is None and copy.damaged is None
    ]
    value = story.index.standing_at(story.partition, corrupt.offset)
    because = damaged_on_leader.conclude(
        leader=corrupt.broker,
        value="" if value is None else value,
        having=tuple(sorted({copy.broker for copy in intact if copy.broker != corrupt.broker})),
    )
    return Cause((because,), promise.DISK_FAILURE)


def _has_no_position(story: Story, member: str) -> bool:
    """Return whether a consumer found no commit, or no record at its position."""
    return any(
        event.client == member and event.offset == NO_OFFSET_COMMITTED
        for _, event in story.events(events.GroupOffsetFound)
    ) or any(
        event.sender == member and event.error == OFFSET_OUT_OF_RANGE
        for _, event in story.events(events.RequestRejected)
    )


RULE: Final = Rule(
    name=promise.UNCONSUMED,
    definition=(
        "The cluster was whole and the members of a group ran, but for longer than their timeouts explain, the group read "
        "nothing of a partition of its topics with acked records beyond its position: no member had the partition, or the "
        "member that had it waited in poll. A run that ends before the timeouts accuses no group."
    ),
    source=(
        "KafkaConsumer (subscribe: the partitions of the topics are assigned to the members of the group); "
        "ConsumerCoordinator.onLeaderElected, rejoinNeededOrPending (changed metadata makes the leader assign again); KAFKA-13435."
    ),
    promise=Promise(
        promised_by=(promise.SUBSCRIBED,),
        permissions=(
            Permission(
                setting=_NO_POSITION,
                when="when the group has committed nothing, or the log has nothing at its position",
                prevented_by=(EARLIEST_RESET,),
            ),
            promise.BY_DAMAGED_LEADER,
        ),
    ),
    find=find,
    is_tried=Index.has_patient_groups,
    verb="left unread",
)
