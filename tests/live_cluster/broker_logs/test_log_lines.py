"""Lines of brokers' logs are decoded; they were recorded on releases or taken from the source."""

from pathlib import Path

import pytest

from harrow.cluster_model.controller.control_plane import (
    BROKER_FAILURE,
    BROKER_STARTUP,
    CONTROLLED_SHUTDOWN,
    CONTROLLER_FAILOVER,
    PREFERRED_LEADER,
    TOPIC_CREATION,
)
from harrow.cluster_model.log.unified_log import (
    HIGH_WATERMARK_TRUNCATION,
    LEADER_EPOCH_TRUNCATION,
    OUT_OF_RANGE_TRUNCATION,
)
from harrow.live_cluster.broker_logs.log_lines import (
    CauseLine,
    EpochLine,
    LogLine,
    LogReader,
    RefusalLine,
    TruncationLine,
)
from harrow.live_cluster.releases.kafka_release import pinned_releases

RECORDED = Path(__file__).parent / "recorded"
"""One file for each release: lines about t-0 in the logs of every node of a run of
acks-1-leader-crash.
"""
FETCHER = "[ReplicaFetcher replicaId=0, leaderId=1, fetcherId=0]"


def decode(lines: list[str], default_reason: str = LEADER_EPOCH_TRUNCATION) -> list[LogLine]:
    reader = LogReader(default_reason)
    return [event for line in lines if (event := reader.read(line)) is not None]


def decode_release(release: str) -> list[LogLine]:
    lines = (RECORDED / f"{release}.log").read_text().splitlines()
    return decode(lines, HIGH_WATERMARK_TRUNCATION if release.startswith("0.10") else LEADER_EPOCH_TRUNCATION)


def test_every_pinned_release_has_recorded_lines() -> None:
    assert {file.stem for file in RECORDED.glob("*.log")} == set(CUT_BACK)
    assert {name.removesuffix("-zookeeper") for name in CUT_BACK} == {each.name for each in pinned_releases()}


CUT_BACK = {
    "0.10.2.2": HIGH_WATERMARK_TRUNCATION,
    "0.11.0.3": LEADER_EPOCH_TRUNCATION,
    "1.1.1": LEADER_EPOCH_TRUNCATION,
    "2.0.1": LEADER_EPOCH_TRUNCATION,
    "2.4.1": LEADER_EPOCH_TRUNCATION,
    "2.8.2": LEADER_EPOCH_TRUNCATION,
    "3.6.2-zookeeper": LEADER_EPOCH_TRUNCATION,
    "3.6.2": LEADER_EPOCH_TRUNCATION,
    "3.9.2-zookeeper": LEADER_EPOCH_TRUNCATION,
    "3.9.2": LEADER_EPOCH_TRUNCATION,
    "4.0.2": LEADER_EPOCH_TRUNCATION,
    "4.3.1": LEADER_EPOCH_TRUNCATION,
    "4.4.0": LEADER_EPOCH_TRUNCATION,
}
IN_KRAFT = ("3.6.2", "3.9.2", "4.0.2", "4.3.1", "4.4.0")
WITH_ZOOKEEPER = tuple(name for name in CUT_BACK if name not in IN_KRAFT)


@pytest.mark.parametrize("release", CUT_BACK)
def test_the_former_leader_logs_its_truncation(release: str) -> None:
    assert TruncationLine("t-0", 1, CUT_BACK[release]) in decode_release(release)


def test_a_broker_of_0_10_2_logs_its_refusal_to_truncate() -> None:
    """This recording includes a run of log-truncation-not-allowed."""
    assert RefusalLine("t-0", 1, 1, 2) in decode_release("0.10.2.2")


@pytest.mark.parametrize("release", WITH_ZOOKEEPER)
def test_the_controller_logs_the_broker_failure(release: str) -> None:
    assert CauseLine(BROKER_FAILURE) in decode_release(release)


@pytest.mark.parametrize("release", IN_KRAFT)
def test_a_kraft_controller_logs_the_partitions_of_a_broker_failure(release: str) -> None:
    changed = frozenset(("t-0", *(f"__consumer_offsets-{number}" for number in range(3))))
    assert CauseLine(BROKER_FAILURE, changed, explains_one=True) in decode_release(release)


@pytest.mark.parametrize("release", WITH_ZOOKEEPER)
def test_the_controller_logs_its_failover_and_the_creation_of_a_topic(release: str) -> None:
    causes = [cause.reason for cause in decode_release(release) if isinstance(cause, CauseLine)]
    assert {CONTROLLER_FAILOVER, TOPIC_CREATION, BROKER_STARTUP} <= set(causes)


@pytest.mark.parametrize("release", ["0.10.2.2", "0.11.0.3", "1.1.1", "2.0.1"])
def test_old_brokers_log_the_epochs_of_their_roles(release: str) -> None:
    epochs = [line for line in decode_release(release) if isinstance(line, EpochLine)]
    assert epochs == [EpochLine("t-0", 0), EpochLine("t-0", 1)]


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        # 0.11: ReplicaFetcherThread.maybeTruncate.
        (
            (
                "Based on follower's leader epoch, leader replied with an unknown offset in t-0. High watermark 1 will be used for"
                " truncation. (kafka.server.ReplicaFetcherThread)"
            ),
            HIGH_WATERMARK_TRUNCATION,
        ),
        # 2.0: AbstractFetcherThread.getOffsetTruncationState.
        (
            (
                f"{FETCHER} Based on replica's leader epoch, leader replied with an unknown offset in t-0. The initial fetch offset 1"
                " will be used for truncation. (kafka.server.ReplicaFetcherThread)"
            ),
            HIGH_WATERMARK_TRUNCATION,
        ),
        (f"{FETCHER} Truncating partition t-0 to local high watermark 1 (x)", HIGH_WATERMARK_TRUNCATION),
        (
            f"{FETCHER} Truncating partition t-0 with TruncationState(offset=1, completed=true) due to local high watermark 1 (x)",
            HIGH_WATERMARK_TRUNCATION,
        ),
        (
            (
                f"{FETCHER} Truncating partition t-0 with TruncationState(offset=1, completed=true) due to leader epoch and offset"
                " EpochEndOffset(...) (x)"
            ),
            LEADER_EPOCH_TRUNCATION,
        ),
        (
            (
                "[ReplicaFetcherThread-0-1], Replica 0 for partition t-0 reset its fetch offset from 2 to current leader 1's latest"
                " offset 1 (x)"
            ),
            OUT_OF_RANGE_TRUNCATION,
        ),
        (
            f"{FETCHER} Reset fetch offset for partition t-0 from 2 to current leader's latest offset 1 (x)",
            OUT_OF_RANGE_TRUNCATION,
        ),
    ],
)
@pytest.mark.parametrize(
    "cut",
    [
        "Truncating log t-0 to offset 1. (kafka.log.Log)",
        "[Log partition=t-0, dir=/data] Truncating to offset 1 (kafka.log.Log)",
        "[UnifiedLog partition=t-0, dir=/data] Truncating to offset 1 (kafka.log.UnifiedLog)",
    ],
)
def test_the_line_before_a_truncation_names_its_reason(line: str, reason: str, cut: str) -> None:
    other = "other than the default"
    assert decode([line, cut], other) == [TruncationLine("t-0", 1, reason)]
    # The reason applies neither to the next truncation nor to another partition.
    assert decode([line, cut, cut], other)[1:] == [TruncationLine("t-0", 1, other)]
    assert decode([line.replace("t-0", "t-1"), cut], other) == [TruncationLine("t-0", 1, other)]


@pytest.mark.parametrize(
    "no_effect",
    [
        "Truncating t-0 to 1 has no effect as the largest offset in the log is 0. (kafka.log.Log)",
        "[Log partition=t-0, dir=/data] Truncating to 1 has no effect as the largest offset in the log is 0 (kafka.log.Log)",
    ],
)
def test_a_truncation_without_effect_consumes_its_reason(no_effect: str) -> None:
    reason = f"{FETCHER} Truncating partition t-0 to local high watermark 1 (x)"
    cut = "[Log partition=t-0, dir=/data] Truncating to offset 1 (kafka.log.Log)"
    assert decode([reason, no_effect, cut]) == [TruncationLine("t-0", 1, LEADER_EPOCH_TRUNCATION)]


@pytest.mark.parametrize(
    ("line", "leader"),
    [
        # 0.10.2, 0.11 and 1.0, each with its own words.
        (
            (
                "Exiting because log truncation is not allowed for partition t-0, Current leader 1's latest offset 1 is less than"
                " replica 0's latest offset 2"
            ),
            1,
        ),
        (
            (
                "Exiting because log truncation is not allowed for partition t-0, current leader 1's latest offset 1 is less than"
                " replica 0's latest offset 2"
            ),
            1,
        ),
        (
            (
                "Exiting because log truncation is not allowed for partition t-0, current leader's latest offset 1 is less than"
                " replica's latest offset 2"
            ),
            None,
        ),
    ],
)
def test_a_refusal_to_truncate_is_read_in_the_wording_of_each_release(line: str, leader: int | None) -> None:
    assert decode([f"[2026-11-23 17:00:00,000] FATAL [ReplicaFetcherThread-0-1], {line} (x)"]) == [
        RefusalLine("t-0", leader, 1, 2)
    ]


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        ("[Controller 2]: Shutting down broker 0 (kafka.controller.KafkaController)", CONTROLLED_SHUTDOWN),
        ("[Controller id=2] Shutting down broker 0 (kafka.controller.KafkaController)", CONTROLLED_SHUTDOWN),
        (
            "[Controller id=2] New broker startup callback for 1 (kafka.controller.KafkaController)",
            BROKER_STARTUP,
        ),
    ],
)
def test_a_controller_logs_the_cause_of_elections(line: str, reason: str) -> None:
    assert decode([line]) == [CauseLine(reason)]


@pytest.mark.parametrize(
    ("line", "reason", "partitions"),
    [
        ("handleBrokerUnfenced: changing partition(s): t-0", BROKER_STARTUP, {"t-0"}),
        (
            "enterControlledShutdown[0]: changing partition(s): my-topic-1, t-0",
            CONTROLLED_SHUTDOWN,
            {"my-topic-1", "t-0"},
        ),
    ],
)
def test_a_kraft_controller_logs_the_partitions_that_it_changed(
    line: str, reason: str, partitions: set[str]
) -> None:
    expected = CauseLine(reason, frozenset(partitions), explains_one=True)
    assert decode([f"[QuorumController id=3000] {line} (x)"]) == [expected]


def test_a_mere_count_of_changed_partitions_explains_none() -> None:
    assert decode(["[QuorumController id=3000] handleBrokerFenced: changing 2 partition(s) (x)"]) == []


@pytest.mark.parametrize(
    ("named", "partitions"),
    [
        ("[t,0],[my-topic,1]", {"t-0", "my-topic-1"}),
        ("t-0,my-topic-1", {"t-0", "my-topic-1"}),
        ("", set()),
    ],
)
@pytest.mark.parametrize(
    "line",
    [
        "Starting preferred replica leader election for partitions {} (kafka.controller.KafkaController)",
        "Starting replica leader election (PREFERRED) for partitions {} triggered by AdminClientTriggered (x)",
    ],
)
def test_a_preferred_election_names_its_partitions(line: str, named: str, partitions: set[str]) -> None:
    assert decode([line.format(named)]) == [CauseLine(PREFERRED_LEADER, frozenset(partitions))]


@pytest.mark.parametrize(
    "line",
    [
        "",
        "\tlog.dirs = [/data/Truncating log t-0 to offset]",
        "[Controller id=2] Processing automatic preferred replica leader election (kafka.controller.KafkaController)",
        "Corruption found in segment 0, truncating to offset 7 (kafka.log.Log)",
    ],
)
def test_other_lines_are_ignored(line: str) -> None:
    assert decode([line]) == []
