"""The key ``invariants``: what is watched inside the cluster while a campaign runs."""

from collections.abc import Sequence

from campaigns.schema import ALL_INVARIANTS, NO_INVARIANTS
from campaigns.sections.draft import Draft
from cluster_model.invariants import INVARIANTS


def read_invariants(names: Sequence[str] | None, draft: Draft) -> tuple[str, ...]:
    """Return the invariants that a campaign wants, in the order of the catalogue; all when it says nothing."""
    if names is None:
        return tuple(INVARIANTS)
    if len(names) > 1:
        for index, name in enumerate(names):
            if name in (ALL_INVARIANTS, NO_INVARIANTS):
                draft.problem(
                    ("invariants", index), f"invariants: `{name}` stands alone, without other names"
                )
    if ALL_INVARIANTS in names:
        return tuple(INVARIANTS)
    return tuple(name for name in INVARIANTS if name in names)
