"""lost-effect: an application is done with a record, and nothing has come of it."""

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
from harrow.checks.rule import Rule
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
"""What promises nothing, by how an application commits."""


@claim("no-effect")
def no_effect(*, value: RecordValue, group: Text) -> str:
    """A group is done with a record, and nothing has come of it."""
    return f"group {group} is done with {value}, and nothing that counts has come of it"


@cause("committed-unprocessed", needs=(INTERRUPTED.of("client"),))
def committed_unprocessed(*, setting: Text, client: ClientName | None = None) -> str:
    """What is committed need not have been processed."""
    return f"what is committed need not have had its effect ({setting})"


@cause("read-on-after-abort", needs=(INTERRUPTED.of("client"),))
def read_on_after_abort(*, client: ClientName | None = None) -> str:
    """An application that does not go back reads on behind what it has aborted."""
    return "an application that polls on after a transaction that it has aborted never processes what was in that"


def find(index: Index) -> Iterator[Finding]:
    """Find records with which a group is done, without as many effects as there are of them."""
    for group, partition, offset, value, made in effects.inputs_of_groups(index):
        work = effects.work_of(index, group, partition)
        if offset < work.passed() and len(made) < effects.copies_of(index, group, value):
            yield effects.effect_finding(
                index,
                group,
                partition,
                offset,
                value,
                made,
                no_effect.conclude(value=value, group=group),
                _cause,
            )


def _cause(story: Story, group: str, offset: int) -> Cause:
    index = story.index
    applications = index.group_work.applications[group]
    found = effects.by_reset(story, index.group_work.members(group), offset, twice=False)
    if found is not None:
        return found
    for application in applications:
        setting = _LOSES.get(application.delivery)
        if setting is not None:
            prevented_by = (WATERMARKS,) if application.delivery == HIGHEST_FINISHED else (TRANSACTIONS,)
            unprocessed = committed_unprocessed.conclude(
                setting=setting, client=effects.interrupted_client(story)
            )
            return Cause((unprocessed,), setting, prevented_by)
    if not all(application.rewinds for application in applications):
        read_on = read_on_after_abort.conclude(client=effects.interrupted_client(story))
        return Cause((read_on,), effects.NO_REWIND)
    return effects.by_lost_log(index, story.partition) or effects.unexplained(story, applications)


RULE: Final = Rule(
    name=promise.LOST_EFFECT,
    definition=(
        "A record of a topic that an application reads is committed, its group is done with it, for an offset behind it is committed, "
        "and nothing that the application has made of it counts: nothing that was acknowledged, or that a consumer "
        "with read_committed gets."
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
        in_run=effects.held_to(_LOSES),
    ),
    find=find,
    verb="without effect:",
)
