"""read-above-hw: a broker served a consumer records that are not committed."""

from collections.abc import Iterator
from typing import Final

from harrow.checks.causes.copies import tell_stored
from harrow.checks.causes.links import isr_text
from harrow.checks.causes.story import Story, brokers
from harrow.checks.finding import Finding
from harrow.checks.index import Index
from harrow.checks.link import FORBIDDEN, cause, link
from harrow.checks.permission import Promise
from harrow.checks.promise import HIGH_WATERMARK, READ_ABOVE_HW
from harrow.checks.rule import Rule
from harrow.cluster_model import events

_RAISED: Final = events.HighWatermarkSet.name
_SERVED: Final = events.RecordsServed.name
_OPENED: Final = events.LogOpened.name


@link("read", events.ClientPolled, events.RecordsServed, needs_nothing_because=FORBIDDEN)
def read(
    *, client: events.ClientName, end_offset: events.Offset, hw: events.Offset, offset: events.Offset
) -> str:
    return f"served {client} up to offset {end_offset} (exclusive), when its high watermark was {hw}"


@cause("read-before-commit", needs_nothing_because=FORBIDDEN)
def read_before_commit(*, uncommitted: events.Offset) -> str:
    return f"offset {uncommitted} was not committed"


@cause("read-before-replication", needs_nothing_because=FORBIDDEN)
def read_before_replication(
    *, uncommitted: events.Offset, isr: events.Brokers, missing: events.Brokers
) -> str:
    return f"offset {uncommitted} was not committed: {brokers(missing)} of the ISR {isr_text(isr)} did not have it"


def find(index: Index) -> Iterator[Finding]:
    """Compare each answer to a consumer with the broker's high watermark at that moment.

    The high watermark comes from the trace, not from the answer. If a follower answers, its own
    high watermark counts. A high watermark never passes uncommitted records, and falls when the log
    is truncated.
    """
    # By partition and broker. A tuple as key would take several times as long.
    high_watermarks: dict[str, dict[int, int]] = {}
    for number, event in index.raw_events(
        events.HighWatermarkSet, events.LogOpened, events.LogTruncated, events.RecordsServed
    ):
        name: str = event[1]
        broker: int = event[2]
        partition: str = event[3]
        of_partition = high_watermarks.get(partition)
        if of_partition is None:
            if name == _OPENED and not event[5]:
                continue  # A replica has this high watermark without an entry, too.
            of_partition = high_watermarks[partition] = {}
        if name == _RAISED:
            of_partition[broker] = event[4]
        elif name == _SERVED:
            hw = of_partition.get(broker, 0)
            end_offset: int = event[6]
            if end_offset > hw:
                yield _finding(index, number, events.RecordsServed(event[0], *event[2:]), hw)
        elif name == _OPENED:
            of_partition[broker] = event[5]
        else:
            of_partition[broker] = min(of_partition.get(broker, 0), event[5])


def _finding(index: Index, number: int, event: events.RecordsServed, hw: int) -> Finding:
    broker, partition = event.broker, event.partition
    offset = max(event.offset, hw)
    story = Story(index, partition)
    group = [copy for copy in story.copies_at(offset) if copy.is_there(number)]
    for copy in group:
        tell_stored(story, copy)
    answer = read(event.at_us, broker, client=event.client, end_offset=event.end_offset, hw=hw, offset=offset)
    story.tell(number, answer)
    isr = story.isr_at(broker, number) or ()
    missing = tuple(member for member in isr if all(copy.broker != member for copy in group))
    if missing:
        conclusion = read_before_replication.conclude(uncommitted=offset, isr=isr, missing=missing)
    else:
        conclusion = read_before_commit.conclude(uncommitted=offset)
    return Finding(
        partition=partition,
        offset=offset,
        value=group[0].value if group else None,
        chain=story.chain(conclusion),
        details=(("client", event.client),),
    )


RULE: Final = Rule(
    name=READ_ABOVE_HW,
    goes_by_order=True,
    definition=(
        "A broker served a consumer records at or above its high watermark, which is the first offset that is not visible."
    ),
    source="ReplicaManager.readFromLocalLog (FetchHighWatermark).",
    promise=Promise(promised_by=(HIGH_WATERMARK,)),
    find=find,
    is_tried=lambda index: index.has(events.RecordsServed),
    verb="read too early",
)
