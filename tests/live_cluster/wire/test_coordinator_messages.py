"""Records in coordinators' logs and messages between group members are decoded byte by byte."""

import struct
from types import SimpleNamespace
from typing import Any

from harrow.live_cluster.wire.coordinator_messages import (
    GroupRecord,
    TransactionRecord,
    assigned_partitions,
    assignment,
    group_records,
    subscribed_topics,
    subscription,
    transaction_records,
)


def text(value: str | None) -> bytes:
    return struct.pack(">h", -1) if value is None else struct.pack(">h", len(value)) + value.encode()


def record(key: bytes, value: bytes | None) -> Any:
    return SimpleNamespace(key=key, value=value)


def transaction(name: str, value: bytes | None) -> Any:
    return record(struct.pack(">h", 0) + text(name), value)


def test_a_transactional_id_is_read_in_both_versions_of_its_value() -> None:
    begins = ">hqhib"
    old = (
        struct.pack(begins, 0, 7, 3, 60_000, 1)
        + struct.pack(">i", 1)
        + text("t")
        + struct.pack(">iii", 2, 0, 300)
        + struct.pack(">qq", 1, 2)
    )
    flexible = (
        struct.pack(begins, 1, 7, 4, 60_000, 4)
        + bytes([3, 2])
        + b"t"
        + bytes([2])
        + struct.pack(">i", 1)
        + b"\0"
        + bytes([2])
        + b"u"
        + bytes([3])
        + struct.pack(">ii", 0, 5)
        + b"\0"
        + struct.pack(">qq", 1, 2)
        + b"\0"
    )
    batch = [transaction("x", old), transaction("y", flexible), transaction("z", None)]
    assert list(transaction_records(batch)) == [
        TransactionRecord("x", "Ongoing", 7, 3, ("t-0", "t-300")),
        TransactionRecord("y", "CompleteCommit", 7, 4, ("t-1", "u-0", "u-5")),
        TransactionRecord("z", "Dead", -1, -1, ()),
    ]


def test_a_transactional_id_without_partitions_has_none() -> None:
    for version, nothing in ((0, struct.pack(">i", 0)), (1, b"\1"), (1, b"\0")):
        value = struct.pack(">hqhib", version, 7, 0, 60_000, 0) + nothing + struct.pack(">qq", 1, 2)
        [decoded] = transaction_records([transaction("x", value)])
        assert decoded == TransactionRecord("x", "Empty", 7, 0, ())


def member(name: str, version: int) -> bytes:
    return b"".join(
        (
            text(name),
            text(None) if version >= 3 else b"",
            text("client"),
            text("/127.0.0.1"),
            struct.pack(">i", 60_000) if version >= 1 else b"",
            struct.pack(">i", 10_000),
            struct.pack(">i", 3) + b"abc",
            struct.pack(">i", 2) + b"de",
        )
    )


def test_generations_and_commits_are_read_and_tombstones_are_skipped() -> None:
    batch = [record(struct.pack(">h", 2) + text("g"), None)]
    for version in range(4):
        value = struct.pack(">h", version) + text("consumer") + struct.pack(">i", version + 5) + text("range")
        value += text("m1") + (struct.pack(">q", 99) if version >= 2 else b"") + struct.pack(">i", 2)
        batch.append(
            record(struct.pack(">h", 2) + text("g"), value + member("m1", version) + member("m2", version))
        )
    commit = struct.pack(">h", 1) + text("g") + text("t") + struct.pack(">i", 4)
    batch.append(
        record(commit, struct.pack(">hq", 3, 17) + struct.pack(">i", -1) + text("") + struct.pack(">q", 0))
    )
    batch += [record(commit, None), record(struct.pack(">h", 3) + text("g"), b"\0\0")]
    assert list(group_records(batch)) == [
        *(GroupRecord("g", version + 5, ("m1", "m2")) for version in range(4)),
        GroupRecord("g", partition="t-4", offset=17),
    ]


def test_a_subscription_and_an_assignment_survive_encoding() -> None:
    assert subscribed_topics(subscription(("t", "topic"))) == ["t", "topic"]
    assert assigned_partitions(assignment(("t-0", "t-1"))) == ["t-0", "t-1"]
    assert (assigned_partitions(assignment(())), assigned_partitions(None)) == ([], [])
