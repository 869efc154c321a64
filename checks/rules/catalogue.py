"""Registers every rule, in the order in which rules are judged and listed."""

# Plain Python: this table is read only once, so compiling it gains nothing.

from collections.abc import Collection
from typing import Final

from harrow.checks.rule import Rule
from harrow.checks.rules import (
    acked_below_min_isr,
    broken_invariants,
    doubled_effect,
    duplicate,
    fenced_write,
    hanging_transaction,
    inconsistent_offsets,
    log_divergence,
    lost_effect,
    lost_write,
    lso_stands_still,
    misrouted,
    nonmonotonic_send,
    offset_regression,
    read_above_hw,
    read_above_lso,
    rebalance_skip,
    torn_transaction,
    two_leaders,
    unasked_commit,
    unavailable,
    unconsumed,
    unseen,
)
from harrow.checks.rules.history_rules import HISTORY_RULES
from harrow.cluster_model.invariants.catalogue import INVARIANTS, ONE_LEADER_PER_EPOCH, is_promised
from harrow.cluster_model.registry import Registry

RULES: Final[Registry[str, Rule]] = Registry(
    (rule.name, rule)
    for rule in (
        lost_write.RULE,
        duplicate.RULE,
        nonmonotonic_send.RULE,
        inconsistent_offsets.RULE,
        unseen.RULE,
        misrouted.RULE,
        read_above_hw.RULE,
        log_divergence.RULE,
        two_leaders.RULE,
        unavailable.RULE,
        unconsumed.RULE,
        acked_below_min_isr.RULE,
        torn_transaction.RULE,
        unasked_commit.RULE,
        fenced_write.RULE,
        read_above_lso.RULE,
        hanging_transaction.RULE,
        lso_stands_still.RULE,
        offset_regression.RULE,
        *HISTORY_RULES,
        lost_effect.RULE,
        doubled_effect.RULE,
        rebalance_skip.RULE,
        *broken_invariants.RULES,
    )
)
"""Rules by name."""

RULE_OF_INVARIANT: Final[dict[str, str]] = {
    **{name: name for name in INVARIANTS if name in RULES},
    ONE_LEADER_PER_EPOCH: two_leaders.RULE.name,
}
"""The name of the rule that judges each invariant. The two names differ only for
one-leader-per-epoch."""

_INVARIANT_OF_RULE: Final = {rule: invariant for invariant, rule in RULE_OF_INVARIANT.items()}


def rules_for(invariants: Collection[str], *, core: bool, in_order: bool = True) -> dict[str, Rule]:
    """Return the rules that can be judged in a run that watched these invariants.

    *core* says whether a core was healed, *in_order* whether the trace is in order
    (`harrow.checks.evidence.Evidence`).
    """
    return {
        name: rule
        for name, rule in RULES.items()
        if (core or name != unavailable.RULE.name)
        and (in_order or not rule.goes_by_order)
        and (name not in _INVARIANT_OF_RULE or _INVARIANT_OF_RULE[name] in invariants)
    }


def watched_in(invariants: Collection[str], release: str, demand: Collection[str]) -> tuple[str, ...]:
    """Return the invariants to check in a run of *release*.

    An invariant that only a later release promises is checked only if its rule is in *demand*.
    """
    return tuple(
        name for name in invariants if is_promised(name, release) or RULE_OF_INVARIANT.get(name) in demand
    )
