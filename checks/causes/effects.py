"""The effects of records: who was to process what, how an effect came about, or did not, and what applications are promised."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Final, TypeVar

from harrow.checks import promise
from harrow.checks.causes.background import fault_end, tell_fault
from harrow.checks.causes.facts import ABORT_ASKED, GIVEN, INTERRUPTED
from harrow.checks.causes.loss import Cause
from harrow.checks.causes.story import END, Story, source
from harrow.checks.evidence import ApplicationSettings, Evidence
from harrow.checks.finding import Finding
from harrow.checks.group_work import Effect, GroupPartition
from harrow.checks.history.records import Value
from harrow.checks.index import Index, names
from harrow.checks.link import ACTOR, FORBIDDEN, FROM_TRACE, OWN_DEED, Gap, Link, RecordValue, cause, link
from harrow.checks.permission import Permission
from harrow.cluster_model import events
from harrow.cluster_model.settings import AUTO_OFFSET_RESET
from harrow.cluster_model.topology import (
    AT_LEAST_ONCE,
    AT_MOST_ONCE,
    AUTO_COMMITTED,
    EXACTLY_ONCE,
    HIGHEST_FINISHED,
    IDEMPOTENT_SINK,
    WATERMARK,
    is_internal,
)
from harrow.cluster_model.trace import TraceLine

IN_TRANSACTION: Final = "offsets in the transaction"
IN_STORE: Final = "offsets stored with results"
COMMIT_AFTER: Final = "commit after processing"
COMMIT_BEFORE: Final = "commit before processing"
COMMIT_AUTOMATIC: Final = "enable.auto.commit=true"
COMMIT_HIGHEST: Final = "commit of the highest finished offset"
NO_REWIND: Final = "no seek after an abort"
NO_GROUP_METADATA: Final = "no group metadata (KIP-447)"


T = TypeVar("T")

_PREPARING: Final = "PreparingRebalance"
_WorkEnd = events.ClientStopped | events.TransactionReported | events.MembershipLost
_TOLD: Final = 3
"""How many of the polls, results and commits that are about a record are told."""


@link(
    "handed-out",
    events.ClientPolled,
    needs=(INTERRUPTED.of("former"),),
    makes=(GIVEN.of(ACTOR), INTERRUPTED.of(ACTOR, then=False)),
)
def handed_out(*, value: RecordValue, offset: events.Offset, former: events.ClientName | None = None) -> str:
    """A poll returned a record; ``former``: the client to which one had returned it before, None for the first one."""
    return f"was given {value} of offset {offset}{'' if former is None else ' again'}"


@link("effect-written", events.ClientSent, needs=(GIVEN.of(ACTOR),))
def effect_written(*, value: RecordValue) -> str:
    """An application wrote what it had made of a record."""
    return f"wrote {value}"


@link("effect-stored", needs=(GIVEN.of(ACTOR),))
def effect_stored(*, value: RecordValue) -> str:
    """An application stored what it had made of a record outside of Kafka."""
    return f"stored {value}"


@link("group-committed", free_because=OWN_DEED)
def group_committed(*, offset: events.Offset) -> str:
    """A member was told that its commit counts."""
    return f"had committed up to offset {offset}"


@link(
    "application-died", events.ClientStopped, event="stopped", is_fault=True, makes=(INTERRUPTED.of(ACTOR),)
)
def application_died() -> str:
    """The process of an application came to its end."""
    return "came to its end"


@link(
    "member-lost",
    events.MembershipLost,
    free_because="an application that is slow is enough for it",
    makes=(INTERRUPTED.of(ACTOR),),
)
def member_lost(*, group: events.Text, reason: events.Text) -> str:
    """A member found that its group goes on without it."""
    return f"was no member of group {group} any more ({reason})"


@link(
    "rebalanced",
    events.GroupStateChanged,
    role="as coordinator",
    free_because="members join and leave by themselves",
    makes=(INTERRUPTED.of("members"),),
)
def rebalanced(*, group: events.Text, reason: events.Text, members: events.Texts = ()) -> str:
    """A group began to share its partitions out again, also those of some ``members``."""
    return f"had group {group} rebalance: {reason}"


@link(
    "transaction-given-up",
    events.TransactionReported,
    needs=(ABORT_ASKED.of("producer_id"),),
    makes=(INTERRUPTED.of(ACTOR),),
)
def transaction_given_up(*, producer_id: events.Number | None = None) -> str:
    """An application was told that its transaction is aborted."""
    return "was told that its transaction is aborted"


@link(
    "position-reset",
    events.OffsetReset,
    free_because="settings say where a consumer goes that has no position",
    makes=(INTERRUPTED.of(ACTOR),),
)
def position_reset(*, position: events.Offset, offset: events.Offset, policy: events.Text) -> str:
    """A consumer was sent elsewhere, for there was nothing at its position, or it had none."""
    if position < 0:
        return f"began at offset {offset}, for nothing was committed ({AUTO_OFFSET_RESET}={policy})"
    return f"went from offset {position} to {offset} ({AUTO_OFFSET_RESET}={policy})"


@cause("position-was-reset", free_because=FROM_TRACE)
def position_was_reset(*, policy: events.Text) -> str:
    """Where a consumer goes that finds nothing where it is, its settings say, and what lies between is read twice or not at all."""
    return f"a consumer that finds nothing at its position goes on at the {policy} offset"


@cause("log-lost-records", free_because=FROM_TRACE)
def log_lost_records(*, partition: events.PartitionName, setting: events.Text) -> str:
    """What was committed in a log is not there any more, and with it what an application goes by."""
    return f"the log of {partition} has lost what it had ({setting})"


def tell_work(
    story: Story, work: GroupPartition, offset: int, value: RecordValue, effects: Iterable[Effect]
) -> None:
    """Tell who was given a record, what was made of it, and which commits were the first ones behind it."""
    group_work = story.index.group_work
    polls = work.readers_of(offset)
    readers = [group_work.client(poll.process) for poll in polls]
    for poll, client, former in _ends(list(zip(polls, readers, [None, *readers], strict=False))):
        told = handed_out(poll.at_us, client, value=value, offset=offset, former=former)
        story.tell(story.start(poll.at_us), told, decides=True)
    for effect in _ends(list(effects)):
        kind = effect_stored if effect.row < 0 else effect_written
        told = kind(effect.at_us, group_work.client(effect.process), value=effect.value)
        story.tell(story.start(effect.at_us), told, decides=True)
    behind = [commit for commit in work.commits if commit.offset > offset]
    for commit in behind[:1]:
        told = group_committed(commit.at_us, group_work.client(commit.process), offset=commit.offset)
        story.tell(story.start(commit.at_us), told)


@source(INTERRUPTED)
def _tell_interruption(story: Story, line: float, gap: Gap) -> None:
    """Tell what kept a client from finishing a record that it was given, or had it given to another member.

    That is the end of its process, a transaction that failed, or a fault that holds it up until its group goes on without it.
    """
    (client,) = gap.need.subject
    given = [number for number, link in story.told_by("handed-out") if number < line and link.actor == client]
    since = max(given, default=0)
    for number, end in _work_ends(story.index):
        if since < number < line and end.client == client:
            story.tell(number, _work_end(story, number, end))
            return
    for number, fault in story.index.events(events.FaultStruck):
        if number < line and fault_end(story, fault.strike) > since and names(fault, client):
            tell_fault(story, number, fault, stalled=(client,), decides=True)
    for number, change in story.index.events(events.GroupStateChanged):
        is_of_client = client in story.index.group_work.members(change.group)
        if since < number < line and change.reason and change.state == _PREPARING and is_of_client:
            told = rebalanced(
                change.at_us, change.broker, group=change.group, reason=change.reason, members=(client,)
            )
            story.tell(number, told)
            break


def interrupted_client(story: Story) -> str | None:
    """Return which client was the last that was given a record, or that committed behind it where no client was."""
    for kind in ("handed-out", "group-committed"):
        for _, told in reversed(story.told_by(kind)):
            return str(told.actor)
    return None


def _work_ends(index: Index) -> Iterator[TraceLine[_WorkEnd]]:
    """Yield the events with which a client's work on what it was given is over before it is done."""
    ends: Sequence[TraceLine[_WorkEnd]]
    ends = index.events(events.ClientStopped, events.TransactionReported, events.MembershipLost)
    for line in ends:
        if not (isinstance(line.event, events.TransactionReported) and line.event.committed):
            yield line


def _work_end(story: Story, number: int, end: _WorkEnd) -> Link:
    match end:
        case events.ClientStopped():
            return application_died(end.at_us, end.client)
        case events.MembershipLost():
            return member_lost(end.at_us, end.client, group=end.group, reason=end.reason)
        case events.TransactionReported():
            begun = story.last(events.ProducerInitialized, before=number, client=end.client)
            producer_id = None if begun is None else begun.event.producer_id
            return transaction_given_up(end.at_us, end.client, producer_id=producer_id)


def _ends(things: Sequence[T]) -> Sequence[T]:
    """Return what is told of many: the first ones, and the last."""
    return things if len(things) <= _TOLD else [*things[: _TOLD - 1], things[-1]]


def by_reset(story: Story, members: frozenset[str], offset: int, *, twice: bool) -> Cause | None:
    """Explain a record that members were given twice, or not at all, by a consumer that was sent back, or on."""
    for number, event in story.events(events.OffsetReset):
        if event.client not in members:
            continue
        came_back = event.offset <= offset < event.position
        went_on = event.position <= offset < event.offset
        if came_back if twice else went_on:
            told = position_reset(
                event.at_us, event.client, position=event.position, offset=event.offset, policy=event.policy
            )
            story.tell(number, told, decides=True)
            conclusion = position_was_reset.conclude(policy=event.policy)
            setting = f"{AUTO_OFFSET_RESET}={event.policy}"
            return Cause((conclusion,), setting, promise.prevention(promise.RESETTING, setting))
    return None


def by_lost_log(index: Index, partition: str) -> Cause | None:
    """Explain what became of a record by a log that lost what was committed: that of its partition, or a coordinator's."""
    for name in index.forgetful_partitions:
        if name == partition or is_internal(name):
            for permission, happened in _LOSSES:
                if any(happened(index, name)):
                    conclusion = log_lost_records.conclude(partition=name, setting=permission.setting)
                    return Cause((conclusion,), permission.setting, permission.prevented_by)
    return None


def _elected_uncleanly(index: Index, name: str) -> Iterator[bool]:
    return (event.unclean for _, event in index.events(events.LeaderElected, partition=name))


def _lost_with_power(index: Index, name: str) -> Iterator[bool]:
    yield from (True for _ in index.events(events.UnflushedLost, partition=name))
    yield from (event.torn for _, event in index.events(events.CorruptionCut, partition=name))


def _lost_with_disk(index: Index, name: str) -> Iterator[bool]:
    return (True for _ in index.events(events.LogLost, events.CorruptionCut, partition=name))


_LOSSES: Final[tuple[tuple[Permission, Callable[[Index, str], Iterator[bool]]], ...]] = (
    (promise.BY_UNCLEAN_ELECTION, _elected_uncleanly),
    (promise.BY_POWER_LOSS, _lost_with_power),
    (promise.BY_DISK_FAILURE, _lost_with_disk),
)


@cause("commit-of-anybody", free_because="settings of the application let any member commit")
def commit_of_anybody() -> str:
    """The coordinator of a group was not told which member commits, so that it refused no commit."""
    return "who commits offsets in a transaction did not say as which member of the group, so that one of the past could"


def lacks_group_metadata(index: Index, applications: Iterable[ApplicationSettings]) -> bool:
    """Return whether transactions commit offsets of a group without saying as which of its members."""
    return not index.evidence.does().transactions.transactional_commits_fenced or not all(
        application.group_metadata for application in applications
    )


@cause("effect-unexplained", free_because=FORBIDDEN)
def effect_unexplained(*, promised: events.Text) -> str:
    """Nothing permits it."""
    return f"nothing permits it: {promised}"


def inputs_of_groups(index: Index) -> Iterator[tuple[str, str, int, Value, list[Effect]]]:
    """Yield each committed record that a group was to process, with what has come of it."""
    work = index.group_work
    for group in work.applications:
        found = work.effects[group]
        for partition in work.sources(group):
            for offset, value in work.records_of(partition).items():
                yield group, partition, offset, value, found.get(str(value), [])


def copies_of(index: Index, group: str, value: Value) -> int:
    return index.group_work.copies(group).get(value, 1)


def work_of(index: Index, group: str, partition: str) -> GroupPartition:
    return index.group_work.partitions.get(group, {}).get(partition) or GroupPartition()


def effect_finding(
    index: Index,
    group: str,
    partition: str,
    offset: int,
    value: Value,
    effects: list[Effect],
    claimed: Link,
    explain: Callable[[Story, str, int], Cause],
) -> Finding:
    story = Story(index, partition)
    tell_work(story, work_of(index, group, partition), offset, value, effects)
    story.tell(END, claimed)
    why = explain(story, group, offset)
    return why.finding(
        story,
        offset=offset,
        value=value,
        details=(("group", group), ("effects", [effect.value for effect in effects])),
    )


def unexplained(story: Story, applications: list[ApplicationSettings]) -> Cause:
    promised = ", ".join(dict.fromkeys(PROMISED[application.delivery] for application in applications))
    return Cause((effect_unexplained.conclude(promised=promised),))


PROMISED: Final = {
    EXACTLY_ONCE: IN_TRANSACTION,
    IDEMPOTENT_SINK: IN_STORE,
    AT_LEAST_ONCE: COMMIT_AFTER,
    WATERMARK: COMMIT_AFTER,
    AT_MOST_ONCE: COMMIT_BEFORE,
    AUTO_COMMITTED: COMMIT_AUTOMATIC,
    HIGHEST_FINISHED: COMMIT_HIGHEST,
}


def held_to(permitting: Mapping[str, str]) -> Callable[[Evidence], str]:
    def in_run(evidence: Evidence) -> str:
        """Return what the applications of a run were promised."""
        found: dict[str, None] = {}
        for application in evidence.applications:
            setting = permitting.get(application.delivery)
            found[PROMISED[application.delivery] if setting is None else f"nothing ({setting})"] = None
        return "; ".join(found) or "nothing (no application)"

    return in_run


BY_LOST_LOG: Final = tuple(
    Permission(
        setting=permission.setting,
        when="when a log loses what was committed in it: that of the input, or the coordinator's",
        prevented_by=permission.prevented_by,
    )
    for permission in (promise.BY_UNCLEAN_ELECTION, promise.BY_POWER_LOSS, promise.BY_DISK_FAILURE)
)
