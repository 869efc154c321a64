"""unavailable: a healed core has to serve every partition that it can."""

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


def healed_core(service: PartitionService, **fields: Any) -> HealedCore:
    defaults: dict[str, Any] = {
        "brokers": (0,),
        "healed_us": 5_000_000,
        "within_us": 60_000_000,
        "looked_us": 65_000_000,
        "controller": 0,
        "partitions": {PARTITION: service},
    }
    return HealedCore(**{**defaults, **fields})


def judge(healed: HealedCore | None, *, unclean: bool = False, release: str = "2.4") -> RuleResult:
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
    evidence = replace(run.evidence(), core=healed, release=release)
    return RULES["unavailable"].judge(Index(evidence))


def missing_service(result: RuleResult) -> Any:
    (finding,) = result.findings
    return dict(finding.details)["lacks"]


def test_a_core_that_serves_every_partition_keeps_the_promise() -> None:
    result = judge(healed_core(SERVES))
    assert (result.status, result.promise, result.findings) == ("held", "a live in-sync replica", ())


@pytest.mark.parametrize(
    ("service", "lacks", "sentence"),
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
def test_a_partition_that_does_not_serve_is_a_violation(
    service: PartitionService, lacks: str, sentence: str
) -> None:
    result = judge(healed_core(service))
    assert (result.status, missing_service(result)) == ("violated", lacks)
    (finding,) = result.findings
    assert finding.partition == PARTITION
    assert f"60.000s later {sentence}" in because(
        finding
    ) or f"60.000s later {PARTITION} {sentence}" in because(finding)
    assert [link.event for link in finding.chain] == ["elected", "stopped", "core-healed", "conclusion"]


def test_a_finding_names_the_first_record_above_the_high_watermark() -> None:
    (finding,) = judge(healed_core(replace(SERVES, unread=((0, "a"), (1, "b"))))).findings
    assert (finding.offset, finding.value) == (1, "b")


def test_an_impaired_leader_that_keeps_its_session_need_not_serve() -> None:
    service = replace(SERVES, leader=1, leader_state=UNAWARE)
    assert judge(healed_core(service)).status == "violated"
    assert judge(healed_core(service, impaired=(1,))).status == "held"


def test_a_core_need_not_serve_while_the_controller_is_impaired() -> None:
    service = replace(SERVES, leader=-1, leader_state=DOWN)
    assert judge(healed_core(service, controller=2)).status == "violated"
    assert judge(healed_core(service, controller=2, impaired=(2,))).status == "held"


def test_a_core_outside_the_isr_need_not_serve_without_unclean_elections() -> None:
    service = replace(SERVES, leader=-1, leader_state=DOWN, isr=(1,))
    assert judge(healed_core(service)).status == "held"
    assert missing_service(judge(healed_core(service), unclean=True)) == "no-leader"


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
def test_a_core_with_an_empty_isr_has_to_serve_if_it_has_a_recovery_set_of_kip_966(
    sets: tuple[tuple[int, ...], ...], status: str
) -> None:
    service = replace(SERVES, leader=-1, leader_state=DOWN, isr=(), recovery_sets=sets)
    result = judge(healed_core(service))
    assert result.status == status
    for finding in result.findings:
        assert "still had no leader, although broker" in because(finding)


def test_an_isr_outside_the_core_does_not_excuse_an_uncommitted_record() -> None:
    service = replace(SERVES, leader=2, isr=(2, 1), unread=((1, "b"),))
    assert missing_service(judge(healed_core(service))) == "hw-behind"


def test_a_core_that_was_not_inspected_is_inconclusive() -> None:
    assert judge(HealedCore()).status == "inconclusive"


def test_the_rule_is_judged_only_with_a_core() -> None:
    assert rules_for((), core=True).keys() - rules_for((), core=False).keys() == {"unavailable"}


@pytest.mark.parametrize(("release", "prevented"), [("2.0", True), ("2.4", False)])
def test_an_unaware_leader_is_prevented_by_broker_epochs(release: str, prevented: bool) -> None:
    (finding,) = judge(healed_core(replace(SERVES, leader_state=UNAWARE)), release=release).findings
    assert any("KIP-380" in fix for fix in preventions(finding)) is prevented


@pytest.mark.parametrize(
    ("isr", "isr_end", "status"),
    [
        ((0, 1), 2, "held"),  # broker 2 held it back, and Kafka advances it only at the next append
        ((0, 1), 1, "violated"),  # the ISR itself lacks it
        ((0, 1, 2), 2, "violated"),  # no replica is outside the ISR
    ],
)
def test_a_high_watermark_held_back_from_outside_the_isr_may_wait_for_an_append(
    isr: tuple[int, ...], isr_end: int, status: str
) -> None:
    behind = replace(SERVES, isr=isr, unread=((1, "b"),), isr_end=isr_end)
    assert judge(healed_core(behind)).status == status


@pytest.mark.parametrize(
    ("damaged", "repaired", "permitted_by"),
    [
        (0, False, DISK_FAILURE),
        # Neither a damaged copy of a follower nor a repaired one of the leader blocks consumers.
        (1, False, None),
        (0, True, None),
    ],
)
def test_a_damaged_batch_on_the_leader_permits_unread_records(
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
    healed = healed_core(replace(SERVES, unread=((0, "a"),)))
    (finding,) = RULES["unavailable"].judge(Index(replace(run.evidence(), core=healed))).findings
    assert finding.permitted_by == permitted_by
    if permitted_by:
        assert because(finding).endswith(
            "broker 0, the leader, has a in a batch with a bad CRC: Kafka never repairs that, and the broker goes on leading "
            "although broker 1 had it"
        )


def test_damage_after_the_inspection_permits_no_unread_record() -> None:
    run = RunBuilder((0, 1))
    process = run.producer()
    run.elect(0, 1, (0, 1))
    run.write(process, "a", 0, 1)
    run.at(5)
    run.event("core_healed", brokers=(0,))
    run.at(66)
    run.event("batch_damaged", broker=0, partition=PARTITION, offset=0)
    healed = healed_core(replace(SERVES, unread=((0, "a"),)))
    (finding,) = RULES["unavailable"].judge(Index(replace(run.evidence(), core=healed))).findings
    assert finding.permitted_by is None


def test_a_damaged_duplicate_batch_permits_unread_records_behind_it() -> None:
    """Without idempotence the value has two copies, and consumers have read the first."""
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
    healed = healed_core(replace(SERVES, unread=((2, "b"),), high_watermark=3))
    (finding,) = RULES["unavailable"].judge(Index(replace(run.evidence(), core=healed))).findings
    assert finding.permitted_by == DISK_FAILURE
