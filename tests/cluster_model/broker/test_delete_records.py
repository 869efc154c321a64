"""DeleteRecords (KIP-107): the leader's deletion, its wait for followers, and their log starts."""

import pytest

from harrow.campaigns.language.loader import load_text
from harrow.campaigns.run.run_result import RunResult
from harrow.campaigns.run.runner import run_plan
from harrow.checks.finding import HELD, PERMITTED
from harrow.checks.index import Index
from harrow.cluster_model import errors, events
from harrow.cluster_model.clients.fetch_session_handler import FetchSessionHandler
from harrow.cluster_model.protocol import (
    DELETE_TO_HIGH_WATERMARK,
    FetchRequest,
    FetchResponse,
    LeaderAndIsr,
    LeaderAndIsrPartitionState,
    LeaderAndIsrRequest,
    PartitionData,
    UpdateMetadataRequest,
)
from harrow.cluster_model.trace import select
from tests.cluster_model.broker.test_broker_life import BrokerHarness
from tests.cluster_model.fakes import SECOND

PARTITION = "t-0"
TIMEOUT_US = 30 * SECOND


class Leader(BrokerHarness):
    """Broker 1, which leads t-0 with two followers; four records are committed."""

    def __init__(self) -> None:
        super().__init__()
        self.become(1, 1)
        for number in range(4):
            self.produce(f"m{number}")
        for follower in (2, 3):
            self.fetch(follower, 4, 0)
        self.answers: list[tuple[str, int, int]] = []

    def become(self, leader: int, epoch: int) -> None:
        state = LeaderAndIsrPartitionState(1, LeaderAndIsr(leader, epoch, (1, 2, 3), epoch), (1, 2, 3))
        self.send(LeaderAndIsrRequest(0, 1, 5, {PARTITION: state}))

    def delete(self, offset: int, partition: str = PARTITION) -> None:
        self.broker.delete_records(partition, offset, TIMEOUT_US, self._answered)

    def _answered(self, error: str, offset: int, low_watermark: int) -> None:
        self.answers.append((error, offset, low_watermark))

    def fetch(self, follower: int, offset: int, log_start: int) -> None:
        data = PartitionData(offset, -1, log_start=log_start)
        self.send(FetchRequest(follower, 0, 1_000, {PARTITION: data}))

    @property
    def log_start(self) -> int:
        return self.broker.replicas.partitions[PARTITION].log.log_start_offset


@pytest.mark.parametrize(
    ("partition", "offset", "error"),
    [
        (PARTITION, 5, errors.OFFSET_OUT_OF_RANGE),
        (PARTITION, -2, errors.OFFSET_OUT_OF_RANGE),
        ("unknown-9", 1, errors.UNKNOWN_TOPIC_OR_PARTITION),
    ],
)
def test_an_invalid_deletion_is_rejected_at_once(partition: str, offset: int, error: str) -> None:
    leader = Leader()
    leader.delete(offset, partition)
    assert leader.answers == [(error, offset, -1)]
    assert leader.log_start == 0


def test_a_follower_rejects_delete_records() -> None:
    leader = Leader()
    leader.become(2, 2)
    leader.delete(1)
    assert leader.answers == [(errors.NOT_LEADER_FOR_PARTITION, 1, -1)]


@pytest.mark.parametrize(
    ("offset", "expected_start"), [(1, 1), (3, 3), (4, 4), (DELETE_TO_HIGH_WATERMARK, 4)]
)
def test_the_log_start_rises_at_once_and_the_answer_waits_for_live_followers(
    offset: int, expected_start: int
) -> None:
    leader = Leader()
    leader.delete(offset)
    assert leader.log_start == expected_start
    assert leader.host.events_named("delete_records_obeyed") == [(1, PARTITION, expected_start)]
    leader.fetch(2, 4, expected_start)
    assert leader.answers == []
    leader.fetch(3, 4, expected_start - 1)
    assert leader.answers == []
    leader.fetch(3, 4, expected_start)
    assert leader.answers == [(errors.NONE, expected_start, expected_start)]


def test_a_repeated_deletion_is_answered_at_once() -> None:
    leader = Leader()
    leader.delete(0)
    assert leader.answers == [(errors.NONE, 0, 0)]


def test_a_deletion_does_not_wait_for_a_dead_follower() -> None:
    leader = Leader()
    leader.send(UpdateMetadataRequest(0, 1, 5, {}, (1, 2)))
    leader.delete(2)
    leader.fetch(2, 4, 2)
    assert leader.answers == [(errors.NONE, 2, 2)]


def test_a_deletion_times_out_without_a_follower_but_is_not_undone() -> None:
    leader = Leader()
    leader.delete(2)
    leader.host.advance(TIMEOUT_US)
    assert leader.answers == [(errors.REQUEST_TIMED_OUT, 2, 0)]
    assert leader.log_start == 2


def test_a_deposed_leader_fails_a_waiting_deletion() -> None:
    leader = Leader()
    leader.delete(2)
    leader.become(2, 2)
    assert leader.answers == [(errors.NOT_LEADER_FOR_PARTITION, 2, -1)]


def test_a_follower_reports_a_new_log_start_in_its_fetch() -> None:
    session = FetchSessionHandler()
    requests = []
    for log_start in (0, 0, 3, 3, 0):
        session.set_position(PARTITION, 4, 0, log_start=log_start)
        request = session.request(2, 0, 1_000)
        requests.append({name: data.log_start for name, data in request.partitions.items()})
        session.handle_response(FetchResponse({}, errors.NONE, 7))
    assert requests == [
        {PARTITION: 0},
        {},
        {PARTITION: 3},
        {},
        {PARTITION: 0},
    ]


CAMPAIGN = """
name: deletion
settings: {acks: all, min.insync.replicas: 2, linger.ms: 100ms, auto.offset.reset: earliest}
cluster: {brokers: 4, controller: 3, topics: [{name: t, assignment: [[0, 1, 2]]}]}
workload: {producers: [{name: p}], consumers: [{name: c, start: 20s}]}
"""


def run(kafka: str, *steps: str) -> RunResult:
    first = "{at: 1s, do: {send: {value: m, count: 4}}}", "{when: {acked: [m-0, m-1, m-2, m-3]}}"
    script = "".join(f"  - {step}\n" for step in (*first, *steps))
    (plan,) = load_text(f'{CAMPAIGN}kafka: "{kafka}"\nscript:\n{script}', "deletion.yaml").plans
    return run_plan(plan, 0)


DELETE = "{do: {delete_records: {partition: t-0, offset: 2}}}"


@pytest.mark.parametrize("kafka", ["0.11", "2.4", "3.9", "4.3"])
def test_requested_deletions_are_permitted_and_all_other_records_are_read(kafka: str) -> None:
    result = run(kafka, DELETE)
    assert result.verdict.status == PERMITTED
    (answered,) = select(result.evidence.trace, events.DeleteRecordsAnswered)
    assert (answered.offset, answered.error) == (2, errors.NONE)
    for log in result.evidence.replicas[PARTITION].values():
        assert (log.begins_at, log.values()) == (2, [None, None, "m-2", "m-3"])
    orders = Index(result.evidence).orders
    assert [orders.is_read(PARTITION, f"m-{number}") for number in range(4)] == [False, False, True, True]


def test_an_administrator_retries_a_deletion_at_the_next_leader() -> None:
    # By then the next leader's high watermark has reached the offset.
    pending_deletion = "{after: 1s, do: {slow_follower: {broker: 2, mode: stuck, duration: 20s}}}"
    crash = "{after: 300ms, do: {broker_crash: {broker: 0, restart_after: 30s}}}"
    result = run("2.4", pending_deletion, DELETE, crash, "{at: 40s, do: {send: last}}")
    accepted = [event.broker for event in select(result.evidence.trace, events.DeleteRecordsObeyed)]
    assert accepted[0] == 0
    assert set(accepted[1:]) == {1}
    (answered,) = select(result.evidence.trace, events.DeleteRecordsAnswered)
    assert (answered.broker, answered.error) == (1, errors.NONE)


@pytest.mark.parametrize(("kafka", "expected_start"), [("0.11", None), ("1.1", 0), ("2.4", 0)])
def test_since_1_1_an_empty_follower_can_start_its_log_within_a_batch(
    kafka: str, expected_start: int | None
) -> None:
    loss = "{do: {disk_loss: {broker: 2, restart_after: 20s}}}"
    result = run(kafka, loss, DELETE, "{at: 40s, do: {send: last}}")
    starts = [event.offset for event in select(result.evidence.trace, events.LogStartedAnew)]
    failed = [event.broker for event in select(result.evidence.trace, events.FetcherFailed)]
    assert starts == ([2] if expected_start is None else [2, expected_start])
    assert failed == ([2] if expected_start is None else [])


def test_records_consumed_before_their_deletion_are_not_lost() -> None:
    result = run("2.4", "{when: {consumed: [m-0, m-1, m-2, m-3]}}", DELETE)
    assert result.verdict.status == HELD
