"""The catalogue of rules."""

from importlib import import_module

import pytest

from harrow.checks.history.anomalies import ANOMALIES
from harrow.checks.rules.broken_invariants import RULES as INVARIANT_RULES
from harrow.checks.rules.catalogue import RULES
from harrow.checks.rules.history_rules import HISTORY_RULES


def test_the_order_of_rules_is_fixed() -> None:
    assert list(RULES) == [
        "lost-write",
        "duplicate",
        "nonmonotonic-send",
        "inconsistent-offsets",
        "unseen",
        "misrouted",
        "read-above-hw",
        "log-divergence",
        "two-leaders",
        "unavailable",
        "unconsumed",
        "acked-below-min-isr",
        "torn-transaction",
        "unasked-commit",
        "fenced-write",
        "read-above-lso",
        "hanging-transaction",
        "lso-stands-still",
        "offset-regression",
        "poll-skip",
        "nonmonotonic-poll",
        "int-poll-skip",
        "int-nonmonotonic-poll",
        "int-nonmonotonic-send",
        "int-send-skip",
        "G1a",
        "precommitted-read",
        "G0",
        "G1c",
        "lost-effect",
        "doubled-effect",
        "rebalance-skip",
        "hw-monotonic",
        "hw-within-log",
        "isr-holds-committed",
        "one-controller-per-epoch",
        "log-matching",
        "epoch-cache-monotonic",
        "producer-state-matches-log",
        "checkpoint-within-log",
        "shutdown-flushes-logs",
        "controller-epoch-monotonic",
        "leader-epoch-monotonic",
        "controller-writes-fenced",
        "registered-before-control",
        "registrations-known",
        "failover-shrinks-isr",
        "hw-waits-for-min-isr",
        "unclean-replica-not-elected",
        "committed-metadata-kept",
        "metadata-snapshot-committed",
        "commits-of-present-generation",
        "one-owner-per-partition",
    ]


FAMILIES = {rule.name for rule in (*HISTORY_RULES, *INVARIANT_RULES)}


@pytest.mark.parametrize("name", [name for name in RULES if name not in FAMILIES])
def test_each_rule_outside_a_family_has_its_own_file(name: str) -> None:
    assert import_module(f"harrow.checks.rules.{name.replace('-', '_')}").RULE is RULES[name]


def test_every_anomaly_of_histories_is_a_rule_of_runs() -> None:
    assert ANOMALIES.keys() <= RULES.keys()
