"""offset-regression: the committed position of a group went back."""

from collections.abc import Callable, Iterator, Mapping
from typing import Final, NamedTuple

from harrow.checks import prevention as preventions
from harrow.checks import promise
from harrow.checks.causes.coordinators import Coordinators
from harrow.checks.causes.effects import NO_GROUP_METADATA, lacks_group_metadata, unfenced_commit
from harrow.checks.causes.facts import COMMITTED
from harrow.checks.causes.loss import Cause
from harrow.checks.causes.story import Story
from harrow.checks.causes.transactions import lost_decision
from harrow.checks.finding import Finding
from harrow.checks.index import Index
from harrow.checks.link import BY_SETTING, FROM_LOGS, OWN_ACTION, cause, link
from harrow.checks.permission import Permission, Promise
from harrow.checks.rule import Rule
from harrow.cluster_model import events
from harrow.cluster_model.coordinators.internal_topics import partition_for
from harrow.cluster_model.coordinators.protocol import NO_GENERATION, NO_MEMBER
from harrow.cluster_model.settings import AUTO_OFFSET_RESET
from harrow.cluster_model.topology import CONSUMER_OFFSETS, EXACTLY_ONCE

OFFSETS_RETENTION: Final = "offsets.retention.minutes"


def _committer(member: str, generation: int) -> str:
    if member == NO_MEMBER:
        return "a client that names no member" if generation == NO_GENERATION else f"generation {generation}"
    return f"{member} of generation {generation}"


@link(
    "commit-taken",
    events.OffsetsCommitted,
    role="as coordinator",
    needs_nothing_because=OWN_ACTION,
    makes=(COMMITTED.of("partition"),),
)
def commit_taken(
    *,
    group: events.Text,
    partition: events.PartitionName,
    position: events.Offset,
    member: events.Text,
    generation: events.Number,
) -> str:
    return f"accepted a commit of {partition} up to offset {position} for group {group}, from {_committer(member, generation)}"


@link("commits-expired", events.OffsetsExpired, role="as coordinator", needs=(COMMITTED.of("partition"),))
def commits_expired(*, group: events.Text, partition: events.PartitionName) -> str:
    return f"removed the expired offsets of group {group} in {partition}"


@link("commit-found", events.GroupOffsetFound, needs=(COMMITTED.of("partition"),))
def commit_found(*, partition: events.PartitionName, position: events.Offset) -> str:
    where = "no committed offset" if position < 0 else f"offset {position}"
    return f"got {where} when it asked for the position in {partition}"


@cause("commit-went-back", needs_nothing_because=FROM_LOGS)
def commit_went_back(
    *, group: events.Text, partition: events.PartitionName, before: events.Offset, after: events.Offset
) -> str:
    return f"group {group} had committed {partition} up to offset {before}, and then was at {after}: it processes the records between again"


@cause("old-generation-committed", needs_nothing_because=BY_SETTING)
def old_generation_committed(*, generation: events.Number, newer: events.Number) -> str:
    return f"a commit of generation {generation} was accepted after one of generation {newer}"


@cause("member-committed-out-of-order", needs_nothing_because=BY_SETTING)
def member_committed_out_of_order() -> str:
    return f"one member made both commits, and nothing orders the commits of one member ({promise.ASYNC_COMMITS})"


@cause("not-owned-committed", needs_nothing_because=BY_SETTING)
def not_owned_committed(*, member: events.Text, generation: events.Number) -> str:
    return (
        f"{member} of generation {generation} no longer owned the partition; coordinators compare member epochs, not owners "
        f"({promise.CONSUMER_PROTOCOL})"
    )


@cause("no-member-committed", needs_nothing_because=BY_SETTING)
def no_member_committed() -> str:
    return f"a consumer that assigns partitions to itself is no member, and is not fenced ({promise.ASSIGN})"


@cause("consumer-was-reset", needs_nothing_because=BY_SETTING)
def consumer_was_reset(*, client: events.ClientName, setting: events.Text) -> str:
    return f"the position of {client} had been reset in between ({setting})"


@cause("commits-had-expired", needs_nothing_because=BY_SETTING)
def commits_had_expired(*, setting: events.Text) -> str:
    return f"the commit had expired ({setting})"


class _Commit(NamedTuple):
    """A group's commit for a partition.

    ``is_by_owner`` is false if the coordinator has assigned the partition to another member, which
    can happen with KIP-848. ``is_by_member`` says whether the coordinator has the member in this
    epoch; from such a member it accepts commits for any partition. ``owned_since`` is the epoch in
    which the coordinator assigned the partition to this member, None if the member does not own it.
    """

    position: int
    member: str
    generation: int
    number: int
    at_us: int
    broker: int
    is_by_owner: bool
    is_by_member: bool
    owned_since: int | None = None


def find(index: Index) -> Iterator[Finding]:
    """Compare the commits of groups with the positions that consumers get when they start to read.

    A position is compared with the last commit before the partition was assigned to the consumer,
    because the consumer asks for its position after the assignment.
    """
    if not index.has(events.OffsetsCommitted):
        return
    groups = _Groups(index)
    for number, event in index.events(*_HANDLERS):
        yield from _HANDLERS[type(event)](groups, number, event)


class _Groups:
    """The commits of groups up to a line of the trace. Its methods take the trace line by line."""

    def __init__(self, index: Index) -> None:
        self._index = index
        self._commits: dict[tuple[str, str], _Commit] = {}
        self._expired: dict[tuple[str, str], tuple[int, events.OffsetsExpired]] = {}
        self._expected: dict[tuple[str, str], tuple[str, _Commit | None]] = {}
        self._resets: dict[str, tuple[int, str]] = {}
        self._owned: dict[tuple[str, str], tuple[int, dict[str, int]]] = {}
        self._coordinators = Coordinators()

    def lead(self, _: int, event: events.BecameLeader) -> Iterator[Finding]:
        self._coordinators.note(event)
        yield from ()

    def commit(self, number: int, event: events.OffsetsCommitted) -> Iterator[Finding]:
        for partition, position in event.offsets:
            key = event.group, partition
            epoch, owned = self._owned.get((event.group, event.member), (event.generation, None))
            commit = _Commit(
                *(position, event.member, event.generation, number, event.at_us, event.broker),
                is_by_owner=owned is None or partition in owned,
                is_by_member=event.generation == epoch,
                owned_since=None if owned is None else owned.get(partition),
            )
            last_commit = self._commits.get(key)
            if last_commit is not None and position < last_commit.position:
                if self._coordinators.is_superseded(
                    _offsets_partition(self._index, event.group), event.broker
                ):
                    continue
                yield _by_commit(self._index, key, last_commit, commit, self._resets.get(partition))
            self._commits[key] = commit
            self._expired.pop(key, None)

    def reconcile(self, _: int, event: events.MemberReconciled) -> Iterator[Finding]:
        if not self._coordinators.is_superseded(_offsets_partition(self._index, event.group), event.broker):
            _, before = self._owned.get((event.group, event.member), (event.epoch, {}))
            owned = {
                partition: before.get(partition, event.epoch)
                for partition in (*event.assigned, *event.revoking)
            }
            self._owned[event.group, event.member] = event.epoch, owned
        yield from ()

    def expire(self, number: int, event: events.OffsetsExpired) -> Iterator[Finding]:
        for partition, _ in event.offsets:
            self._expired[event.group, partition] = number, event
        yield from ()

    def delete(self, _: int, event: events.OffsetsDeleted) -> Iterator[Finding]:
        """Forget deleted commits: the group may begin again anywhere."""
        for partition in event.partitions:
            self._commits.pop((event.group, partition), None)
        for key, (group, _commit) in list(self._expected.items()):
            if group == event.group and key[1] in event.partitions:
                del self._expected[key]
        yield from ()

    def assign(self, _: int, event: events.PartitionsAssigned) -> Iterator[Finding]:
        for partition in event.partitions:
            last_commit = self._commits.get((event.group, partition))
            self._expected[event.client, partition] = event.group, last_commit
        yield from ()

    def reset(self, number: int, event: events.OffsetReset) -> Iterator[Finding]:
        self._resets[event.partition] = number, event.client
        yield from ()

    def find(self, number: int, event: events.GroupOffsetFound) -> Iterator[Finding]:
        group, last_commit = self._expected.pop((event.client, event.partition), ("", None))
        if last_commit is not None and event.offset < last_commit.position:
            expired = self._expired.get((group, event.partition))
            yield _by_answer(self._index, group, last_commit, number, event, expired)


_HANDLERS: Final[Mapping[type[events.Event], Callable[..., Iterator[Finding]]]] = {
    events.BecameLeader: _Groups.lead,
    events.OffsetsCommitted: _Groups.commit,
    events.MemberReconciled: _Groups.reconcile,
    events.OffsetsExpired: _Groups.expire,
    events.OffsetsDeleted: _Groups.delete,
    events.PartitionsAssigned: _Groups.assign,
    events.OffsetReset: _Groups.reset,
    events.GroupOffsetFound: _Groups.find,
}
"""For each kind of event, the method that handles it, given the line and the event."""


def _offsets_partition(index: Index, group: str) -> str:
    count = sum(name.startswith(f"{CONSUMER_OFFSETS}-") for name in index.evidence.partitions)
    return f"{CONSUMER_OFFSETS}-{partition_for(group, count)}" if count else ""


def _tell_commit(story: Story, group: str, commit: _Commit) -> None:
    accepted = commit_taken(
        commit.at_us,
        commit.broker,
        group=group,
        partition=story.partition,
        position=commit.position,
        member=commit.member,
        generation=commit.generation,
    )
    story.tell(commit.number, accepted, decides=True)


def _by_commit(
    index: Index,
    key: tuple[str, str],
    earlier: _Commit,
    commit: _Commit,
    reset: tuple[int, str] | None,
) -> Finding:
    group, partition = key
    story = Story(index, partition)
    _tell_commit(story, group, earlier)
    _tell_commit(story, group, commit)
    return _finding(
        index, story, key, earlier, commit.position, _why_committed(index, group, earlier, commit, reset)
    )


def _why_committed(
    index: Index, group: str, earlier: _Commit, commit: _Commit, reset: tuple[int, str] | None
) -> Cause:
    by_loss = lost_decision(index, (_offsets_partition(index, group),), 0)
    if by_loss is not None:
        return by_loss
    if reset is not None and earlier.number < reset[0] < commit.number:
        reset_cause = consumer_was_reset.conclude(client=reset[1], setting=AUTO_OFFSET_RESET)
        return Cause((reset_cause,), AUTO_OFFSET_RESET, (preventions.NO_OFFSET_RESET,))
    if NO_GENERATION in (commit.generation, earlier.generation):
        return _why_without_generation(index, group)
    if commit.member == earlier.member and _is_unordered(index, earlier, commit):
        return Cause((member_committed_out_of_order.conclude(),), promise.ASYNC_COMMITS)
    # If a former owner's commit moved the group ahead, the present owner's commit moves it back.
    # Each member has an epoch of its own, which may be behind the epochs of other members. A
    # coordinator compares a commit with the epoch of the member that sent it.
    stray = (
        commit
        if not commit.is_by_owner
        else None
        if earlier.is_by_owner or not earlier.is_by_member
        else earlier
    )
    if stray is not None and (
        commit.generation >= earlier.generation or (stray is commit and commit.is_by_member)
    ):
        by = not_owned_committed.conclude(member=stray.member, generation=stray.generation)
        return Cause((by,), promise.CONSUMER_PROTOCOL)
    if commit.generation < earlier.generation:
        old = old_generation_committed.conclude(generation=commit.generation, newer=earlier.generation)
        return Cause((old,))
    return Cause(())


def _is_unordered(index: Index, earlier: _Commit, commit: _Commit) -> bool:
    """Return whether nothing orders two commits of a member.

    Commits of one generation have no order; with KIP-1251, neither have commits of one assignment.
    """
    if commit.generation == earlier.generation:
        return True
    since = commit.owned_since
    is_same_assignment = since is not None and since <= min(commit.generation, earlier.generation)
    return is_same_assignment and index.behaviours.groups.assignment_epochs_fence_commits


def _why_without_generation(index: Index, group: str) -> Cause:
    """Return what permits a commit without a generation: self-assignment, or a transaction."""
    applications = index.group_work.applications.get(group, ())
    if all(application.delivery != EXACTLY_ONCE for application in applications):
        return Cause((no_member_committed.conclude(),), promise.ASSIGN)
    if lacks_group_metadata(index, applications):
        return Cause((unfenced_commit.conclude(),), NO_GROUP_METADATA)
    return Cause(())


def _by_answer(
    index: Index,
    group: str,
    earlier: _Commit,
    number: int,
    event: events.GroupOffsetFound,
    expiry: tuple[int, events.OffsetsExpired] | None,
) -> Finding:
    story = Story(index, event.partition)
    _tell_commit(story, group, earlier)
    position = commit_found(event.at_us, event.client, partition=event.partition, position=event.offset)
    story.tell(number, position, decides=True)
    because = lost_decision(index, (_offsets_partition(index, group),), 0)
    if expiry is not None:
        line, expired = expiry
        removal = commits_expired(expired.at_us, expired.broker, group=group, partition=event.partition)
        story.tell(line, removal, decides=True)
        because = Cause((commits_had_expired.conclude(setting=OFFSETS_RETENTION),), OFFSETS_RETENTION)
    key = group, event.partition
    return _finding(index, story, key, earlier, event.offset, because or Cause(()))


def _finding(
    index: Index, story: Story, key: tuple[str, str], earlier: _Commit, after: int, because: Cause
) -> Finding:
    group, partition = key
    regression = commit_went_back.conclude(
        group=group, partition=partition, before=earlier.position, after=after
    )
    return because.finding(
        story,
        regression,
        offset=max(after, 0),
        value=index.standing_at(partition, after) if after >= 0 else None,
        details=(("group", group), ("committed", earlier.position), ("then", after)),
    )


_LOST_OFFSETS: Final = "when a log of __consumer_offsets loses a commit"

RULE: Final = Rule(
    name=promise.OFFSET_REGRESSION,
    goes_by_order=True,
    definition=(
        "A group had committed a position in a partition. Then a lower position was committed, or returned to a consumer that "
        "began to read the partition. Records that were processed are processed again."
    ),
    source="GroupCoordinator.validateOffsetCommit, GroupMetadataManager.scala; KIP-447, KIP-211; CommitRequestManager.java (memberInfo), ConsumerGroup.validateOffsetCommit.",
    promise=Promise(
        promised_by=(promise.SUBSCRIBED,),
        permissions=(
            *promise.restricted(_LOST_OFFSETS, promise.BY_LOST_DECISION),
            Permission(
                setting=AUTO_OFFSET_RESET,
                when="when a consumer's position was reset before it committed",
                prevented_by=(preventions.NO_OFFSET_RESET,),
            ),
            Permission(
                setting=promise.ASSIGN,
                when="for consumers that assign partitions to themselves, which are not fenced",
            ),
            Permission(
                setting=NO_GROUP_METADATA,
                when="for commits in transactions: when a member that was taken for dead continues, or a transaction ends late",
            ),
            Permission(
                setting=promise.ASYNC_COMMITS,
                when="for one member's own commits in one generation, or since 4.3 in one assignment (KIP-1251), which nothing orders",
            ),
            Permission(
                setting=promise.CONSUMER_PROTOCOL,
                when="for a commit that is sent again after its member was fenced and has rejoined",
            ),
            Permission(setting=OFFSETS_RETENTION, when="when the commit had expired"),
        ),
    ),
    find=find,
    is_tried=lambda index: index.has(events.OffsetsCommitted),
    verb="committed and then went back before:",
)
