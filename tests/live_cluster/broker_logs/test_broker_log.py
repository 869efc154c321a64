"""A log is read while it is written, and answers why something has just happened."""

from pathlib import Path

import pytest

from harrow.cluster_model.log.unified_log import LEADER_EPOCH_TRUNCATION
from harrow.live_cluster.broker_logs.broker_log import BrokerLog, LoggedPartition
from harrow.live_cluster.broker_logs.log_lines import RefusalLine

CUT = "Truncating log t-0 to offset {}."


class Written:
    """A log, and the file that it follows."""

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
def written(tmp_path: Path) -> Written:
    return Written(tmp_path)


def test_missing_log_has_no_lines(written: Written) -> None:
    assert written.log.truncation_reason("t-0", 1) == ""
    assert written.log.election_reason("t-0") == ""
    assert written.log.refusals() == []


def test_reason_is_reported_once_for_each_truncation(written: Written) -> None:
    written.write(CUT.format(1))
    assert written.log.truncation_reason("t-1", 1) == ""
    assert written.log.truncation_reason("t-0", 1) == LEADER_EPOCH_TRUNCATION
    assert written.log.truncation_reason("t-0", 1) == ""
    written.write(CUT.format(0))
    assert written.log.truncation_reason("t-0", 0) == LEADER_EPOCH_TRUNCATION


def test_a_batch_that_reaches_beyond_the_offset_goes_as_a_whole(written: Written) -> None:
    written.write(CUT.format(5))
    assert written.log.truncation_reason("t-0", 3) == LEADER_EPOCH_TRUNCATION


def test_a_log_that_has_lost_less_has_lost_it_otherwise(written: Written) -> None:
    written.write(CUT.format(1))
    assert written.log.truncation_reason("t-0", 3) == ""


def test_half_a_line_waits_for_its_end(written: Written) -> None:
    written.write(CUT.format(1)[:20], end="")
    assert written.log.truncation_reason("t-0", 1) == ""
    written.write(CUT.format(1)[20:])
    assert written.log.truncation_reason("t-0", 1) == LEADER_EPOCH_TRUNCATION


def test_invalid_utf8_is_ignored(written: Written) -> None:
    written.file.write_bytes(b"\xff\xfe\n" + CUT.format(1).encode() + b"\n")
    assert written.log.truncation_reason("t-0", 1) == LEADER_EPOCH_TRUNCATION


def test_refusal_is_reported_once(written: Written) -> None:
    written.write(
        "Exiting because log truncation is not allowed for partition t-0, current leader's latest offset 1 is less than replica's"
        " latest offset 2"
    )
    assert written.log.refusals() == [RefusalLine("t-0", None, 1, 2)]
    assert written.log.refusals() == []


def test_a_controller_has_elected_for_what_it_deals_with(written: Written) -> None:
    written.cause("Broker failure callback for 0")
    assert written.log.election_reason("t-0") == "broker failure"
    # An ISR without the dead leader, and then a leader: one cause has two changes.
    assert written.log.election_reason("t-0") == "broker failure"
    written.cause("New broker startup callback for 0")
    assert written.log.election_reason("t-0") == "broker startup"


def test_preferred_elections_explain_only_their_partitions(written: Written) -> None:
    written.cause("Broker failure callback for 0")
    written.cause("Starting preferred replica leader election for partitions t-1")
    assert written.log.election_reason("t-1") == "preferred leader"
    assert written.log.election_reason("t-0") == "broker failure"


def test_earlier_terms_explain_nothing(written: Written) -> None:
    written.cause("Starting preferred replica leader election for partitions t-1")
    written.cause("0 successfully elected as the controller")
    assert written.log.election_reason("t-1") == "controller failover"


def test_in_kraft_a_cause_explains_one_change_of_each_partition_that_it_names(written: Written) -> None:
    """What a controller of KRaft does without a line, such as moving a leadership back, is not told."""
    written.changed("handleBrokerFenced", "t-0, t-1")
    assert written.log.election_reason("t-0") == "broker failure"
    assert written.log.election_reason("t-1") == "broker failure"
    assert written.log.election_reason("t-0") == ""
    assert written.log.election_reason("t-2") == ""
    written.changed("handleBrokerUnfenced", "t-0")
    assert written.log.election_reason("t-1") == ""
    assert written.log.election_reason("t-0") == "broker startup"


def test_in_kraft_a_later_cause_does_not_leave_an_earlier_one_for_what_follows(written: Written) -> None:
    written.changed("handleBrokerFenced", "t-0")
    written.changed("handleBrokerUnfenced", "t-0")
    assert written.log.election_reason("t-0") == "broker startup"
    assert written.log.election_reason("t-0") == ""


def test_a_cause_of_another_term_is_a_new_one(written: Written) -> None:
    written.changed("handleBrokerFenced", "t-0")
    written.changed("handleBrokerFenced", "t-0")
    assert written.log.election_reason("t-0") == "broker failure"
    written.cause("0 successfully elected as the controller")
    written.changed("handleBrokerUnfenced", "t-0")
    assert written.log.election_reason("t-0") == "broker startup"


ORDER = "Broker 1 received LeaderAndIsr request PartitionState(leader=0, leaderEpoch={}, isr=0) correlation id {} from controller 2 epoch 1 for partition [t,0] (x)"
OBEYED = "Broker 1 completed LeaderAndIsr request correlationId {} from controller 2 epoch 1 for the become-follower transition for partition t-0 (x)"


def test_a_broker_takes_part_in_an_epoch_once_it_has_obeyed(written: Written) -> None:
    written.write(ORDER.format(3, 7))
    assert written.log.leader_epoch("t-0") == -1
    written.write(OBEYED.format(6))
    assert written.log.leader_epoch("t-0") == -1
    written.write(OBEYED.format(7))
    assert (written.log.leader_epoch("t-0"), written.log.leader_epoch("t-1")) == (3, -1)
    written.write(ORDER.format(4, 8))
    assert written.log.leader_epoch("t-0") == 3


def test_started_process_has_no_epochs(written: Written) -> None:
    written.write(ORDER.format(3, 7), OBEYED.format(7), "starting (kafka.server.KafkaServer)")
    assert written.log.leader_epoch("t-0") == 3
    written.write("INFO [KafkaServer id=1] starting (kafka.server.KafkaServer)")
    assert written.log.leader_epoch("t-0") == -1


def test_a_controller_of_kraft_tells_a_partition_with_who_is_eligible_to_lead_it(written: Written) -> None:
    """KIP-966. What a change leaves out stays as it was."""
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
