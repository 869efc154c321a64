"""unconsumed: an undisturbed group has to read every acked record."""

from typing import Any

import pytest

from harrow.campaigns.record.phrases import sentence
from harrow.checks.evidence import ConsumerSettings
from harrow.checks.finding import HELD, PERMITTED, VIOLATED, RuleResult
from tests.checks.evidence_builder import PARTITION, RunBuilder

READ_TIMEOUT_S = 60
"""How long the group may take to read a record."""

MAX_POLL_INTERVAL_S = 300
"""How long a member may take between two polls."""


class GroupRun:
    """A group with one member, and a record that is acked in the third second."""

    def __init__(self, *owned: str, **settings: Any) -> None:
        self.run = RunBuilder()
        self.run.elect(0, 0, (0, 1))
        self.producer = self.run.producer()
        self.member = self.run.history.new_process("c")
        settings = {"offset_reset": "earliest", "topics": ("t",), **settings}
        self.run.consumers[self.member] = ConsumerSettings(
            name="c",
            read_committed=False,
            group="g",
            patience_us=READ_TIMEOUT_S * 1_000_000,
            max_poll_interval_us=MAX_POLL_INTERVAL_S * 1_000_000,
            **settings,
        )
        self.run.at(1)
        self.run.history.record_subscription(self.member, (PARTITION,), self.run.now_us)
        self.assign(*owned)
        self.run.at(2)
        self.run.write(self.producer, "m0", 0, 1)

    def assign(self, *owned: str) -> None:
        self.run.history.record_assignment(self.member, owned, self.run.tick())
        self.run.event("partitions_assigned", client="c", group="g", generation=1, partitions=owned)

    def poll(self, *pairs: tuple[int, str], partition: str = PARTITION) -> None:
        now_us = self.run.tick()
        self.run.history.record_poll(self.member, {partition: list(pairs)}, now_us, now_us)

    def judge_at(self, seconds: float) -> RuleResult:
        """Read the partition back at *seconds* and judge the run."""
        self.run.at(seconds)
        self.run.read_to_end(0)
        return self.run.judge("unconsumed")


def test_a_partition_without_an_owner_is_a_violation() -> None:
    result = GroupRun("u-0").judge_at(2 * READ_TIMEOUT_S)
    (finding,) = result.findings
    assert (result.status, result.promise, finding.offset, finding.value) == (
        VIOLATED,
        "subscribe()",
        0,
        "m0",
    )
    assert [sentence(link) for link in finding.chain] == [
        "c was assigned u-0 (generation 1)",
        "no member of group g had t-0, although they subscribe to its topic",
        "117.400s later, group g had still not read 1 acked record at offset 0 or above",
    ]


def test_a_chain_includes_an_election_only_if_the_group_already_had_members() -> None:
    group = GroupRun("u-0")
    group.run.elect(0, 0, (0, 1), partition="t-1")
    group.run.write(group.producer, "m1", 0, 1, partition="t-1")
    group.run.at(2 * READ_TIMEOUT_S)
    group.run.read_to_end(0, "t-1")
    result = group.judge_at(2 * READ_TIMEOUT_S + 1)
    added = next(finding for finding in result.findings if finding.partition == "t-1")
    assert [sentence(link) for link in added.chain[:2]] == [
        "c was assigned u-0 (generation 1)",
        "broker 0, as controller, elected broker 0 (epoch 0)",
    ]


def test_a_member_that_polls_in_vain_is_a_violation() -> None:
    (finding,) = GroupRun(PARTITION).judge_at(2 * READ_TIMEOUT_S).findings
    assert sentence(finding.chain[-2]) == "c had t-0, and none of its polls returned offset 0"


def test_a_group_may_take_the_sum_of_its_timeouts_to_read() -> None:
    assert GroupRun("u-0").judge_at(READ_TIMEOUT_S + 2).status == HELD
    assert GroupRun("u-0").judge_at(READ_TIMEOUT_S + 4).status == VIOLATED


def test_a_record_that_the_group_has_read_is_consumed() -> None:
    group = GroupRun(PARTITION)
    group.poll((0, "m0"))
    assert group.judge_at(4 * READ_TIMEOUT_S).status == HELD


def test_a_record_below_a_committed_offset_is_consumed() -> None:
    group = GroupRun("u-0")
    group.run.history.record_commit(group.member, [(PARTITION, 1)], group.run.tick(), "ok")
    assert group.judge_at(4 * READ_TIMEOUT_S).status == HELD


@pytest.mark.parametrize(
    ("name", "fields"),
    [
        ("fault_ended", {"fault": "link_slow", "details": (), "strike": 1}),
        ("broker_started", {"broker": 1}),
        ("group_state", {"broker": 0, "group": "g", "state": "Stable", "generation": 2, "members": (), "reason": ""}),
        ("client_throttled", {"broker": 0, "client": "c", "api": "Fetch", "throttle_us": 5}),
    ],
)  # fmt: skip
def test_a_disturbance_of_the_group_restarts_its_deadline(name: str, fields: dict[str, Any]) -> None:
    group = GroupRun("u-0")
    group.run.at(1.5 * READ_TIMEOUT_S)
    group.run.event(name, **fields)
    assert group.judge_at(2 * READ_TIMEOUT_S).status == HELD
    assert group.judge_at(3 * READ_TIMEOUT_S).status == VIOLATED


def test_a_fault_without_an_end_disturbs_the_group_until_healing() -> None:
    group = GroupRun("u-0")
    group.run.event("fault", fault="link_slow", phase="inject", details=(), strike=1)
    group.run.at(1.5 * READ_TIMEOUT_S)
    group.run.event("healed")
    assert group.judge_at(2 * READ_TIMEOUT_S).status == HELD
    assert group.judge_at(3 * READ_TIMEOUT_S).status == VIOLATED


def test_a_rebalancing_group_has_additional_time() -> None:
    group = GroupRun("u-0")
    group.run.event(
        "group_state", broker=0, group="g", state="PreparingRebalance", generation=1, members=(), reason=""
    )
    assert group.judge_at(300).status == HELD
    assert group.judge_at(400).status == VIOLATED


@pytest.mark.parametrize(
    ("name", "fields"),
    [
        ("client_stopped", {"client": "c"}),
        ("membership_lost", {"client": "c", "group": "g", "reason": "test"}),
    ],
)
def test_a_group_without_members_need_not_read(name: str, fields: dict[str, Any]) -> None:
    group = GroupRun("u-0")
    group.run.event(name, **fields)
    assert group.judge_at(4 * READ_TIMEOUT_S).status == HELD


def test_a_member_busy_with_other_partitions_has_more_time() -> None:
    group = GroupRun(PARTITION, "u-0")
    group.run.at(MAX_POLL_INTERVAL_S)
    group.poll((0, "other"), partition="u-0")
    assert group.judge_at(MAX_POLL_INTERVAL_S + 1.5 * READ_TIMEOUT_S).status == HELD
    # A busy member does not matter if no member owns the partition.
    group = GroupRun("u-0")
    group.run.at(MAX_POLL_INTERVAL_S)
    group.poll((0, "other"), partition="u-0")
    assert group.judge_at(MAX_POLL_INTERVAL_S + 1.5 * READ_TIMEOUT_S).status == VIOLATED


@pytest.mark.parametrize("owned", [(PARTITION, "u-0"), ("u-0",)])
def test_a_member_may_wait_for_max_poll_interval_after_a_poll(owned: tuple[str, ...]) -> None:
    """The member owns the partition, or is the group leader that would assign it."""
    group = GroupRun(*owned)
    group.poll((0, "other"), partition="u-0")
    assert group.judge_at(MAX_POLL_INTERVAL_S + READ_TIMEOUT_S).status == HELD
    assert group.judge_at(MAX_POLL_INTERVAL_S + READ_TIMEOUT_S + 5).status == VIOLATED


def test_a_group_need_not_read_topics_to_which_no_member_subscribes() -> None:
    assert GroupRun("u-0", topics=("u",)).judge_at(4 * READ_TIMEOUT_S).status == HELD


def test_a_group_that_starts_at_the_end_need_not_read_before_its_first_position() -> None:
    group = GroupRun(PARTITION, offset_reset="latest")
    assert group.judge_at(4 * READ_TIMEOUT_S).status == HELD
    group = GroupRun(PARTITION, offset_reset="latest")
    group.run.event("offset_reset", client="c", partition=PARTITION, position=-1, offset=0, policy="latest")
    assert group.judge_at(4 * READ_TIMEOUT_S).status == VIOLATED


def test_a_member_without_a_reset_policy_need_not_start_reading() -> None:
    group = GroupRun(PARTITION, offset_reset="none")
    group.run.event("offset_found", client="c", partition=PARTITION, offset=-1)
    result = group.judge_at(4 * READ_TIMEOUT_S)
    (finding,) = result.findings
    assert (result.status, finding.permitted_by) == (PERMITTED, "auto.offset.reset=none")


def test_a_damaged_batch_on_the_leader_permits_unread_records() -> None:
    group = GroupRun(PARTITION)
    group.run.event("corrupt_batch", receiver="c", broker=0, partition=PARTITION, offset=0)
    result = group.judge_at(4 * READ_TIMEOUT_S)
    (finding,) = result.findings
    assert (result.status, finding.permitted_by) == (PERMITTED, "disk failure")
