"""unavailable: what a healed core has to give to every partition, and what is demanded of nobody."""

from dataclasses import replace
from typing import Any

import pytest

from harrow.campaigns.record.phrases import because, preventions
from harrow.checks.evidence import DOWN, LEADS, PAUSED, UNAWARE, HealedCore, PartitionService
from harrow.checks.finding import RuleResult
from harrow.checks.index import Index
from harrow.checks.promise import DISK_FAILURE
from harrow.checks.rules.catalogue import RULES, rules_for
from tests.checks.evidence_builder import PARTITION, RunBuilder

SERVES = PartitionService(leader=0, leader_epoch=1, isr=(0,), leader_state=LEADS, high_watermark=1)


def core(service: PartitionService, **given: Any) -> HealedCore:
    found: dict[str, Any] = {
        "brokers": (0,),
        "healed_us": 5_000_000,
        "within_us": 60_000_000,
        "looked_us": 65_000_000,
        "controller": 0,
        "partitions": {PARTITION: service},
    }
    return HealedCore(**{**found, **given})


def judged(found: HealedCore | None, *, unclean: bool = False, release: str = "2.4") -> RuleResult:
    run = RunBuilder((0, 1, 2), unclean_leader_election=unclean)
    process = run.producer(acks="1")
    run.elect(0, 1, (0, 1))
    run.write(process, "a", 0, 1)
    run.send(process, "b")
    run.append(0, "b")
    run.ok(process, "b", 1)
    run.append(0, "c")
    run.stop(1)
    run.at(5)
    run.event("core_healed", brokers=(0,))
    evidence = replace(run.evidence(), core=found, release=release)
    return RULES["unavailable"].judge(Index(evidence))


def lack(result: RuleResult) -> Any:
    (finding,) = result.findings
    return dict(finding.details)["lacks"]


def test_held_when_every_partition_serves() -> None:
    result = judged(core(SERVES))
    assert (result.status, result.promise, result.findings) == ("held", "a live in-sync replica", ())


@pytest.mark.parametrize(
    ("service", "lacks", "told"),
    [
        (replace(SERVES, leader=-1, leader_state=DOWN), "no-leader", "still had no leader, although its ISR was [0]"),
        (
            replace(SERVES, leader=1, isr=(1, 0), leader_state=DOWN),
            "no-leader",
            "the leader of t-0 was still broker 1, which was down",
        ),
        (
            replace(SERVES, leader=1, isr=(1, 0), leader_state=PAUSED),
            "no-leader",
            "the leader of t-0 was still broker 1, which was paused",
        ),
        (
            replace(SERVES, leader_state=UNAWARE),
            "leader-unaware",
            "broker 0 still did not know that it leads t-0",
        ),
        (
            replace(SERVES, unread=((1, "b"), (2, "c"))),
            "hw-behind",
            "2 records of t-0, 1 of them acked, could not be read, because the high watermark was still 1",
        ),
        (
            replace(SERVES, unread=((0, "a"),)),
            "not-readable",
            "1 record of t-0, 1 of them acked, could not be read, although they were below the high watermark",
        ),
    ],
)  # fmt: skip
def test_violated_when_a_partition_lacks_something(service: PartitionService, lacks: str, told: str) -> None:
    result = judged(core(service))
    assert (result.status, lack(result)) == ("violated", lacks)
    (finding,) = result.findings
    assert finding.partition == PARTITION
    assert f"60.000s later {told}" in because(finding) or f"60.000s later {PARTITION} {told}" in because(
        finding
    )
    assert [link.event for link in finding.chain] == ["elected", "stopped", "core-healed", "conclusion"]


def test_the_first_record_that_is_behind_is_named() -> None:
    (finding,) = judged(core(replace(SERVES, unread=((0, "a"), (1, "b"))))).findings
    assert (finding.offset, finding.value) == (1, "b")


def test_nothing_is_demanded_of_a_leader_that_keeps_its_session_in_vain() -> None:
    service = replace(SERVES, leader=1, leader_state=UNAWARE)
    assert judged(core(service)).status == "violated"
    assert judged(core(service, impaired=(1,))).status == "held"


def test_nothing_is_demanded_while_the_controller_keeps_its_session_in_vain() -> None:
    service = replace(SERVES, leader=-1, leader_state=DOWN)
    assert judged(core(service, controller=2)).status == "violated"
    assert judged(core(service, controller=2, impaired=(2,))).status == "held"


def test_a_broker_outside_the_isr_cannot_lead_without_unclean_elections() -> None:
    service = replace(SERVES, leader=-1, leader_state=DOWN, isr=(1,))
    assert judged(core(service)).status == "held"
    assert lack(judged(core(service), unclean=True)) == "no-leader"


@pytest.mark.parametrize(
    ("sets", "status"),
    [
        (((0, 1),), "violated"),
        (((0,),), "violated"),
        (((1,),), "held"),
        (((0,), (1,)), "held"),
        (((),), "held"),
    ],
)
def test_with_an_empty_isr_those_have_to_be_there_that_kip_966_waits_for(
    sets: tuple[tuple[int, ...], ...], status: str
) -> None:
    service = replace(SERVES, leader=-1, leader_state=DOWN, isr=(), recovery_sets=sets)
    result = judged(core(service))
    assert result.status == status
    for finding in result.findings:
        assert "still had no leader, although broker" in because(finding)


def test_an_isr_without_the_core_excuses_no_leader_that_does_not_commit() -> None:
    service = replace(SERVES, leader=2, isr=(2, 1), unread=((1, "b"),))
    assert lack(judged(core(service))) == "hw-behind"


def test_inconclusive_before_the_core_was_looked_at() -> None:
    assert judged(HealedCore()).status == "inconclusive"


def test_judged_only_with_a_core() -> None:
    assert rules_for((), core=True).keys() - rules_for((), core=False).keys() == {"unavailable"}


@pytest.mark.parametrize(("release", "prevented"), [("2.0", True), ("2.4", False)])
def test_before_broker_epochs_a_leader_may_not_be_told(release: str, prevented: bool) -> None:
    (finding,) = judged(core(replace(SERVES, leader_state=UNAWARE)), release=release).findings
    assert any("KIP-380" in fix for fix in preventions(finding)) is prevented


@pytest.mark.parametrize(
    ("isr", "isr_end", "status"),
    [
        ((0, 1), 2, "held"),  # broker 2 held it back, and nothing looks again before the next append
        ((0, 1), 1, "violated"),  # the ISR itself lacks it
        ((0, 1, 2), 2, "violated"),  # nobody is outside the ISR
    ],
)
def test_a_high_watermark_that_a_replica_outside_the_isr_held_back_waits_for_an_append(
    isr: tuple[int, ...], isr_end: int, status: str
) -> None:
    behind = replace(SERVES, isr=isr, unread=((1, "b"),), isr_end=isr_end)
    assert judged(core(behind)).status == status


@pytest.mark.parametrize(
    ("damaged", "repaired", "permitted_by"),
    [
        (0, False, DISK_FAILURE),
        # A follower's copy keeps nobody from reading, nor what the leader has lost by then.
        (1, False, None),
        (0, True, None),
    ],
)
def test_no_consumer_reads_past_a_batch_that_the_leaders_disk_has_damaged(
    damaged: int, *, repaired: bool, permitted_by: str | None
) -> None:
    run = RunBuilder((0, 1))
    process = run.producer()
    run.elect(0, 1, (0, 1))
    run.write(process, "a", 0, 1)
    run.event("batch_damaged", broker=damaged, partition=PARTITION, offset=0)
    if repaired:
        run.recover_with_corruption(0, 0)
        run.replicate(0, "a", epoch=1)
    run.at(5)
    run.event("core_healed", brokers=(0,))
    found = core(replace(SERVES, unread=((0, "a"),)))
    (finding,) = RULES["unavailable"].judge(Index(replace(run.evidence(), core=found))).findings
    assert finding.permitted_by == permitted_by
    if permitted_by:
        assert because(finding).endswith(
            "broker 0, the leader, has a in a batch with a bad CRC: Kafka never repairs that, and the broker goes on leading "
            "although broker 1 had it"
        )


def test_damage_after_the_look_kept_no_consumer_from_reading() -> None:
    run = RunBuilder((0, 1))
    process = run.producer()
    run.elect(0, 1, (0, 1))
    run.write(process, "a", 0, 1)
    run.at(5)
    run.event("core_healed", brokers=(0,))
    run.at(66)
    run.event("batch_damaged", broker=0, partition=PARTITION, offset=0)
    found = core(replace(SERVES, unread=((0, "a"),)))
    (finding,) = RULES["unavailable"].judge(Index(replace(run.evidence(), core=found))).findings
    assert finding.permitted_by is None


def test_a_damaged_batch_with_a_value_that_was_read_before_keeps_readers_from_the_next() -> None:
    """Without idempotence a value stands twice: it has been read where it stands first."""
    run = RunBuilder((0, 1))
    process = run.producer()
    run.elect(0, 1, (0, 1))
    run.write(process, "a", 0, 1)
    run.append(0, "a")
    run.replicate(1, "a")
    run.write(process, "b", 0, 1)
    run.event("batch_damaged", broker=0, partition=PARTITION, offset=1)
    run.at(5)
    run.event("core_healed", brokers=(0,))
    found = core(replace(SERVES, unread=((2, "b"),), high_watermark=3))
    (finding,) = RULES["unavailable"].judge(Index(replace(run.evidence(), core=found))).findings
    assert finding.permitted_by == DISK_FAILURE
