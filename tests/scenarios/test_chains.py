"""Causal chains of the library: each finding has the chain of its scenario.

The expected links must appear in order, with their kinds, brokers and texts. Other links may come
between them. An invariant that breaks has its own chain.
"""

import json
from collections.abc import Iterable
from typing import Final

from harrow.campaigns.record.phrases import because, preventions, timed_sentence
from harrow.campaigns.record.report import finding_as_mapping
from harrow.checks.finding import Finding
from harrow.checks.link import Link
from tests.scenarios.library_plans import each_plan, fixed_names, proven_library_run

ExpectedLink = tuple[str, int | None, str]
"""The kind of a link, its broker, and a part of its text."""

RULES: Final = ("lost-write", "duplicate", "nonmonotonic-send", "inconsistent-offsets", "unseen")
RULES_OF_LOGS: Final = ("read-above-hw", "log-divergence", "two-leaders")
SEEDS: Final = (0, 1)

FLUSHING: Final = "log.flush.interval.messages=1"
KIP_101: Final = "KIP-101, from 0.11 on"
KAFKA_9338: Final = "KAFKA-9338, from 2.5 on"
CLEAN_ONLY: Final = ("unclean.leader.election.enable=false",)
"""Not min.insync.replicas=2, because then the record is refused, sent again, and duplicated."""

CLEAN: Final = ("unclean.leader.election.enable=false", "min.insync.replicas=2")


def unclean(
    record: str, *others: ExpectedLink, isr: str = "[0, 1] to [0]", truncates: bool = True
) -> tuple[ExpectedLink, ...]:
    """Return the chain of an acked record that an unclean leader lacked."""
    end: ExpectedLink = (
        ("truncated", 0, f"asked broker 1 where epoch 0 ends, got 1, and truncated to 1, removing {record}")
        if truncates
        else ("not-truncated", 0, f"with a high watermark of 2 truncated nothing: it still has {record}")
    )
    return (
        ("isr-shrank", 0, isr),
        ("acked", 0, f"acked {record} when the ISR had shrunk to [0] (min.insync.replicas=1)"),
        ("stopped", 0, f"crashed, the only one with {record}"),
        ("elected-uncleanly", 1, f"from outside the ISR [0], without {record}"),
        *others,
        ("recovered", 0, f"came back with {record}"),
        end,
    )


def lost_unflushed(record: str, *others: ExpectedLink, truncates: bool = True) -> tuple[ExpectedLink, ...]:
    """Return the chain of m2 of divergence-by-hw: broker 1 lost it unflushed, and then led."""
    end: ExpectedLink = (
        ("truncated", 0, f"asked broker 1 where epoch 0 ends, got 1, and truncated to 1, removing {record}")
        if truncates
        else ("not-truncated", 0, f"with a high watermark of 2 truncated nothing: it still has {record}")
    )
    return (
        ("appended", 0, f"{record} at offset 1 (epoch 0)"),
        ("copied", 1, record),
        ("stopped", 0, "crashed"),
        ("unflushed-lost", 1, "lost power, and all that it had not flushed, from offset 1 on"),
        ("elected", 1, f"without {record}"),
        *others,
        ("recovered", 0, "LEO 2, high watermark 2"),
        end,
    )


def all_lost_power(record: str, offset: int, *brokers: int) -> tuple[ExpectedLink, ...]:
    """Return the chain of a record that all replicas had, but none had flushed."""
    return (
        ("appended", 0, f"{record} at offset {offset}"),
        ("copied", None, record),
        ("acked", 0, f"all of the ISR {list(brokers)} had it"),
        *(("unflushed-lost", broker, "lost power, and all that it had not flushed") for broker in brokers),
    )


def two_records_at_one_offset() -> tuple[ExpectedLink, ...]:
    """Return the chain of two committed records of reverted-log-start at one offset."""
    return (
        ("appended", 0, "m1 at offset 1 (epoch 0)"),
        ("elected", 1, "without m1 (epoch 1)"),
        ("appended", 1, "m2 at offset 1 (epoch 1)"),
        ("copied", 2, "m2"),
        ("retention-deleted", 1, "deleted its log below offset 2 (DeleteRecords), with m2"),
        ("not-truncated", 0, "it still has m1"),
    )


def lost_with_only_disk(record: str) -> tuple[ExpectedLink, ...]:
    """Return the chain of a record that only one disk had."""
    return (
        ("appended", 0, record),
        ("stopped", 0, f"crashed, the only one with {record}"),
        ("disk-lost", 0, f"lost its disk, and its log, with {record}"),
        ("conclusion", None, f"every replica that had {record} lost its disk"),
    )


def acked_by_former_leader(record: str) -> tuple[ExpectedLink, ...]:
    """Return the chain of a record that a slow leader acked after another broker became leader."""
    return (
        ("elected", 0, "was elected as the preferred leader (epoch 2)"),
        ("appended", 1, f"{record} at offset"),
        ("acked", 1, f"acked {record} (acks=1) before any follower had it"),
        ("truncated", 1, f"removing {record}"),
    )


def damaged(why: str = "") -> tuple[ExpectedLink, ...]:
    """Return the chain of m1 of bit-rot, which is unreadable."""
    return (
        ("appended", 0, "m1 at offset 1"),
        ("damaged", 0, "has damaged bytes in m1"),
        ("conclusion", None, why),
    )


def expired(record: str, setting: str) -> tuple[ExpectedLink, ...]:
    """Return the chain of a record that no consumer read before its topic deleted it."""
    return (
        ("appended", 0, record),
        ("acked", 0, "all of the ISR [0, 1, 2] had it"),
        ("retention-deleted", None, f"({setting}), with {record}"),
        ("conclusion", None, f"{setting} no longer protected"),
    )


def deleted_by_request(record: str) -> tuple[ExpectedLink, ...]:
    """Return the chain of a record that an administrator deleted before a consumer read it."""
    return (
        ("appended", 0, record),
        ("acked", 0, "all of the ISR [0, 1] had it"),
        ("retention-deleted", 0, f"below offset 2 (DeleteRecords), with {record}"),
        ("retention-deleted", 1, "where its leader's log begins"),
        ("conclusion", None, f"an administrator had {record} deleted"),
    )


COMPACTED_ABOVE_HW: Final[tuple[ExpectedLink, ...]] = (
    ("appended", 0, "price-1 at offset 0 (epoch 0)"),
    ("acked", 0, "all of the ISR [0, 1, 2] had it"),
    ("compacted", 0, "without price-1 of offset 0: price-2 at offset 1 has the same key"),
    ("elected", 1, "from the ISR [0, 1, 2], with price-1 (epoch 1)"),
    ("truncated", 0, "removing price-2"),
    ("elected", 0, "without price-1 (epoch 2)"),
    ("conclusion", None, "price-2, a later record with its key, which was not committed yet and is gone"),
)


def kept_by_one_replica(*end: ExpectedLink) -> tuple[ExpectedLink, ...]:
    """Return the chain of m1 of fetch-session-forgets-epoch, which broker 1 never truncates."""
    return (
        ("appended", 0, "m1 at offset 1 (epoch 0)"),
        ("copied", 1, "m1"),
        ("elected", 2, "from the ISR [0, 2], without m1 (epoch 2)"),
        ("truncated", 0, "removing m1"),
        ("elected", 0, "from the ISR [2, 0], without m1 (epoch 3)"),
        ("elected", 1, "(epoch 4)"),
        ("not-truncated", 0, "truncated nothing: it still has m2"),
        *end,
    )


M3: Final[ExpectedLink] = ("appended", 1, "m3 at offset 1")
LAST_IN_ISR: Final[tuple[ExpectedLink, ...]] = (
    ("acked", 0, "all of the ISR [0, 1, 2] had it"),
    ("disk-lost", 0, "lost its disk, and its log, with m0"),
    ("elected", 0, "from the ISR [0], without m0"),
    (
        "conclusion",
        None,
        "brokers 1 and 2, which had it, could not be elected from outside the ISR (KIP-966)",
    ),
)
BOTH_CLAIM_1: Final[ExpectedLink] = ("conclusion", None, "offset 1 is m2")

CHAINS: Final[dict[tuple[str, str, str | None], tuple[tuple[ExpectedLink, ...], tuple[str, ...]]]] = {
    ("bit-rot[base]", "lost-write", "m1"): (
        (
            ("acked", 0, "acked m1 when the ISR had shrunk to [0]"),
            ("stopped", 0, "crashed, the only one with m1"),
            (
                "corruption-cut",
                0,
                "found a batch with a bad CRC when it recovered, and truncated its log to 1",
            ),
            ("conclusion", None, "every replica that had m1 lost its disk, or the data on it"),
        ),
        (),
    ),
    ("bit-rot[base]", "lost-write", "m2"): (
        (("corruption-cut", 0, "truncated its log to 1, removing m2"),),
        (),
    ),
    ("controller-disk-loss[base]", "lost-write", "m1"): (
        (
            ("acked", 0, "acked m1"),
            ("elected", 2, "without m1"),
            ("truncated", 0, "removing m1"),
            ("conclusion", None, "the quorum lost committed metadata with the disks of its controllers"),
        ),
        ("cluster.kraft.voters=5",),
    ),
    ("disk-loss[base]", "lost-write", "m0"): (
        LAST_IN_ISR,
        ("min.insync.replicas and kafka, together",),
    ),
    ("disk-loss[base]", "lost-write", "m1"): (
        lost_with_only_disk("m1"),
        ("min.insync.replicas and kafka, together",),
    ),
    ("disk-loss[min-isr-2]", "lost-write", "m0"): (LAST_IN_ISR, ("Kafka 4.3",)),
    ("disk-loss[min-isr-2]", "inconsistent-offsets", "m0"): (
        (*LAST_IN_ISR[:-1], ("appended", 0, "m1 at offset 0 (epoch 2)"), LAST_IN_ISR[-1]),
        ("Kafka 4.3",),
    ),
    ("disk-loss[unclean-election]", "lost-write", "m1"): (
        lost_with_only_disk("m1"),
        ("min.insync.replicas=2",),
    ),
    ("disk-loss[one-replica]", "lost-write", "m0"): (
        lost_with_only_disk("m0"),
        ("cluster.topics.0.assignment=[[0, 1, 2]]",),
    ),
    ("disk-loss[one-replica]", "lost-write", "m1"): (
        lost_with_only_disk("m1"),
        ("cluster.topics.0.assignment=[[0, 1, 2]]",),
    ),
    ("bit-rot[older-segment]", "lost-write", "m1"): (
        damaged("every replica that had m1"),
        (),
    ),
    ("bit-rot[stopped]", "lost-write", "m1"): (
        damaged("every replica that had m1"),
        (),
    ),
    ("bit-rot[leads-on]", "lost-write", "m1"): (
        (
            *damaged()[:2],
            ("kept", 1, "still has m1"),
            ("conclusion", None, "and the broker goes on leading although brokers 1 and 2"),
        ),
        (),
    ),
    ("delete-records[base]", "lost-write", "m-0"): (deleted_by_request("m-0"), ()),
    ("delete-records[base]", "lost-write", "m-1"): (deleted_by_request("m-1"), ()),
    ("compaction-above-hw[base]", "lost-write", "price-1"): (COMPACTED_ABOVE_HW, ("KAFKA-13194",)),
    ("compaction-above-hw[2.8]", "lost-write", "price-1"): (COMPACTED_ABOVE_HW, ("KAFKA-13194",)),
    ("slow-tombstone[base]", "lost-write", "price-gone"): (
        (
            ("appended", 0, "price-gone at offset 1"),
            ("acked", 0, "all of the ISR [0, 1, 2] had it"),
            ("compacted", 0, "without price-gone of offset 1"),
            (
                "conclusion",
                None,
                "delete.retention.ms no longer protected the tombstone price-gone",
            ),
        ),
        ("delete.retention.ms=604800000",),
    ),
    ("short-retention[base]", "lost-write", "m2"): (expired("m2", "retention.ms"), ("retention.ms=-1",)),
    ("short-retention[earliest]", "lost-write", "m2"): (expired("m2", "retention.ms"), ("retention.ms=-1",)),
    ("short-retention[none]", "lost-write", "m2"): (expired("m2", "retention.ms"), ("retention.ms=-1",)),
    ("short-retention[bytes]", "lost-write", "m2"): (
        expired("m2", "retention.bytes"),
        ("retention.bytes=-1",),
    ),
    ("short-retention[bytes]", "lost-write", "m3"): (
        expired("m3", "retention.bytes"),
        ("retention.bytes=-1",),
    ),
    ("ack-lost[base]", "duplicate", "m1"): (
        (
            ("sent", None, "producer-0 sent m1"),
            ("appended", 0, "m1 at offset 1"),
            ("answered", 0, "m1 is at offset 1"),
            ("ack-lost", 0, "network_ack_loss reset the connection of the answer of broker 0"),
            ("request-failed", 0, "producer-0 got no answer from broker 0"),
            ("retried", 0, "producer-0 sent m1 again"),
            ("appended", 0, "m1 again at offset 2"),
        ),
        ("enable.idempotence=true",),
    ),
    ("acks-0[base]", "lost-write", "m1"): (
        (
            ("sent", None, "producer-0 sent m1"),
            ("request-lost", 0, "reset the connection of the request to broker 0"),
            ("not-appended", None, "no broker appended it"),
        ),
        ("acks=all",),
    ),
    ("acks-1-leader-crash[base]", "lost-write", "m1"): (
        (
            ("acked", 0, "(acks=1) before any follower had it"),
            ("stopped", 0, "the only one with m1"),
            ("elected", 1, "from the ISR [0, 1, 2], without m1"),
            ("truncated", 0, "asked broker 1 where epoch 0 ends, got 1, and truncated to 1, removing m1"),
        ),
        ("acks=all",),
    ),
    ("isolated-from-controllers[acks-1]", "lost-write", "m1"): (
        (
            ("fault", None, "the fault broker_isolation struck"),
            ("elected", 0, "was elected"),
            ("appended", 1, "epoch 0, which had ended"),
            ("acked", 1, "(acks=1) before any follower had it"),
            ("truncated", 1, "asked broker 0 where epoch 0 ends, got 1, and truncated to 1, removing m1"),
        ),
        ("acks=all",),
    ),
    ("control-behind-data[base]", "lost-write", "m1"): (
        acked_by_former_leader("m1"),
        ("acks=all",),
    ),
    ("control-behind-data[base]", "lost-write", "m2"): (
        acked_by_former_leader("m2"),
        ("acks=all",),
    ),
    ("control-behind-data[base]", "lost-write", "m3"): (
        acked_by_former_leader("m3"),
        ("acks=all",),
    ),
    ("control-behind-data[base]", "lost-write", "m4"): (
        acked_by_former_leader("m4"),
        ("acks=all",),
    ),
    ("control-behind-data[full-queue]", "lost-write", "m1"): (
        acked_by_former_leader("m1"),
        ("acks=all",),
    ),
    ("control-behind-data[full-queue]", "lost-write", "m2"): (
        acked_by_former_leader("m2"),
        ("acks=all",),
    ),
    ("control-behind-data[full-queue]", "lost-write", "m3"): (
        acked_by_former_leader("m3"),
        ("acks=all",),
    ),
    ("control-behind-data[full-queue]", "lost-write", "m4"): (
        acked_by_former_leader("m4"),
        ("acks=all",),
    ),
    ("control-behind-data[control-plane-apart]", "lost-write", "m1"): (
        acked_by_former_leader("m1"),
        ("acks=all",),
    ),
    ("control-behind-data[control-plane-apart]", "inconsistent-offsets", "m1"): (
        acked_by_former_leader("m1"),
        ("acks=all",),
    ),
    ("control-behind-data[kraft]", "lost-write", "m1"): (
        acked_by_former_leader("m1"),
        ("acks=all",),
    ),
    ("control-behind-data[kraft]", "inconsistent-offsets", "m1"): (
        acked_by_former_leader("m1"),
        ("acks=all",),
    ),
    ("slow-disk-leader[unclean-election]", "lost-write", "m1"): (
        (
            ("isr-shrank", 0, "the ISR shrank from [0, 1, 2] to [0]: brokers 1 and 2 had fallen behind"),
            ("acked", 0, "when the ISR had shrunk to [0]"),
            ("elected-uncleanly", 1, "was elected uncleanly, from outside the ISR [0]"),
        ),
        ("unclean.leader.election.enable=false", "min.insync.replicas=2"),
    ),
    ("slow-disk-leader[unclean-election]", "inconsistent-offsets", "m1"): (
        (
            ("isr-shrank", 0, "the ISR shrank from [0, 1, 2] to [0]: brokers 1 and 2 had fallen behind"),
            ("acked", 0, "when the ISR had shrunk to [0]"),
            ("elected-uncleanly", 1, "was elected uncleanly, from outside the ISR [0]"),
        ),
        ("unclean.leader.election.enable=false", "min.insync.replicas=2"),
    ),
    **dict.fromkeys(
        [(f"acks-1-leader-stop[{variant}]", "lost-write", "m1") for variant in ("base", "kraft")],
        (
            (
                ("elected", 1, "was elected (epoch 1)"),
                ("appended", 0, "m1 at offset 1 (epoch 0, which had ended)"),
                ("acked", 0, "(acks=1) before any follower had it"),
                ("stopped", 0, "was stopped, the only one with m1"),
                ("truncated", 0, "asked broker 1 where epoch 0 ends, got 1, and truncated to 1, removing m1"),
            ),
            ("acks=all",),
        ),
    ),
    ("acks-all-degrades[base]", "lost-write", "m1"): (unclean("m1", isr="[0, 1, 2] to [0]"), CLEAN_ONLY),
    ("acks-all-degrades[base]", "lost-write", "m2"): (unclean("m2", isr="[0, 1, 2] to [0]"), CLEAN_ONLY),
    ("all-replicas-die[base]", "lost-write", "m1"): (unclean("m1", isr="broker 1 had died"), CLEAN),
    ("all-replicas-die[base]", "inconsistent-offsets", "m1"): (
        unclean("m1", ("appended", 1, "m2 at offset 1"), isr="broker 1 had died"),
        CLEAN,
    ),
    ("controller-split-brain[no-fencing]", "lost-write", "m2"): (
        (
            ("paused", 2, "the controller"),
            ("controller-elected", None, "controller epoch 2"),
            ("elected", 0, "epoch 2"),
            ("resumed", 2, "still took itself for the controller"),
            ("deposed-controller", 2, "announced its election of broker 1 (epoch 1)"),
            ("deposed-leader", 1, "led again, in epoch 1, although epoch 2 had begun"),
            ("appended", 1, "m2 at offset 2 (epoch 1, which had ended)"),
            ("acked", 1, "alone in the ISR [1] as far as it knew"),
            ("truncated", 1, "asked broker 0 where epoch 1 ends, got 2, and truncated to 2, removing m2"),
            ("conclusion", None, "a leader after another one had been elected"),
        ),
        ("controller_epoch_fencing=true", "leader_epoch_fencing=true"),
    ),
    ("divergence-by-hw[base]", "lost-write", "m2"): (lost_unflushed("m2", truncates=False), (FLUSHING,)),
    ("divergence-by-hw[base]", "inconsistent-offsets", "m2"): (
        (*lost_unflushed("m2", M3, truncates=False), BOTH_CLAIM_1),
        (FLUSHING,),
    ),
    ("divergence-by-hw[base]", "log-divergence", None): (
        (*lost_unflushed("m2", M3, truncates=False), BOTH_CLAIM_1),
        (KIP_101,),
    ),
    ("divergence-by-hw[0.11]", "lost-write", "m2"): (lost_unflushed("m2"), (FLUSHING,)),
    ("divergence-by-hw[0.11]", "inconsistent-offsets", "m2"): (
        (*lost_unflushed("m2", M3), BOTH_CLAIM_1),
        (FLUSHING,),
    ),
    ("divergence-by-hw[2.4]", "lost-write", "m2"): (lost_unflushed("m2"), (FLUSHING,)),
    ("divergence-by-hw[2.4]", "inconsistent-offsets", "m2"): (
        (*lost_unflushed("m2", M3), BOTH_CLAIM_1),
        (FLUSHING,),
    ),
    ("fetch-session-forgets-epoch[base]", "lost-write", "m2"): (
        (
            ("appended", 0, "m2 at offset 1 (epoch 3)"),
            ("acked", 0, "all of the ISR [2, 0] had it"),
            ("stopped", 0, "crashed"),
            ("elected", 1, "without m2 (epoch 4)"),
            ("not-truncated", 0, "truncated nothing: it still has m2"),
            ("conclusion", None, "m2 was committed, and no setting permits its loss"),
        ),
        (KAFKA_9338,),
    ),
    ("fetch-session-forgets-epoch[base]", "inconsistent-offsets", "m1"): (
        kept_by_one_replica(("conclusion", None, "offset 1 is m1 (broker 1's log, polled) and m2")),
        (KAFKA_9338,),
    ),
    ("fetch-session-forgets-epoch[base]", "log-divergence", None): (
        kept_by_one_replica(
            ("conclusion", None, "offset 1 is m2 (epoch 3) on brokers 0 and 2 and m1 (epoch 0) on broker 1"),
        ),
        (KAFKA_9338,),
    ),
    ("divergence-by-hw[unclean-election]", "lost-write", "m2"): (unclean("m2", truncates=False), CLEAN),
    ("divergence-by-hw[unclean-election]", "inconsistent-offsets", "m2"): (
        (*unclean("m2", M3, truncates=False), BOTH_CLAIM_1),
        CLEAN,
    ),
    ("divergence-by-hw[unclean-election]", "log-divergence", None): (
        (
            ("elected-uncleanly", 1, "from outside the ISR [0], without m2"),
            M3,
            ("not-truncated", 0, "with a high watermark of 2 truncated nothing: it still has m2"),
            BOTH_CLAIM_1,
        ),
        (KIP_101,),
    ),
    ("divergence-by-hw[unclean-election-0.11]", "lost-write", "m2"): (unclean("m2"), CLEAN),
    ("divergence-by-hw[unclean-election-0.11]", "inconsistent-offsets", "m2"): (
        (*unclean("m2", M3), BOTH_CLAIM_1),
        CLEAN,
    ),
    ("epochs-do-not-save-a-double-failure[base]", "lost-write", "m1"): (
        (
            ("acked", 0, "all of the ISR [0, 1] had it"),
            ("unflushed-lost", 1, "from offset 1 on, with m1"),
            ("stopped", 0, "crashed before broker 1 had fetched m1 again"),
            ("elected", 1, "from the ISR [0, 1], without m1"),
            ("truncated", 0, "got 1, and truncated to 1, removing m1"),
        ),
        (FLUSHING,),
    ),
    ("forgotten-isr-member[base]", "lost-write", "m1"): (
        (
            ("elected", 1, "epoch 2"),
            ("appended", 0, "m1 at offset 1 (epoch 1, which had ended)"),
            ("acked", 0, "alone in the ISR [0] as far as it knew"),
            ("truncated", 0, "asked broker 1 where epoch 1 ends, got 1, and truncated to 1, removing m1"),
            ("conclusion", None, "a leader after another one had been elected"),
        ),
        ("KIP-497, from 2.7 on",),
    ),
    ("loss-by-hw-truncation[base]", "lost-write", "m1"): (
        (
            ("appended", 0, "m1 at offset 1 (epoch 0)"),
            ("copied", 1, "m1"),
            ("acked", 0, "all of the ISR [0, 1] had it"),
            ("stopped", 1, "crashed"),
            ("recovered", 1, "LEO 2, high watermark 1"),
            ("truncated", 1, "its own high watermark, 1, removing m1"),
            ("stopped", 0, "crashed before broker 1 had fetched m1 again"),
            ("elected", 1, "from the ISR [0, 1], without m1"),
            ("recovered", 0, "came back with m1"),
            ("truncated", 0, "truncated to its own high watermark, 1, removing m1"),
            ("conclusion", None, "m1 was committed, and no setting permits its loss"),
        ),
        (KIP_101,),
    ),
    ("new-session-new-pid[base]", "duplicate", "m0"): (
        (
            ("sent", None, "producer-0 sent m0"),
            ("appended", 0, "m0 at offset 0 (epoch 0, producer id 0 with epoch 0, sequence 0)"),
            ("ack-lost", 0, "dropped the answer of broker 0"),
            ("client-stopped", None, "producer-0 died before it had an answer"),
            ("sent", None, "again, in a new session"),
            # 1, or 1000 if a random choice sent the request to another broker.
            ("appended", 0, "at offset 1 (epoch 0, producer id 1"),
        ),
        (),  # Only transactions would help, which cannot be tried here.
    ),
    ("partial-isr-then-crash[base]", "duplicate", "m1"): (
        (
            ("appended", 0, "m1 at offset 1 (epoch 0)"),
            ("copied", 1, "m1"),
            ("stopped", 0, "crashed"),
            ("request-failed", 0, "no answer from broker 0"),
            ("elected", 1, "from the ISR [0, 1, 2], with m1"),
            ("retried", 1, "producer-0 sent m1 again, to broker 1"),
            ("appended", 1, "m1 again at offset 2 (epoch 1)"),
        ),
        ("enable.idempotence=true",),
    ),
    ("power-loss[base]", "lost-write", "m0"): (
        all_lost_power("m0", 0, 0, 1, 2),
        (FLUSHING,),
    ),
    ("power-loss[base]", "lost-write", "m1"): (
        all_lost_power("m1", 1, 0, 1, 2),
        (FLUSHING,),
    ),
    ("last-replica-standing[base]", "lost-write", "m1"): (
        (
            ("appended", 0, "m1 at offset 0"),
            ("copied", 1, "m1"),
            ("acked", 0, "all of the ISR [0, 1] had it"),
            ("stopped", 1, "was stopped"),
            ("unflushed-lost", 0, "from offset 0 on, with m1"),
            ("elected", 0, "from the ISR [0], without m1"),
            ("recovered", 1, "came back with m1"),
            ("truncated", 1, "removing m1"),
            ("conclusion", None, "could not be elected from outside the ISR (KIP-966)"),
        ),
        (FLUSHING,),
    ),
    ("re-elected-leader[base]", "lost-write", "m0"): (
        (
            ("appended", 1, "m0 at offset 0 (epoch 1)"),
            ("copied", 2, "m0"),
            ("elected", 0, "without m0 (epoch 2)"),
            ("truncated", 2, "removing m0"),
            ("elected", 1, "with m0 (epoch 3)"),
            ("acked", 1, "acked m0, although broker 2 of the ISR [1, 2] did not have it"),
            ("stopped", 1, "before broker 2 had fetched m0 again"),
            ("elected", 2, "without m0 (epoch 4)"),
            ("truncated", 1, "removing m0"),
        ),
        ("reelected_leader_forgets_positions=true",),
    ),
    ("forgotten-isr-change[base]", "lost-write", "m2"): (
        (
            ("appended", 0, "m2 at offset 2 (epoch 0)"),
            ("isr-asked", 0, "requested the ISR [0, 2, 1]"),
            ("isr-forgotten", 0, "forgot its request for the ISR [0, 2, 1]"),
            ("isr-written", 0, "had the ISR [0, 2, 1] written"),
            ("copied", 2, "m2"),
            ("committed-alone", 0, "committed offset 2 (high watermark 3) without waiting for broker 1"),
            (
                "acked",
                0,
                "by the ISR [0, 2], although [0, 2, 1] was written, and broker 1 of it did not have it",
            ),
            ("stopped", 0, "broker 0 crashed"),
            ("stopped", 2, "broker 2 crashed"),
            ("elected", 1, "without m2 (epoch 1)"),
            ("truncated", None, "removing m2"),
            ("conclusion", None, "m2 was committed"),
        ),
        ("isr_change_survives_repeated_state=true",),
    ),
    ("uncommitted-transaction-state[base]", "unseen", "b"): (
        (
            ("appended", 3, "b at offset 0 (epoch 0)"),
            ("acked", 3, "acked b"),
            ("conclusion", None, "read_committed ends at offset 0"),
        ),
        ("coordinator_load_waits_for_commit=true",),
    ),
    **{
        (f"error-after-deadline[{variant}]", "duplicate", value): (
            (
                ("sent", None, f"p sent {value}"),
                ("appended", 0, f"{value} at offset"),
                ("request-failed", None, "got no answer from broker 0"),
                ("gave-up", None, "p gave up on A (NETWORK_EXCEPTION)"),
                ("retried", None, f"p sent {value} again"),
                ("appended", 0, f"{value} again at offset"),
                ("conclusion", None, "the leader did not recognise the retry"),
            ),
            ("abandoned_batch_keeps_sequence=true",),
        )
        for variant in ("base", "4.3")
        for value in ("B", "C")
    },
    ("error-after-deadline[2.4]", "lost-write", "D"): (
        (
            ("gave-up", None, "p gave up on A (NETWORK_EXCEPTION)"),
            ("sent", None, "p sent D"),
            ("acked", 0, "acked D"),
            ("not-appended", None, "no broker appended it"),
        ),
        ("abandoned_batch_keeps_sequence=true",),
    ),
    **{
        ("error-after-deadline[2.4]", "inconsistent-offsets", value): (
            (
                ("appended", 0, f"{before} at offset"),
                ("gave-up", None, "p gave up on A (NETWORK_EXCEPTION)"),
                ("acked", 0, f"acked {value}"),
                ("not-appended", None, "no broker appended it"),
            ),
            ("abandoned_batch_keeps_sequence=true",),
        )
        for before, value in ("AB", "BC", "CD")
    },
    **{
        (f"stale-diverging-epoch[{variant}]", rule, "m1"): (
            (
                ("appended", 2, "m1 at offset 1 (epoch 1)"),
                ("acked", 2, "acked m1 (acks=1) before any follower had it"),
                ("elected", 0, "without m1 (epoch 2)"),
                ("elected", 1, "without m1 (epoch 3)"),
                ("truncated", 2, "asked broker 1 where epoch 1 ends, got 1, and truncated to 1, removing m1"),
                ("conclusion", None, "acks=1 does not wait for followers"),
            ),
            ("acks=all",),
        )
        for variant in ("base", "epochs-matched", "3.9", "4.3")
        for rule in ("lost-write", "inconsistent-offsets")
    },
    ("stale-diverging-epoch[base]", "lost-write", "m2"): (
        (
            ("appended", 1, "m2 at offset 1 (epoch 3)"),
            ("copied", 2, "m2"),
            ("acked", 1, "all of the ISR [0, 1, 2] had it"),
            ("elected", 0, "with m2 (epoch 4)"),
            ("took-outdated", 2, "used broker 0's answer to a fetch of epoch 2, although epoch 4 had begun"),
            ("truncated", 2, "asked broker 0 where epoch 1 ends, got 1, and truncated to 1, removing m2"),
            ("elected", 2, "without m2 (epoch 5)"),
        ),
        ("KAFKA-18991, from 3.9.1 on",),
    ),
    ("reverted-log-start[base]", "lost-write", "m1"): (
        (
            ("appended", 0, "m1 at offset 1 (epoch 0)"),
            ("stopped", 0, "crashed, the only one with m1"),
            ("elected", 1, "without m1 (epoch 1)"),
            ("acked", 0, "although brokers 1 and 2 of the ISR"),
            ("stopped", 0, "crashed, the only one with m1"),
            ("elected", None, "without m1"),
            ("not-truncated", 0, "it still has m1"),
            ("conclusion", None, "m1 was committed"),
        ),
        ("recovery_restores_earlier_epochs=true",),
    ),
    ("reverted-log-start[base]", "inconsistent-offsets", "m1"): (
        (*two_records_at_one_offset(), ("conclusion", None, "offset 1 is m1 (broker 0's log, acked) and m2")),
        ("recovery_restores_earlier_epochs=true",),
    ),
    ("reverted-log-start[base]", "log-divergence", None): (
        (
            *two_records_at_one_offset(),
            ("conclusion", None, "offset 1 is m1 (epoch 0) on broker 0 and m2 (epoch 1) on brokers 1 and 2"),
        ),
        ("recovery_restores_earlier_epochs=true",),
    ),
    ("rack-outage[base]", "lost-write", "m0"): (
        all_lost_power("m0", 0, 0, 1),
        (FLUSHING,),
    ),
    ("rack-outage[base]", "inconsistent-offsets", "m0"): (
        (*all_lost_power("m0", 0, 0, 1), ("appended", None, "m1 at offset 0")),
        (FLUSHING,),
    ),
    ("retry-reorders[base]", "nonmonotonic-send", "m2"): (
        (
            ("sent", None, "producer-0 sent m1"),
            ("sent", None, "producer-0 sent m2"),
            ("request-failed", 0, "broker 0 refused m1: NOT_ENOUGH_REPLICAS, its ISR was [0]"),
            ("appended", 0, "m2 at offset 1"),
            ("retried", 0, "producer-0 sent m1 again"),
            ("appended", 0, "m1 at offset 2"),
        ),
        ("enable.idempotence=true", "max.in.flight.requests.per.connection=1"),
    ),
    ("log-truncation-not-allowed[base]", "lost-write", "m2"): (
        lost_unflushed("m2", truncates=False),
        (FLUSHING,),
    ),
    ("log-truncation-not-allowed[unclean-elections-on]", "lost-write", "m2"): (
        (
            *lost_unflushed("m2")[:-1],
            ("truncated", 0, "truncated to 1, where its leader's log ends, removing m2"),
        ),
        (FLUSHING,),
    ),
    ("log-truncation-not-allowed[0.11]", "lost-write", "m2"): (lost_unflushed("m2"), (FLUSHING,)),
    ("paused-leader[base]", "lost-write", "m1"): (
        (
            ("appended", 0, "m1 at offset 1 (epoch 0)"),
            ("acked", 0, "acked m1 (acks=1) before any follower had it"),
            ("paused", 0, "was paused"),
            ("session-expired", 0, "lost its session"),
            ("elected", 1, "from the ISR [0, 1, 2], without m1 (epoch 1)"),
            ("truncated", 0, "removing m1"),
            ("conclusion", None, "acks=1 does not wait for followers, and m1 was never committed"),
        ),
        ("acks=all",),
    ),
    ("paused-leader[request-waits]", "lost-write", "m1"): (
        (
            ("paused", 0, "was paused"),
            ("session-expired", 0, "lost its session"),
            ("elected", 1, "(epoch 1)"),
            ("appended", 0, "m1 at offset 1 (epoch 0, which had ended)"),
            ("acked", 0, "acked m1 (acks=1) before any follower had it"),
            ("truncated", 0, "removing m1"),
            ("conclusion", None, "acks=1 does not wait for followers, and m1 was never committed"),
        ),
        ("acks=all",),
    ),
    ("unclean-election[base]", "lost-write", "m1"): (unclean("m1"), CLEAN_ONLY),
    ("unclean-election[base]", "inconsistent-offsets", "m1"): (
        unclean("m1", ("appended", 1, "m2 at offset 1")),
        CLEAN_ONLY,
    ),
    ("unclean-election[kraft]", "lost-write", "m1"): (unclean("m1"), CLEAN),
    ("unclean-election[kraft]", "inconsistent-offsets", "m1"): (
        unclean("m1", ("appended", 1, "m2 at offset 1")),
        CLEAN,
    ),
    ("visibility[uncommitted-reads]", "read-above-hw", "m0"): (
        (
            ("appended", 0, "m0 at offset 0"),
            ("read", 0, "up to offset 1 (exclusive), when its high watermark was 0"),
            ("conclusion", None, "broker 1 of the ISR [0, 1] did not have it"),
        ),
        ("consumer_reads_below_hw=true",),
    ),
    **{
        (f"clock-skew[{variant}]", "lost-write", "m0"): (
            (
                ("acked", 0, "acked m0: all of the ISR [0, 1, 2] had it"),
                ("retention-deleted", 0, "deleted its log below offset 1 (retention.ms), with m0"),
                (
                    "conclusion",
                    None,
                    "clocks disagreed: broker 0 saw m0 as up to 7200.000s older than it was",
                ),
            ),
            ("retention.ms=-1",),
        )
        for variant in ("base", "producer")
    },
    **{
        ("follower-fetch[serves-to-log-end]", "read-above-hw", value): (
            (
                ("appended", 0, f"{value} at offset {offset}"),
                (
                    "read",
                    2,
                    f"served near up to offset {offset + 1} (exclusive), when its high watermark was {offset}",
                ),
                ("conclusion", None, f"offset {offset} was not committed"),
            ),
            ("follower_serves_below_hw=true",),
        )
        for offset, value in enumerate(("m0", "m1", "m2"))
    },
}
"""The expected links of each chain in order, and the preventions that held."""

_WITHOUT_IDEMPOTENCE: Final[ExpectedLink] = (
    "conclusion",
    None,
    "with enable.idempotence=false the leader cannot tell a retry from a new record",
)
CHAINS_OF_MANY_RECORDS: dict[tuple[str, str], tuple[tuple[ExpectedLink, ...], tuple[str, ...]]] = {
    ("slow-follower-by-count[leader-dies]", "lost-write"): (
        (
            ("acked", 0, "(acks=1) before any follower had it"),
            ("stopped", 0, "crashed, the only one with"),
            ("elected-uncleanly", 1, "was elected uncleanly, without"),
            ("truncated", 0, "truncated to its own high watermark"),
            ("conclusion", None, "acks=1 does not wait for followers"),
        ),
        ("acks=all",),
    ),
    ("throttled-producer[pipelined]", "duplicate"): (
        (
            ("sent", None, "bulk sent"),
            ("appended", 0, "at offset"),
            ("appended", 0, "again at offset"),
            _WITHOUT_IDEMPOTENCE,
        ),
        ("enable.idempotence=true",),
    ),
    ("throttled-producer[pipelined]", "nonmonotonic-send"): (
        (
            ("sent", None, "bulk sent"),
            ("request-failed", 0, "got no answer"),
            ("retried", 0, "again, to broker 0"),
        ),
        ("enable.idempotence=true", "max.in.flight.requests.per.connection=1"),
    ),
    ("throttled-producer[before-kip-219]", "duplicate"): (
        (
            ("sent", None, "bulk sent"),
            ("appended", 0, "at offset"),
            ("request-failed", 0, "got no answer from broker 0"),
            ("retried", 0, "again, to broker 0"),
            ("appended", 0, "again at offset"),
            _WITHOUT_IDEMPOTENCE,
        ),
        ("enable.idempotence=true",),
    ),
}
"""The chain of all findings of a rule, where hundreds of records break it in the same way."""


def findings(name: str, seed: int) -> dict[tuple[str, str, str | None], Finding]:
    rules = proven_library_run(name, seed).verdict.rules
    return {
        (name, rule, None if finding.value is None else str(finding.value)): finding
        for rule in (*RULES, *RULES_OF_LOGS)
        if rule in rules
        for finding in rules[rule].findings
    }


@each_plan(fixed_names())
def test_every_finding_has_the_chain_of_its_scenario(name: str) -> None:
    expected = {key: chain for key, chain in CHAINS.items() if key[0] == name}
    for seed in SEEDS:
        by_key = findings(name, seed)
        alike = {key: CHAINS_OF_MANY_RECORDS[key[:2]] for key in by_key if key[:2] in CHAINS_OF_MANY_RECORDS}
        assert {key[:2] for key in alike} == {key for key in CHAINS_OF_MANY_RECORDS if key[0] == name}, (
            f"seed {seed}"
        )
        assert by_key.keys() - alike.keys() == expected.keys(), f"seed {seed}"
        for key, (links, prevented) in (expected | alike).items():
            finding = by_key[key]
            missing = first_missing(links, finding.chain)
            assert missing is None, f"seed {seed}, {key}: {missing} is not in its place in {because(finding)}"
            assert len(finding.chain) <= 28
            preventions_held = held_by(finding)
            for way in prevented:
                assert any(text.startswith(way) for text in preventions_held), (
                    f"seed {seed}, {key}: {way} not in {preventions_held}"
                )
            assert bool(preventions_held) == bool(prevented), f"seed {seed}, {key}: {preventions_held}"


def held_by(finding: Finding) -> list[str]:
    """Return the texts and options of the preventions that held."""
    held_ways = [(way.text, way.trial) for way in finding.prevented_by if way.held]
    return [text for way, trial in held_ways if trial is not None for text in (way, *trial.options)]


def first_missing(expected: tuple[ExpectedLink, ...], chain: Iterable[Link]) -> ExpectedLink | None:
    """Return the first expected link that the chain lacks after the expected link before it."""
    links = iter(chain)
    for event, broker, text in expected:
        if not any(
            link.event == event and (broker is None or link.broker == broker) and text in timed_sentence(link)
            for link in links
        ):
            return event, broker, text
    return None


@each_plan(sorted({name for name, _, _ in CHAINS}))
def test_every_finding_is_the_same_in_json(name: str) -> None:
    for finding in findings(name, 0).values():
        mapping = finding_as_mapping(finding)
        assert json.loads(json.dumps(mapping)) == mapping
        assert mapping["prevented_by"] == list(preventions(finding))
        assert all(way["tried"] and way["held"] for way in mapping["preventions"])
        assert all(way["tried"] and not way["held"] for way in mapping["tried_in_vain"])
        assert [link["text"] for link in mapping["chain"]] == [timed_sentence(link) for link in finding.chain]
