"""lost-effect, doubled-effect: what came of the records that an application was to process."""

from collections.abc import Callable, Iterator
from typing import Final

from harrow.checks import promise
from harrow.checks.causes.effects import by_lost_log, by_reset, tell_work
from harrow.checks.causes.loss import Cause
from harrow.checks.causes.story import END, Story
from harrow.checks.evidence import ApplicationSettings, Evidence
from harrow.checks.finding import Finding
from harrow.checks.group_work import Effect, GroupPartition
from harrow.checks.history.records import Value
from harrow.checks.index import Index
from harrow.checks.link import RecordValue, cause, claim
from harrow.checks.permission import Permission, Promise
from harrow.checks.prevention import COORDINATION, TRANSACTIONS, WATERMARKS, by_behaviour, lacks
from harrow.checks.rule import Rule
from harrow.cluster_model.events import Number, Text
from harrow.cluster_model.topology import (
    AT_LEAST_ONCE,
    AT_MOST_ONCE,
    AUTO_COMMITTED,
    EXACTLY_ONCE,
    HIGHEST_FINISHED,
    IDEMPOTENT_SINK,
    WATERMARK,
)

IN_TRANSACTION: Final = "offsets in the transaction"
IN_STORE: Final = "offsets stored with results"
COMMIT_AFTER: Final = "commit after processing"
COMMIT_BEFORE: Final = "commit before processing"
COMMIT_AUTOMATIC: Final = "enable.auto.commit=true"
COMMIT_HIGHEST: Final = "commit of the highest finished offset"
NO_REWIND: Final = "no seek after an abort"
NO_GROUP_METADATA: Final = "no group metadata (KIP-447)"

_LOSES: Final = {
    AT_MOST_ONCE: COMMIT_BEFORE,
    AUTO_COMMITTED: COMMIT_AUTOMATIC,
    HIGHEST_FINISHED: COMMIT_HIGHEST,
}
_DOUBLES: Final = {
    AT_LEAST_ONCE: COMMIT_AFTER,
    WATERMARK: COMMIT_AFTER,
    HIGHEST_FINISHED: COMMIT_AFTER,
    AUTO_COMMITTED: COMMIT_AUTOMATIC,
}
"""What promises nothing, by how an application commits."""


@claim("no-effect")
def no_effect(*, value: RecordValue, group: Text) -> str:
    """A group is done with a record, and nothing has come of it."""
    return f"group {group} is done with {value}, and nothing that counts has come of it"


@claim("several-effects")
def several_effects(*, value: RecordValue, group: Text, times: Number) -> str:
    """More came of a record than there are of it."""
    return f"{times} results of {value} count, of group {group}"


@cause("committed-unprocessed")
def committed_unprocessed(*, setting: Text) -> str:
    """What is committed need not have been processed."""
    return f"what is committed need not have had its effect ({setting})"


@cause("processed-uncommitted")
def processed_uncommitted(*, setting: Text) -> str:
    """What has been processed need not be committed."""
    return f"what has had its effect need not be committed, and is processed again then ({setting})"


@cause("read-on-after-abort")
def read_on_after_abort() -> str:
    """An application that does not go back reads on behind what it has aborted."""
    return "an application that polls on after a transaction that it has aborted never processes what was in that"


@cause("commit-of-anybody")
def commit_of_anybody() -> str:
    """The coordinator of a group was not told which member commits, so that it refused nobody."""
    return "who commits offsets in a transaction did not say as which member of the group, so that one of the past could"


@cause("unstable-offset")
def unstable_offset() -> str:
    """A member began where its group was before a transaction that was about to end."""
    return "a member was told an offset that a transaction was about to move on"


@cause("effect-unexplained")
def effect_unexplained(*, promised: Text) -> str:
    """Nothing permits it."""
    return f"nothing permits it: {promised}"


def find_lost(index: Index) -> Iterator[Finding]:
    """Find records with which a group is done, without as many effects as there are of them."""
    for group, partition, offset, value, effects in _inputs(index):
        work = _work(index, group, partition)
        if offset < work.passed() and len(effects) < _copies(index, group, value):
            yield _finding(index, group, partition, offset, value, effects, _cause_of_loss)


def find_doubled(index: Index) -> Iterator[Finding]:
    """Find records that have more effects than there are of them."""
    seen: dict[tuple[str, Value], None] = {}
    for group, partition, offset, value, effects in _inputs(index):
        if len(effects) > _copies(index, group, value) and (group, value) not in seen:
            seen[group, value] = None
            yield _finding(index, group, partition, offset, value, effects, _cause_of_double)


def _inputs(index: Index) -> Iterator[tuple[str, str, int, Value, list[Effect]]]:
    """Yield each committed record that a group was to process, with what has come of it."""
    work = index.group_work
    for group in work.applications:
        found = work.effects[group]
        for partition in work.sources(group):
            for offset, value in work.records_of(partition).items():
                yield group, partition, offset, value, found.get(str(value), [])


def _copies(index: Index, group: str, value: Value) -> int:
    return index.group_work.copies(group).get(value, 1)


def _work(index: Index, group: str, partition: str) -> GroupPartition:
    return index.group_work.partitions.get(group, {}).get(partition) or GroupPartition()


def _finding(
    index: Index,
    group: str,
    partition: str,
    offset: int,
    value: Value,
    effects: list[Effect],
    explain: Callable[[Story, str, int], Cause],
) -> Finding:
    story = Story(index, partition)
    tell_work(story, _work(index, group, partition), offset, value, effects)
    if effects:
        story.tell(END, several_effects.conclude(value=value, group=group, times=len(effects)))
    else:
        story.tell(END, no_effect.conclude(value=value, group=group))
    why = explain(story, group, offset)
    return Finding(
        partition=partition,
        offset=offset,
        value=value,
        chain=story.chain(*why.links),
        permitted_by=why.permitted_by,
        prevented_by=why.prevented_by,
        details=(("group", group), ("effects", [effect.value for effect in effects])),
    )


def _cause_of_loss(story: Story, group: str, offset: int) -> Cause:
    index = story.index
    applications = index.group_work.applications[group]
    found = by_reset(story, index.group_work.members(group), offset, twice=False)
    if found is not None:
        return found
    for application in applications:
        setting = _LOSES.get(application.delivery)
        if setting is not None:
            prevented_by = (WATERMARKS,) if application.delivery == HIGHEST_FINISHED else (TRANSACTIONS,)
            return Cause((committed_unprocessed.conclude(setting=setting),), setting, prevented_by)
    if not all(application.rewinds for application in applications):
        return Cause((read_on_after_abort.conclude(),), NO_REWIND)
    return by_lost_log(index, story.partition) or _unexplained(story, applications)


def _cause_of_double(story: Story, group: str, offset: int) -> Cause:
    index = story.index
    applications = index.group_work.applications[group]
    for application in applications:
        setting = _DOUBLES.get(application.delivery)
        if setting is not None:
            return Cause((processed_uncommitted.conclude(setting=setting),), setting, (TRANSACTIONS,))
    found = by_reset(story, index.group_work.members(group), offset, twice=True)
    if found is not None:
        return found
    if any(application.delivery == EXACTLY_ONCE for application in applications):
        if lacks(index.evidence, "transactional_commits_fenced") or not all(
            application.group_metadata for application in applications
        ):
            return Cause((commit_of_anybody.conclude(),), NO_GROUP_METADATA)
        if lacks(index.evidence, "stable_offset_fetch"):
            return Cause((unstable_offset.conclude(),), NO_GROUP_METADATA)
    return by_lost_log(index, story.partition) or _unexplained(story, applications)


def _unexplained(story: Story, applications: list[ApplicationSettings]) -> Cause:
    promised = ", ".join(dict.fromkeys(_PROMISED[application.delivery] for application in applications))
    prevented_by = by_behaviour(story.evidence, COORDINATION)
    return Cause((effect_unexplained.conclude(promised=promised),), None, prevented_by)


_PROMISED: Final = {
    EXACTLY_ONCE: IN_TRANSACTION,
    IDEMPOTENT_SINK: IN_STORE,
    AT_LEAST_ONCE: COMMIT_AFTER,
    WATERMARK: COMMIT_AFTER,
    AT_MOST_ONCE: COMMIT_BEFORE,
    AUTO_COMMITTED: COMMIT_AUTOMATIC,
    HIGHEST_FINISHED: COMMIT_HIGHEST,
}


def _held_to(permitting: dict[str, str]) -> Callable[[Evidence], str]:
    def held_to(evidence: Evidence) -> str:
        """Return what the applications of a run were promised."""
        found: dict[str, None] = {}
        for application in evidence.applications:
            setting = permitting.get(application.delivery)
            found[_PROMISED[application.delivery] if setting is None else f"nothing ({setting})"] = None
        return "; ".join(found) or "nothing (no application)"

    return held_to


_BY_LOST_LOG: Final = tuple(
    Permission(
        setting=permission.setting,
        when="when a log loses what was committed in it: that of the input, or the coordinator's",
        prevented_by=permission.prevented_by,
    )
    for permission in (promise.BY_UNCLEAN_ELECTION, promise.BY_POWER_LOSS, promise.BY_DISK_FAILURE)
)

LOST: Final = Rule(
    name=promise.LOST_EFFECT,
    definition=(
        "A record of a topic that an application reads is committed, its group is done with it, for an offset behind it is committed, "
        "and nothing that the application has made of it counts: nothing that was acknowledged, or that a consumer "
        "with read_committed gets."
    ),
    source="KafkaProducer.sendOffsetsToTransaction, KafkaConsumer (Offsets and Consumer Position); KIP-98, KIP-447.",
    promise=Promise(
        promised_by=(IN_TRANSACTION, IN_STORE, COMMIT_AFTER),
        permissions=(
            *(Permission(setting=setting) for setting in dict.fromkeys(_LOSES.values())),
            Permission(setting=NO_REWIND),
            *promise.RESETTING.permissions,
            *_BY_LOST_LOG,
        ),
        releases="in a transaction since 0.11 (KIP-98)",
        in_run=_held_to(_LOSES),
    ),
    find=find_lost,
    verb="without effect:",
)

DOUBLED: Final = Rule(
    name=promise.DOUBLED_EFFECT,
    definition=(
        "An application has made more of a record of its input than there are of that record: several of its results count. "
        "One result that stands at two offsets is a duplicate, and no second effect."
    ),
    source="KafkaProducer.sendOffsetsToTransaction, KafkaConsumer (Offsets and Consumer Position); KIP-98, KIP-447.",
    promise=Promise(
        promised_by=(IN_TRANSACTION, IN_STORE, COMMIT_BEFORE),
        permissions=(
            *(Permission(setting=setting) for setting in dict.fromkeys(_DOUBLES.values())),
            Permission(
                setting=NO_GROUP_METADATA,
                when="when a member that was taken for dead goes on, or a transaction ends late",
            ),
            *promise.RESETTING.permissions,
            *_BY_LOST_LOG,
        ),
        releases="in a transaction since 0.11 (KIP-98), where groups assign partitions since 2.5 (KIP-447)",
        in_run=_held_to(_DOUBLES),
    ),
    find=find_doubled,
    verb="with several effects:",
)
