"""Rules accept everything that a correct cluster does, and find every planted anomaly."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from harrow.campaigns.record.phrases import because
from harrow.checks.evidence import Evidence
from harrow.checks.finding import RuleResult
from harrow.checks.index import Index
from harrow.checks.judge import judge
from harrow.checks.rules.broken_invariants import RULES as INVARIANT_RULES
from harrow.checks.rules.catalogue import RULES
from harrow.checks.rules.history_rules import HISTORY_RULES
from tests.properties.correct_cluster import BROKERS, PARTITIONS, STEPS, CorrectCluster

STEP = st.tuples(st.sampled_from(STEPS), st.sampled_from(PARTITIONS), st.integers(0, 60))
SCRIPT = st.lists(STEP, max_size=60)
LONG_SCRIPT = st.lists(STEP, min_size=40, max_size=120)
SETTINGS = st.fixed_dictionaries(
    {
        "acks": st.sampled_from(("0", "1", "all")),
        "idempotence": st.booleans(),
        "unclean_leader_election": st.booleans(),
        "power_loss": st.booleans(),
    }
)


# Broker 0 commits a record at offset 0, truncates it, and appends another record there. That one is
# acked, and truncated before a high watermark passes it.
ACKED_ABOVE_AN_OLD_WATERMARK = [
    (CorrectCluster.send, "t-1", 1),
    (CorrectCluster.fetch, "t-1", 1),
    (CorrectCluster.shrink, "t-1", 1),
    (CorrectCluster.elect, "t-1", 1),
    (CorrectCluster.cut_power, "t-1", 1),
    (CorrectCluster.elect, "t-1", 0),
    (CorrectCluster.send, "t-1", 1),
    (CorrectCluster.elect, "t-1", 1),
]
UNFLUSHED_ACKS_1 = {"acks": "1", "idempotence": False, "unclean_leader_election": False, "power_loss": True}


def play(script: list[Any], **settings: Any) -> CorrectCluster:
    cluster = CorrectCluster(**settings)
    for step, partition, number in script:
        step(cluster, partition, number)
    cluster.heal()
    return cluster


@pytest.mark.soak(size=50, rounds_in_test=1, rounds_in_soak=200)
@settings(max_examples=50)
@given(LONG_SCRIPT)
def test_safe_settings_have_no_findings(script: list[Any]) -> None:
    verdict = judge(play(script).run.evidence())
    assert verdict.status in ("held", "inconclusive"), verdict
    assert all(result.status == "held" for result in verdict.rules.values()), verdict
    assert (verdict.status == "held") == (not verdict.reasons)


@pytest.mark.soak(size=50, rounds_in_test=1, rounds_in_soak=200)
@settings(max_examples=50)
@given(LONG_SCRIPT, SETTINGS)
@example(ACKED_ABOVE_AN_OLD_WATERMARK, UNFLUSHED_ACKS_1)
def test_permitted_losses_are_never_violations(script: list[Any], drawn: dict[str, Any]) -> None:
    verdict = judge(play(script, **drawn).run.evidence())
    violated = {name: result for name, result in verdict.rules.items() if result.status == "violated"}
    assert not violated


@settings(max_examples=50)
@given(SCRIPT, SETTINGS)
def test_the_same_evidence_gives_the_same_verdict(script: list[Any], drawn: dict[str, Any]) -> None:
    assert judge(play(script, **drawn).run.evidence()) == judge(play(script, **drawn).run.evidence())


Draw = Callable[[st.SearchStrategy[Any]], Any]


def acked_values(cluster: CorrectCluster) -> list[str]:
    return [str(send.value) for send in Index(cluster.run.evidence()).acked.get("t-0", [])]


def plant_lost_write(cluster: CorrectCluster, draw: Draw) -> Evidence:
    offset = draw(st.integers(0, len(cluster.log("t-0")) - 2))
    for broker in BROKERS:
        cluster.run.truncate(broker, offset, partition="t-0")
    return cluster.run.evidence()


def plant_duplicate(cluster: CorrectCluster, draw: Draw) -> Evidence:
    value = draw(st.sampled_from(acked_values(cluster)))
    cluster.run.append(draw(st.sampled_from(BROKERS)), value, partition="t-0")
    return cluster.run.evidence()


def plant_nonmonotonic_send(cluster: CorrectCluster, draw: Draw) -> Evidence:
    index = Index(cluster.run.evidence())
    (session,) = [
        session
        for session in index.sessions
        if (session.process, session.partition) == (cluster.sessions[0], "t-0")
    ]
    sends = [send.value for send in session.sends if send.outcome == "ok"]
    earlier, later = draw(st.lists(st.sampled_from(sends), min_size=2, max_size=2, unique=True))
    swapped = {earlier: later, later: earlier}
    for log in cluster.run.logs["t-0"].values():
        log[:] = [(swapped.get(value, value), epoch) for value, epoch in log]
    return cluster.run.evidence()


def plant_inconsistent_offset(cluster: CorrectCluster, draw: Draw) -> Evidence:
    offset = draw(st.integers(0, len(cluster.log("t-0")) - 1))
    cluster.run.poll((offset, "planted"), partition="t-0")
    return cluster.run.evidence()


def plant_unseen(cluster: CorrectCluster, draw: Draw) -> Evidence:
    value = draw(st.sampled_from(acked_values(cluster)))
    evidence = cluster.run.evidence()
    for operation in evidence.operations:
        if operation.f == "poll" and operation.type == "ok":
            records = operation.value[0][1]
            for partition, pairs in records.items():
                records[partition] = [pair for pair in pairs if pair[1] != value]
    return evidence


def plant_misrouted(cluster: CorrectCluster, draw: Draw) -> Evidence:
    value, run = draw(st.sampled_from(acked_values(cluster))), cluster.run
    if draw(st.booleans()):
        run.poll((draw(st.integers(0, 3)), value), partition="t-1")
    else:
        for broker in BROKERS:
            run.append(broker, value, partition="t-1")
    return run.evidence()


def plant_read_above_hw(cluster: CorrectCluster, draw: Draw) -> Evidence:
    broker = draw(st.sampled_from(BROKERS))
    end = cluster.hw("t-0", broker) + draw(st.integers(1, 3))
    cluster.run.event(
        "served", broker=broker, partition="t-0", client="c", offset=end - 1, end_offset=end, hw=end
    )
    return cluster.run.evidence()


def plant_log_divergence(cluster: CorrectCluster, draw: Draw) -> Evidence:
    log = cluster.log("t-0", draw(st.sampled_from(BROKERS)))
    offset = draw(st.integers(0, len(log) - 1))
    value, epoch = log[offset]
    log[offset] = draw(st.sampled_from([(value, epoch + 1), ("planted", epoch)]))
    return cluster.run.evidence()


def plant_two_leaders(cluster: CorrectCluster, draw: Draw) -> Evidence:
    evidence = cluster.run.evidence()
    leaders = [event for event in evidence.trace if event[1] == "leader"]
    event = draw(st.sampled_from(leaders))
    at = draw(st.integers(0, len(evidence.trace)))
    other = (event[2] + 1) % len(BROKERS)
    planted = (*event[:2], other, *event[3:])
    return replace(evidence, trace=[*evidence.trace[:at], planted, *evidence.trace[at:]])


PLANTS: dict[str, Callable[[CorrectCluster, Draw], Evidence]] = {
    "lost-write": plant_lost_write,
    "duplicate": plant_duplicate,
    "nonmonotonic-send": plant_nonmonotonic_send,
    "inconsistent-offsets": plant_inconsistent_offset,
    "unseen": plant_unseen,
    "misrouted": plant_misrouted,
    "read-above-hw": plant_read_above_hw,
    "log-divergence": plant_log_divergence,
    "two-leaders": plant_two_leaders,
}

# Two undisturbed sends of one session, so that there is something to break.
CERTAIN = [(CorrectCluster.send, "t-0", 2), (CorrectCluster.send, "t-0", 4)]


NEED_A_RUN = {
    # Decisions of leaders, and evidence of a core: test_rule_acked_below_min_isr.py and
    # test_core_recovery.py.
    *("acked-below-min-isr", "unavailable"),
    # Decisions of coordinators: test_transaction_rules.py.
    *("torn-transaction", "unasked-commit", "fenced-write", "read-above-lso", "hanging-transaction"),
    *("lso-stands-still", "offset-regression"),
    # Effects of applications: test_effect_rules.py.
    *("lost-effect", "doubled-effect", "rebalance-skip", "unconsumed"),
}
"""Rules that need evidence that only runs have. The named tests plant their anomalies in runs."""


def test_every_rule_that_needs_a_trace_has_a_plant() -> None:
    """Rules for histories and invariants have other tests: test_history_rules.py, for example."""
    families = {rule.name for rule in (*HISTORY_RULES, *INVARIANT_RULES)}
    assert PLANTS.keys() == RULES.keys() - families - NEED_A_RUN


@pytest.mark.parametrize("rule", PLANTS)
@pytest.mark.soak(size=20, rounds_in_test=1, rounds_in_soak=100)
@settings(max_examples=20)
@given(script=SCRIPT, data=st.data())
def test_a_planted_anomaly_is_found(rule: str, script: list[Any], data: st.DataObject) -> None:
    cluster = play([*script, *CERTAIN])
    evidence = PLANTS[rule](cluster, data.draw)
    result = RULES[rule].judge(Index(evidence))
    assert result.status == "violated"
    assert judge(evidence).status == "violated"
    check_findings(result, evidence)


def check_findings(result: RuleResult, evidence: Evidence) -> None:
    for finding in result.findings:
        assert finding.partition in evidence.partitions
        assert because(finding)
        assert finding.permitted_by is None
