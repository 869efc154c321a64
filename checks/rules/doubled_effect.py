"""doubled-effect: an application has more results of a record than copies of it."""

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
from harrow.checks.rule import DOUBLED, Rule
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
"""The setting that permits doubled effects, by kind of delivery."""


@claim("several-effects")
def several_effects(*, value: RecordValue, group: Text, times: Number) -> str:
    return f"group {group} has {times} results of {value} that count"


@cause("processed-uncommitted", needs_nothing_because="the second poll of the record needs the interruption")
def processed_uncommitted(*, setting: Text) -> str:
    return f"a record may have its effect before its offset is committed, and is then processed again ({setting})"


@cause("unstable-offset", needs_nothing_because=BY_SETTING)
def unstable_offset() -> str:
    return "a member got an offset that a pending transaction was about to advance"


def find(index: Index) -> Iterator[Finding]:
    """Find records with more results of an application than copies in its input."""
    reported: set[tuple[str, Value]] = set()
    for record in effects.inputs_of_groups(index):
        group, value, times = record.group, record.value, len(record.results)
        if times > index.group_work.copies(group).get(value, 1) and (group, value) not in reported:
            reported.add((group, value))
            claim_link = several_effects.conclude(value=value, group=group, times=times)
            yield effects.effect_finding(index, record, claim_link, _cause)


def _cause(story: Story, group: str, offset: int) -> Cause:
    index = story.index
    applications = index.group_work.applications[group]
    for application in applications:
        setting = _DOUBLES.get(application.delivery)
        if setting is not None:
            return Cause((processed_uncommitted.conclude(setting=setting),), setting, (TRANSACTIONS,))
    reset = effects.by_reset(story, index.group_work.members(group), offset, twice=True)
    if reset is not None:
        return reset
    if any(application.delivery == EXACTLY_ONCE for application in applications):
        if effects.lacks_group_metadata(index, applications):
            return Cause((effects.unfenced_commit.conclude(),), effects.NO_GROUP_METADATA)
        if not index.behaviours.groups.stable_offset_fetch:
            return Cause((unstable_offset.conclude(),), effects.NO_GROUP_METADATA)
    return effects.explain_otherwise(story, applications)


RULE: Final = Rule(
    name=promise.DOUBLED_EFFECT,
    definition=(
        "Several results count that an application made of one record of its input. "
        "One result at two offsets is a duplicate, not a second effect."
    ),
    source="KafkaProducer.sendOffsetsToTransaction, KafkaConsumer (Offsets and Consumer Position); KIP-98, KIP-447.",
    promise=Promise(
        promised_by=(effects.IN_TRANSACTION, effects.IN_STORE, effects.COMMIT_BEFORE),
        permissions=(
            *(Permission(setting=setting) for setting in dict.fromkeys(_DOUBLES.values())),
            Permission(
                setting=effects.NO_GROUP_METADATA,
                when="when a member that was taken for dead continues, or a transaction ends late",
            ),
            *promise.RESETTING.permissions,
            *effects.BY_LOST_LOG,
        ),
        releases="in a transaction since 0.11 (KIP-98), where groups assign partitions since 2.5 (KIP-447)",
        in_run=effects.application_promises(_DOUBLES),
    ),
    find=find,
    is_tried=lambda index: bool(index.evidence.applications),
    verb="with several effects:",
    fate_for_readers=DOUBLED,
)
