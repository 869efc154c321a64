"""doubled-effect: more has come of a record than there are of it."""

from collections.abc import Iterator, Mapping
from typing import Final

from harrow.checks import promise
from harrow.checks.causes import effects
from harrow.checks.causes.loss import Cause
from harrow.checks.causes.story import Story
from harrow.checks.finding import Finding
from harrow.checks.history.records import Value
from harrow.checks.index import Index
from harrow.checks.link import BY_SETTING, RecordValue, cause, claim
from harrow.checks.permission import Permission, Promise
from harrow.checks.prevention import TRANSACTIONS
from harrow.checks.rule import Rule
from harrow.cluster_model.events import Number, Text
from harrow.cluster_model.topology import (
    AT_LEAST_ONCE,
    AUTO_COMMITTED,
    EXACTLY_ONCE,
    HIGHEST_FINISHED,
    WATERMARK,
)

_DOUBLES: Final[Mapping[str, str]] = {
    AT_LEAST_ONCE: effects.COMMIT_AFTER,
    WATERMARK: effects.COMMIT_AFTER,
    HIGHEST_FINISHED: effects.COMMIT_AFTER,
    AUTO_COMMITTED: effects.COMMIT_AUTOMATIC,
}
"""What promises nothing, by how an application commits."""


@claim("several-effects")
def several_effects(*, value: RecordValue, group: Text, times: Number) -> str:
    """More came of a record than there are of it."""
    return f"{times} results of {value} count, of group {group}"


@cause("processed-uncommitted", free_because="that the record was handed out again needs the interruption")
def processed_uncommitted(*, setting: Text) -> str:
    """What has been processed need not be committed."""
    return f"what has had its effect need not be committed, and is processed again then ({setting})"


@cause("unstable-offset", free_because=BY_SETTING)
def unstable_offset() -> str:
    """A member began where its group was before a transaction that was about to end."""
    return "a member was told an offset that a transaction was about to move on"


def find(index: Index) -> Iterator[Finding]:
    """Find records that have more effects than there are of them."""
    seen: dict[tuple[str, Value], None] = {}
    for group, partition, offset, value, made in effects.inputs_of_groups(index):
        if len(made) > effects.copies_of(index, group, value) and (group, value) not in seen:
            seen[group, value] = None
            yield effects.effect_finding(
                index,
                group,
                partition,
                offset,
                value,
                made,
                several_effects.conclude(value=value, group=group, times=len(made)),
                _cause,
            )


def _cause(story: Story, group: str, offset: int) -> Cause:
    index = story.index
    applications = index.group_work.applications[group]
    for application in applications:
        setting = _DOUBLES.get(application.delivery)
        if setting is not None:
            return Cause((processed_uncommitted.conclude(setting=setting),), setting, (TRANSACTIONS,))
    found = effects.by_reset(story, index.group_work.members(group), offset, twice=True)
    if found is not None:
        return found
    if any(application.delivery == EXACTLY_ONCE for application in applications):
        if effects.lacks_group_metadata(index, applications):
            return Cause((effects.commit_of_anybody.conclude(),), effects.NO_GROUP_METADATA)
        if not index.evidence.does().groups.stable_offset_fetch:
            return Cause((unstable_offset.conclude(),), effects.NO_GROUP_METADATA)
    return effects.by_lost_log(index, story.partition) or effects.unexplained(story, applications)


RULE: Final = Rule(
    name=promise.DOUBLED_EFFECT,
    definition=(
        "An application has made more of a record of its input than there are of that record: several of its results count. "
        "One result that stands at two offsets is a duplicate, and no second effect."
    ),
    source="KafkaProducer.sendOffsetsToTransaction, KafkaConsumer (Offsets and Consumer Position); KIP-98, KIP-447.",
    promise=Promise(
        promised_by=(effects.IN_TRANSACTION, effects.IN_STORE, effects.COMMIT_BEFORE),
        permissions=(
            *(Permission(setting=setting) for setting in dict.fromkeys(_DOUBLES.values())),
            Permission(
                setting=effects.NO_GROUP_METADATA,
                when="when a member that was taken for dead goes on, or a transaction ends late",
            ),
            *promise.RESETTING.permissions,
            *effects.BY_LOST_LOG,
        ),
        releases="in a transaction since 0.11 (KIP-98), where groups assign partitions since 2.5 (KIP-447)",
        in_run=effects.held_to(_DOUBLES),
    ),
    find=find,
    verb="with several effects:",
)
