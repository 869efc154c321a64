"""misrouted: a record is in a partition that it was not sent to."""

from collections.abc import Iterator, Sequence
from typing import Final

from harrow.checks import promise
from harrow.checks.causes.copies import tell_stored
from harrow.checks.causes.requests import tell_sent
from harrow.checks.causes.story import Story
from harrow.checks.finding import Finding
from harrow.checks.history.anomalies import ANOMALIES
from harrow.checks.history.misrouted_records import first_sends, misrouted_records, was_sent_elsewhere
from harrow.checks.history.records import Value
from harrow.checks.index import Index
from harrow.checks.link import Link
from harrow.checks.permission import Promise
from harrow.checks.rule import Rule
from harrow.cluster_model.lazy_dataclass import replace


def find(index: Index) -> Iterator[Finding]:
    """Find records that are in a partition to which they were not sent.

    Polls returned the records there, or the last leader's log has them. The history of a run has
    all sends, so a value identifies a record even if it was also sent to other partitions.
    """
    for sighting in misrouted_records(index.orders, is_complete=True):
        finding = sighting.finding()
        assert finding.value is not None, "a polled record has a value"
        chain = _chain(index, finding.partition, finding.value, dict(finding.details)["sent_to"])
        yield replace(finding, chain=chain)
    for partition in index.written:
        partition_history = index.history.partitions.get(partition)
        values = {} if partition_history is None else partition_history.rows
        log = index.last_log(partition)
        if not set(log).difference(values) - {None}:
            continue
        unsent = [
            (offset, value) for offset, value in enumerate(log) if value is not None and value not in values
        ]
        senders = first_sends(index.history, {value for _, value in unsent}) if unsent else {}
        for offset, value in unsent:
            if value in senders:
                sent_to = senders[value][0]
                yield Finding(
                    partition=partition,
                    offset=offset,
                    value=value,
                    chain=_chain(index, partition, value, sent_to),
                    permitted_by=None,
                    details=(("sent_to", sent_to),),
                )


def _chain(index: Index, partition: str, value: Value, sent_to: str) -> Sequence[Link]:
    """Tell who sent a record, and which leader appended it in the wrong partition."""
    story = Story(index, partition)
    for send in index.sends_of(sent_to, value)[:1]:
        tell_sent(story, send, index.evidence.process_names[send.process])
    for copy in [copy for copy in story.copies(value) if not copy.is_copy][:1]:
        tell_stored(story, copy, with_producer=copy.producer_id >= 0)
    return story.chain(was_sent_elsewhere.conclude(value=value, here=partition, there=sent_to))


RULE: Final = Rule(
    name=promise.MISROUTED,
    definition=(
        "A record was polled from a partition, or is in its log, although it was sent to another one. "
        f"In a history alone: {ANOMALIES[promise.MISROUTED].definition}"
    ),
    source="ProducerRecord (topic and partition to which a record is sent); KAFKA-19012 (Java clients 2.8.0 to 4.1.1).",
    promise=Promise(promised_by=(promise.ADDRESSED,)),
    find=find,
    is_tried=Index.has_sends,
    verb="delivered to the wrong partition",
)
"""In a run, unlike in a history alone, a finding shows which leader appended the record, and
records in logs count even if no poll returned them."""
