"""The registration of every rule, in the order in which they are judged and listed."""

from typing import Final

from checks import (
    duplicate,
    inconsistent_offsets,
    log_divergence,
    lost_write,
    nonmonotonic_send,
    read_above_hw,
    two_leaders,
    unseen,
)
from checks.rule import Rule

RULES: Final[dict[str, Rule]] = {
    rule.name: rule
    for rule in (
        lost_write.RULE,
        duplicate.RULE,
        nonmonotonic_send.RULE,
        inconsistent_offsets.RULE,
        unseen.RULE,
        read_above_hw.RULE,
        log_divergence.RULE,
        two_leaders.RULE,
    )
}
"""Rules by name."""
