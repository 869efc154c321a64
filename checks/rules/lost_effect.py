"""lost-effect: an application has passed a record, but no result of the record counts."""

from collections.abc import Iterator, Mapping
from typing import Final

from harrow.checks import promise
from harrow.checks.causes import effects
from harrow.checks.causes.facts import INTERRUPTED
from harrow.checks.causes.loss import Cause
from harrow.checks.causes.story import Story
from harrow.checks.finding import Finding
from harrow.checks.index import Index
from harrow.checks.link import RecordValue, cause, claim
from harrow.checks.permission import Permission, Promise
from harrow.checks.prevention import TRANSACTIONS, WATERMARKS
from harrow.checks.rule import LOST, Rule
from harrow.cluster_model.events import ClientName, Text
from harrow.cluster_model.topology import (
    AT_MOST_ONCE,
    AUTO_COMMITTED,
    HIGHEST_FINISHED,
)

_LOSES: Final[Mapping[str, str]] = {
    AT_MOST_ONCE: effects.COMMIT_BEFORE,
    AUTO_COMMITTED: effects.COMMIT_AUTOMATIC,
    HIGHEST_FINISHED: effects.COMMIT_HIGHEST,
}
"""The setting that permits lost effects, by kind of delivery."""


@claim("no-effect")
def no_effect(*, value: RecordValue, group: Text) -> str:
    return f"group {group} has passed {value}, but no result of it counts"


@cause("committed-unprocessed", needs=(INTERRUPTED.of("client"),))
def committed_unprocessed(*, setting: Text, client: ClientName | None = None) -> str:
    return f"an offset may be committed before its record has had its effect ({setting})"


@cause("read-on-after-abort", needs=(INTERRUPTED.of("client"),))
def read_on_after_abort(*, client: ClientName | None = None) -> str:
    return "an application that polls on after an aborted transaction never processes the records of that transaction"


def find(index: Index) -> Iterator[Finding]:
    """Find records that a group has passed, but with fewer results than the record has copies."""
    for record in effects.inputs_of_groups(index):
        group, partition, offset, value, results = record
        work = effects.work_of(index, group, partition)
        if offset < work.passed and len(results) < index.group_work.copies(group).get(value, 1):
            claim_link = no_effect.conclude(value=value, group=group)
            yield effects.effect_finding(index, record, claim_link, _cause)


def _cause(story: Story, group: str, offset: int) -> Cause:
    index = story.index
    applications = index.group_work.applications[group]
    reset = effects.by_reset(story, index.group_work.members(group), offset, twice=False)
    if reset is not None:
        return reset
    for application in applications:
        setting = _LOSES.get(application.delivery)
        if setting is not None:
            prevented_by = (WATERMARKS,) if application.delivery == HIGHEST_FINISHED else (TRANSACTIONS,)
            unprocessed = committed_unprocessed.conclude(
                setting=setting, client=effects.last_client_of(story)
            )
            return Cause((unprocessed,), setting, prevented_by)
    if not all(application.rewinds for application in applications):
        skipped = read_on_after_abort.conclude(client=effects.last_client_of(story))
        return Cause((skipped,), effects.NO_REWIND)
    return effects.explain_otherwise(story, applications)


RULE: Final = Rule(
    name=promise.LOST_EFFECT,
    definition=(
        "A record in the input of an application is committed, and its group has passed it, because an offset beyond it is "
        "committed. But no result that the application made of it counts: none was acknowledged, and a read_committed "
        "consumer gets none."
    ),
    source="KafkaProducer.sendOffsetsToTransaction, KafkaConsumer (Offsets and Consumer Position); KIP-98, KIP-447.",
    promise=Promise(
        promised_by=(effects.IN_TRANSACTION, effects.IN_STORE, effects.COMMIT_AFTER),
        permissions=(
            *(Permission(setting=setting) for setting in dict.fromkeys(_LOSES.values())),
            Permission(setting=effects.NO_REWIND),
            *promise.RESETTING.permissions,
            *effects.BY_LOST_LOG,
        ),
        releases="in a transaction since 0.11 (KIP-98)",
        in_run=effects.application_promises(_LOSES),
    ),
    find=find,
    is_tried=lambda index: bool(index.evidence.applications),
    verb="without effect:",
    fate_for_readers=LOST,
)
