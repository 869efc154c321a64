"""A broker's log is read while it is written and supplies the reasons of recent events."""

from pathlib import Path

import pytest

from harrow.cluster_model.log.unified_log import LEADER_EPOCH_TRUNCATION
from harrow.live_cluster.broker_logs.broker_log import BrokerLog, LoggedPartition
from harrow.live_cluster.broker_logs.log_lines import RefusalLine

CUT = "Truncating log t-0 to offset {}."


class FollowedLog:
    """A log with the file that it follows."""

    def __init__(self, folder: Path) -> None:
        self.file = folder / "log"
        self.log = BrokerLog(self.file, LEADER_EPOCH_TRUNCATION)

    def write(self, *lines: str, end: str = "\n") -> None:
        with self.file.open("a") as file:
            file.write("\n".join(lines) + end)

    def cause(self, text: str) -> None:
        self.write(f"[Controller id=0] {text} (kafka.controller.KafkaController)")

    def changed(self, why: str, partitions: str) -> None:
        self.write(f"[QuorumController id=3000] {why}: changing partition(s): {partitions} (x)")


CONTROLLER = "[2026-11-27 01:53:00,000] DEBUG [QuorumController id=3000] {} (org.apache.kafka.controller.ReplicationControlManager)"
CREATED = CONTROLLER.format(
    "Replayed PartitionRecord for new partition t-0 with topic ID phAVQm4mRO2bzLCrs3ix4Q and PartitionRegistration("
    "replicas=[0, 1, 2], directories=[izd1-NsoSoqzPlvuv7KPHQ], isr=[0, 1, 2], removingReplicas=[], addingReplicas=[], elr=[], "
    "lastKnownElr=[], leader=0, leaderRecoveryState=RECOVERED, leaderEpoch=0, partitionEpoch=0)."
)
CHANGED = CONTROLLER.format("partition change for t-0 with topic ID phAVQm4mRO2bzLCrs3ix4Q: {}")


@pytest.fixture
def written(tmp_path: Path) -> FollowedLog:
    return FollowedLog(tmp_path)


def test_a_missing_log_has_no_lines(written: FollowedLog) -> None:
    assert written.log.truncation_reason("t-0", 1) == ""
    assert written.log.election_reason("t-0") == ""
    assert written.log.refusals() == []


def test_a_reason_is_reported_once_for_each_truncation(written: FollowedLog) -> None:
    written.write(CUT.format(1))
    assert written.log.truncation_reason("t-1", 1) == ""
    assert written.log.truncation_reason("t-0", 1) == LEADER_EPOCH_TRUNCATION
    assert written.log.truncation_reason("t-0", 1) == ""
    written.write(CUT.format(0))
    assert written.log.truncation_reason("t-0", 0) == LEADER_EPOCH_TRUNCATION


def test_a_truncation_below_its_offset_has_the_reason_too(written: FollowedLog) -> None:
    written.write(CUT.format(5))
    assert written.log.truncation_reason("t-0", 3) == LEADER_EPOCH_TRUNCATION


def test_a_truncation_above_the_logged_offset_has_another_reason(written: FollowedLog) -> None:
    written.write(CUT.format(1))
    assert written.log.truncation_reason("t-0", 3) == ""


def test_an_incomplete_line_is_read_when_it_is_complete(written: FollowedLog) -> None:
    written.write(CUT.format(1)[:20], end="")
    assert written.log.truncation_reason("t-0", 1) == ""
    written.write(CUT.format(1)[20:])
    assert written.log.truncation_reason("t-0", 1) == LEADER_EPOCH_TRUNCATION


def test_invalid_utf8_is_ignored(written: FollowedLog) -> None:
    written.file.write_bytes(b"\xff\xfe\n" + CUT.format(1).encode() + b"\n")
    assert written.log.truncation_reason("t-0", 1) == LEADER_EPOCH_TRUNCATION


def test_a_refusal_is_reported_once(written: FollowedLog) -> None:
    written.write(
        "Exiting because log truncation is not allowed for partition t-0, current leader's latest offset 1 is less than replica's"
        " latest offset 2"
    )
    assert written.log.refusals() == [RefusalLine("t-0", None, 1, 2)]
    assert written.log.refusals() == []


def test_the_last_cause_in_the_controllers_log_explains_elections(written: FollowedLog) -> None:
    written.cause("Broker failure callback for 0")
    assert written.log.election_reason("t-0") == "broker failure"
    # One cause has two changes: an ISR without the dead leader, then a leader.
    assert written.log.election_reason("t-0") == "broker failure"
    written.cause("New broker startup callback for 0")
    assert written.log.election_reason("t-0") == "broker startup"


def test_a_preferred_election_explains_only_its_partitions(written: FollowedLog) -> None:
    written.cause("Broker failure callback for 0")
    written.cause("Starting preferred replica leader election for partitions t-1")
    assert written.log.election_reason("t-1") == "preferred leader"
    assert written.log.election_reason("t-0") == "broker failure"


def test_causes_of_an_earlier_term_explain_nothing(written: FollowedLog) -> None:
    written.cause("Starting preferred replica leader election for partitions t-1")
    written.cause("0 successfully elected as the controller")
    assert written.log.election_reason("t-1") == "controller failover"


def test_in_kraft_a_cause_explains_one_change_of_each_named_partition(written: FollowedLog) -> None:
    """A KRaft controller logs no line for some changes, such as moving a leadership back."""
    written.changed("handleBrokerFenced", "t-0, t-1")
    assert written.log.election_reason("t-0") == "broker failure"
    assert written.log.election_reason("t-1") == "broker failure"
    assert written.log.election_reason("t-0") == ""
    assert written.log.election_reason("t-2") == ""
    written.changed("handleBrokerUnfenced", "t-0")
    assert written.log.election_reason("t-1") == ""
    assert written.log.election_reason("t-0") == "broker startup"


def test_in_kraft_a_later_cause_replaces_an_earlier_one(written: FollowedLog) -> None:
    written.changed("handleBrokerFenced", "t-0")
    written.changed("handleBrokerUnfenced", "t-0")
    assert written.log.election_reason("t-0") == "broker startup"
    assert written.log.election_reason("t-0") == ""


def test_a_cause_of_a_new_term_replaces_earlier_ones(written: FollowedLog) -> None:
    written.changed("handleBrokerFenced", "t-0")
    written.changed("handleBrokerFenced", "t-0")
    assert written.log.election_reason("t-0") == "broker failure"
    written.cause("0 successfully elected as the controller")
    written.changed("handleBrokerUnfenced", "t-0")
    assert written.log.election_reason("t-0") == "broker startup"


ORDER = "Broker 1 received LeaderAndIsr request PartitionState(leader=0, leaderEpoch={}, isr=0) correlation id {} from controller 2 epoch 1 for partition [t,0] (x)"
OBEYED = "Broker 1 completed LeaderAndIsr request correlationId {} from controller 2 epoch 1 for the become-follower transition for partition t-0 (x)"


def test_a_broker_has_an_epoch_once_it_completes_the_request(written: FollowedLog) -> None:
    written.write(ORDER.format(3, 7))
    assert written.log.leader_epoch("t-0") == -1
    written.write(OBEYED.format(6))
    assert written.log.leader_epoch("t-0") == -1
    written.write(OBEYED.format(7))
    assert (written.log.leader_epoch("t-0"), written.log.leader_epoch("t-1")) == (3, -1)
    written.write(ORDER.format(4, 8))
    assert written.log.leader_epoch("t-0") == 3


def test_a_restarted_broker_has_no_epochs(written: FollowedLog) -> None:
    written.write(ORDER.format(3, 7), OBEYED.format(7), "starting (kafka.server.KafkaServer)")
    assert written.log.leader_epoch("t-0") == 3
    written.write("INFO [KafkaServer id=1] starting (kafka.server.KafkaServer)")
    assert written.log.leader_epoch("t-0") == -1


def test_a_kraft_controller_logs_partitions_with_their_eligible_leaders(written: FollowedLog) -> None:
    """KIP-966. A change keeps the fields that it leaves out."""
    written.write(CREATED)
    assert written.log.partitions() == {"t-0": LoggedPartition(0, 0, (0, 1, 2), ())}
    written.write(
        CHANGED.format(
            "isr: [0, 1, 2] -> [2], leader: 0 -> 2, leaderEpoch: 0 -> 1, elr: [] -> [1, 0], partitionEpoch: 4 -> 5"
        )
    )
    assert written.log.partitions() == {"t-0": LoggedPartition(2, 1, (2,), (1, 0))}
    written.write(CHANGED.format("elr: [1, 0] -> [1], partitionEpoch: 5 -> 6"))
    written.write(
        CHANGED.format("isr: [2] -> [], leader: 2 -> -1, leaderEpoch: 1 -> 2, partitionEpoch: 6 -> 7")
    )
    assert written.log.partitions() == {"t-0": LoggedPartition(-1, 2, (), (1,))}
