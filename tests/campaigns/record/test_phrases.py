"""A long chain is shown without its minor links."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harrow.campaigns.record.phrases import shortened
from harrow.checks.causes import links
from harrow.checks.causes.catalogue import power_loss
from harrow.checks.link import KINDS, Link
from harrow.checks.rules.catalogue import RULES
from harrow.cluster_model.events import LeaderElected

PIVOTAL = (
    links.stopped(1, 0, cause="process"),
    links.unflushed_lost(1, 0, leo=1, offset=1),
    links.elected(1, 1, leader_epoch=1),
    links.truncated(1, 0, leo=1, reason="leader epoch", offset=1),
    links.isr_shrank(1, 0, before=(0, 1), isr=(0,), left=(1,)),
    links.isr_written(1, 0, isr=(0, 1)),
)
MINOR = (links.copied(1, 1, value="m", offset=1), links.recovered(1, 0, value="m", leo=1, hw=1))


@given(st.lists(st.sampled_from((*PIVOTAL, *MINOR, *MINOR, *MINOR)), min_size=1, max_size=40))
def test_a_long_chain_leaves_out_four_or_more_minor_links_in_a_row(chain: list[Link]) -> None:
    chain.append(power_loss.conclude(lost=(0,)))
    shown = list(shortened(chain))
    folded = [link.operands["count"] for link in shown if link.kind.name == "folded"]
    assert all(count >= 4 for count in folded)
    assert len(chain) == len(shown) - len(folded) + sum(folded)
    assert [link for link in shown if link.is_pivotal] == [link for link in chain if link.is_pivotal]
    assert (shown[0], shown[-1]) == (chain[0], chain[-1])
    if len(chain) <= 12:
        assert not folded


@pytest.mark.parametrize("pivotal", PIVOTAL, ids=lambda link: link.kind.name)
def test_faults_elections_truncations_and_isr_changes_are_pivotal(pivotal: Link) -> None:
    assert pivotal.is_pivotal


def test_every_election_is_pivotal() -> None:
    assert RULES
    elections = [kind for kind in KINDS.values() if kind.stems_from[:1] == (LeaderElected.name,)]
    assert elections
    assert all(kind.is_turn for kind in elections)
