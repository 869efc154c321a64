"""Explains findings about applications: who polled a record, what results it had, who committed.

An *effect* is a result that an application derived from a record, as a new record or outside of
Kafka. Rules compare the effects of a record with what the application's settings promise.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Final, NamedTuple, TypeVar

from harrow.checks import promise
from harrow.checks.causes.background import fault_end, tell_fault
from harrow.checks.causes.facts import ABORT_ASKED, DELIVERED, INTERRUPTED
from harrow.checks.causes.loss import Cause
from harrow.checks.causes.story import END, Story, source
from harrow.checks.evidence import ApplicationSettings, Evidence
from harrow.checks.finding import Finding
from harrow.checks.group_work import Effect, GroupPartition
from harrow.checks.history.records import Value
from harrow.checks.index import Index, names
from harrow.checks.link import ACTOR, FORBIDDEN, FROM_TRACE, OWN_ACTION, Gap, Link, RecordValue, cause, link
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
_SHOWN_MAX: Final = 3
"""How many polls, results or commits of a record a story shows."""


@link(
    "handed-out",
    events.ClientPolled,
    needs=(INTERRUPTED.of("former"),),
    makes=(DELIVERED.of(ACTOR), INTERRUPTED.of(ACTOR, then=False)),
)
def handed_out(*, value: RecordValue, offset: events.Offset, former: events.ClientName | None = None) -> str:
    """A poll returned a record. ``former`` is the client that had polled the record before."""
    return f"polled {value} at offset {offset}{'' if former is None else ' again'}"


@link("effect-written", events.ClientSent, needs=(DELIVERED.of(ACTOR),))
def effect_written(*, value: RecordValue) -> str:
    return f"wrote {value}"


@link("effect-stored", needs=(DELIVERED.of(ACTOR),))
def effect_stored(*, value: RecordValue) -> str:
    return f"stored {value}"


@link("group-committed", needs_nothing_because=OWN_ACTION)
def group_committed(*, offset: events.Offset) -> str:
    return f"had committed up to offset {offset}"


@link(
    "application-died", events.ClientStopped, event="stopped", is_fault=True, makes=(INTERRUPTED.of(ACTOR),)
)
def application_died() -> str:
    return "stopped"


@link(
    "member-lost",
    events.MembershipLost,
    needs_nothing_because="a slow application is enough to lose its membership",
    makes=(INTERRUPTED.of(ACTOR),),
)
def member_lost(*, group: events.Text, reason: events.Text) -> str:
    return f"was no longer a member of group {group} ({reason})"


@link(
    "rebalanced",
    events.GroupStateChanged,
    role="as coordinator",
    needs_nothing_because="members join and leave by themselves",
    makes=(INTERRUPTED.of("members"),),
)
def rebalanced(*, group: events.Text, reason: events.Text, members: events.Texts = ()) -> str:
    """A group reassigned its partitions, including those of ``members``."""
    return f"made group {group} rebalance: {reason}"


@link(
    "transaction-given-up",
    events.TransactionReported,
    needs=(ABORT_ASKED.of("producer_id"),),
    makes=(INTERRUPTED.of(ACTOR),),
)
def transaction_given_up(*, producer_id: events.Number | None = None) -> str:
    return "learned that its transaction was aborted"


@link(
    "position-reset",
    events.OffsetReset,
    needs_nothing_because="a setting decides where a consumer without a position starts",
    makes=(INTERRUPTED.of(ACTOR),),
)
def position_reset(*, position: events.Offset, offset: events.Offset, policy: events.Text) -> str:
    if position < 0:
        return f"started at offset {offset} because nothing was committed ({AUTO_OFFSET_RESET}={policy})"
    return f"moved from offset {position} to {offset} ({AUTO_OFFSET_RESET}={policy})"


@cause("position-was-reset", needs_nothing_because=FROM_TRACE)
def position_was_reset(*, policy: events.Text) -> str:
    """A setting decides where a consumer without a valid position continues.

    The consumer skips or repeats the records between its old and its new position.
    """
    return f"a consumer without a record at its position continues at the {policy} offset"


@cause("log-lost-records", needs_nothing_because=FROM_TRACE)
def log_lost_records(*, partition: events.PartitionName, setting: events.Text) -> str:
    return f"the log of {partition} lost committed data ({setting})"


def tell_work(
    story: Story, work: GroupPartition, offset: int, value: RecordValue, effects: Iterable[Effect]
) -> None:
    """Tell who polled a record, what results it had, and the first commit beyond it."""
    group_work = story.index.group_work
    polls = work.readers_of(offset)
    readers = [group_work.client(poll.process) for poll in polls]
    for poll, client, former in _shortened(list(zip(polls, readers, [None, *readers], strict=False))):
        delivery = handed_out(poll.at_us, client, value=value, offset=offset, former=former)
        story.tell(story.start(poll.at_us), delivery, decides=True)
    for effect in _shortened(list(effects)):
        kind = effect_stored if effect.row < 0 else effect_written
        result = kind(effect.at_us, group_work.client(effect.process), value=effect.value)
        story.tell(story.start(effect.at_us), result, decides=True)
    beyond = [commit for commit in work.commits if commit.offset > offset]
    for commit in beyond[:1]:
        first = group_committed(commit.at_us, group_work.client(commit.process), offset=commit.offset)
        story.tell(story.start(commit.at_us), first)


@source(INTERRUPTED)
def _tell_interruption(story: Story, before: float, gap: Gap) -> None:
    """Tell what kept a client from finishing a record, or why another member polled it again.

    The client's process ended, its transaction failed, it lost its membership, or a fault delayed
    it until its group continued without it. Only events *before* a line of the trace count.
    """
    (client,) = gap.need.subject
    since = max(
        (number for number, link in story.links_of("handed-out") if number < before and link.actor == client),
        default=0,
    )
    for end in _work_ends(story.index):
        if since < end.number < before and end.event.client == client:
            _tell_work_end(story, end)
            return
    for number, fault in story.index.events(events.FaultStruck):
        if number < before and fault_end(story, fault.strike) > since and names(fault, client):
            tell_fault(story, number, fault, stalled=(client,), decides=True)
    for rebalance in story.index.events(events.GroupStateChanged):
        number, change = rebalance
        is_of_client = client in story.index.group_work.members(change.group)
        if since < number < before and change.reason and change.state == _PREPARING and is_of_client:
            story.tell_event(rebalance, rebalanced, members=(client,))
            break


def last_client_of(story: Story) -> str | None:
    """Return the last client that polled the record; if none did, the last to commit beyond it.

    None if the story has neither.
    """
    for kind in ("handed-out", "group-committed"):
        for _, work in reversed(story.links_of(kind)):
            return str(work.actor)
    return None


def _work_ends(index: Index) -> Iterator[TraceLine[_WorkEnd]]:
    """Yield the events that end a client's work on polled records before it is done."""
    ends: Sequence[TraceLine[_WorkEnd]]
    ends = index.events(events.ClientStopped, events.TransactionReported, events.MembershipLost)
    for line in ends:
        if not (isinstance(line.event, events.TransactionReported) and line.event.committed):
            yield line


def _tell_work_end(story: Story, line: TraceLine[_WorkEnd]) -> None:
    match line.event:
        case events.ClientStopped():
            story.tell_event(line, application_died)
        case events.MembershipLost():
            story.tell_event(line, member_lost)
        case events.TransactionReported(client=client):
            start = story.last(events.ProducerInitialized, before=line.number, client=client)
            producer_id = None if start is None else start.event.producer_id
            story.tell_event(line, transaction_given_up, producer_id=producer_id)


def _shortened(items: Sequence[T]) -> Sequence[T]:
    """Return all items or, if there are too many to show, the first ones and the last one."""
    return items if len(items) <= _SHOWN_MAX else [*items[: _SHOWN_MAX - 1], items[-1]]


def by_reset(story: Story, members: frozenset[str], offset: int, *, twice: bool) -> Cause | None:
    """Explain by the reset of a position why members polled a record *twice*, or skipped it.

    None if no reset explains it.
    """
    for reset in story.events(events.OffsetReset):
        event = reset.event
        if event.client not in members:
            continue
        is_repeated = event.offset <= offset < event.position
        is_skipped = event.position <= offset < event.offset
        if is_repeated if twice else is_skipped:
            story.tell_event(reset, position_reset, decides=True)
            conclusion = position_was_reset.conclude(policy=event.policy)
            setting = f"{AUTO_OFFSET_RESET}={event.policy}"
            return Cause((conclusion,), setting, promise.prevention(promise.RESETTING, setting))
    return None


def by_lost_log(index: Index, partition: str) -> Cause | None:
    """Explain an effect by a log that lost committed data: the partition's, or a coordinator's."""
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


@cause("commit-of-anybody", needs_nothing_because="settings of the application let any member commit")
def unfenced_commit() -> str:
    return "commits in transactions did not name the member of the group, so a former member could commit"


def lacks_group_metadata(index: Index, applications: Iterable[ApplicationSettings]) -> bool:
    """Return whether transactions commit offsets of a group without naming the member."""
    return not index.behaviours.transactions.transactional_commits_fenced or not all(
        application.group_metadata for application in applications
    )


@cause("effect-unexplained", needs_nothing_because=FORBIDDEN)
def effect_unexplained(*, promised: events.Text) -> str:
    return f"nothing permits it: the applications were promised {promised}"


class GroupInput(NamedTuple):
    """A committed record that a group had to process, with the results that the group derived."""

    group: str
    partition: str
    offset: int
    value: Value
    results: list[Effect]


def inputs_of_groups(index: Index) -> Iterator[GroupInput]:
    work = index.group_work
    for group in work.applications:
        for partition in work.sources(group):
            for offset, value in work.records_of(partition).items():
                results = work.effects[group].get(str(value), [])
                yield GroupInput(group, partition, offset, value, results)


def work_of(index: Index, group: str, partition: str) -> GroupPartition:
    return index.group_work.partitions.get(group, {}).get(partition) or GroupPartition()


def effect_finding(
    index: Index, record: GroupInput, claim_link: Link, explain: Callable[[Story, str, int], Cause]
) -> Finding:
    group, partition, offset, value, results = record
    story = Story(index, partition)
    tell_work(story, work_of(index, group, partition), offset, value, results)
    story.tell(END, claim_link)
    return explain(story, group, offset).finding(
        story,
        offset=offset,
        value=value,
        details=(("group", group), ("effects", [result.value for result in results])),
    )


def explain_otherwise(story: Story, applications: list[ApplicationSettings]) -> Cause:
    """Explain an effect that no setting permits.

    The cause is a log that lost committed data, or else a broken promise to the applications.
    """
    promised = ", ".join(dict.fromkeys(PROMISED[application.delivery] for application in applications))
    return by_lost_log(story.index, story.partition) or Cause(
        (effect_unexplained.conclude(promised=promised),)
    )


PROMISED: Final = {
    EXACTLY_ONCE: IN_TRANSACTION,
    IDEMPOTENT_SINK: IN_STORE,
    AT_LEAST_ONCE: COMMIT_AFTER,
    WATERMARK: COMMIT_AFTER,
    AT_MOST_ONCE: COMMIT_BEFORE,
    AUTO_COMMITTED: COMMIT_AUTOMATIC,
    HIGHEST_FINISHED: COMMIT_HIGHEST,
}
"""The promise to an application by its kind of delivery, named by how it commits offsets."""


def application_promises(permitting: Mapping[str, str]) -> Callable[[Evidence], str]:
    """Return a function that names what the applications of a run were promised.

    *permitting* maps a kind of delivery to the setting that permits the anomaly for it.
    """

    def in_run(evidence: Evidence) -> str:
        promises: dict[str, None] = {}
        for application in evidence.applications:
            setting = permitting.get(application.delivery)
            promises[PROMISED[application.delivery] if setting is None else f"nothing ({setting})"] = None
        return "; ".join(promises)

    return in_run


BY_LOST_LOG: Final = promise.restricted(
    "when the log of the input, or of the coordinator, loses committed data", promise.LOSSES_OF_LOGS
)
