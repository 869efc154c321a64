"""Missed bounds of service levels: which of them are the same failure."""

import pytest

from harrow.campaigns.language.loader import load_text
from harrow.campaigns.run.run_result import RunResult
from harrow.campaigns.run.runner import run_plan
from harrow.campaigns.search.failure import failures
from harrow.campaigns.search.missed_bound import MissedBound, bound_failures
from harrow.campaigns.search.shrink import NothingToShrinkError, Shrinker

CAMPAIGN = """
name: outage
cluster:
  brokers: 2
  topics: [{{name: t, replication_factor: {replicas}}}]
  network: {{latency: 1ms}}
workload:
  duration: 25s
  producers: [{{rate: 20/s, settings: {settings}}}]
faults:
  - {{at: 3s, do: {{broker_crash: {{broker: 0, restart_after: 15s}}}}}}
expect:
  service: {bounds}
"""


def run_with(
    bounds: str, *, replicas: int = 2, settings: str = "{acks: all, enable.idempotence: true}"
) -> RunResult:
    text = CAMPAIGN.format(bounds=bounds, replicas=replicas, settings=settings)
    return run_plan(load_text(text, "outage.yaml").plans[0], 0)


def missed(result: RunResult) -> MissedBound:
    (bound,) = bound_failures(result)
    return bound


def test_an_outage_that_an_election_ends_differs_from_one_until_the_broker_is_back() -> None:
    elected, restarted = run_with("{outage: < 5s}"), run_with("{outage: < 5s}", replicas=1)
    assert missed(elected).cause == ("leader down", "leader elected")
    assert missed(restarted).cause == ("leader down", "broker started")
    assert missed(elected).shown_by(restarted) is None
    assert missed(elected).shown_by(elected) is not None


def test_the_story_of_an_outage_begins_with_the_send_and_ends_with_the_ack() -> None:
    result = run_with("{outage: < 5s}")
    finding = missed(result).shown_by(result)
    assert finding is not None
    longest = result.service.partitions["t-0"].longest
    assert longest is not None
    assert [link.at_us for link in finding.chain] == [longest.start_us, longest.end_us, None]


def test_a_failed_send_is_known_by_its_error() -> None:
    impatient = "{retries: 0, request.timeout.ms: 2s, delivery.timeout.ms: 3s}"
    result = run_with("{failed: <= 0, unknown: <= 0}", settings=impatient)
    assert [bound.name for bound in bound_failures(result)] == ["service.unknown"]
    assert missed(result).cause
    finding = missed(result).shown_by(result)
    assert finding is not None
    assert finding.partition == "t-0"


@pytest.mark.parametrize("bounds", ["{outage: '> 30s'}", "{acked: '< 50%'}", "{failed: '>= 1'}"])
def test_a_bound_that_good_service_misses_is_no_failure(bounds: str) -> None:
    result = run_with(bounds)
    assert result.missed
    assert not failures(result)
    with pytest.raises(NothingToShrinkError, match="an expectation is missed"):
        Shrinker(result.plan, 0)


def test_a_share_of_acks_that_is_too_small_is_shrunk() -> None:
    result = run_with("{acked: '> 99%'}", settings="{acks: all, retries: 0, request.timeout.ms: 2s}")
    shrinker = Shrinker(result.plan, 0)
    assert shrinker.failure.name == "service.acked"
    faults, records = shrinker.run().size()
    assert faults == 1
    assert records <= 2


@pytest.mark.parametrize("bounds", ["{lag: < 20}", "{ack_max: < 2s}", "{end_to_end_max: < 2s}"])
def test_a_missed_bound_is_shrunk_to_the_outage_that_it_had(bounds: str) -> None:
    text = CAMPAIGN.replace("]\nfaults", "]\n  consumers: [{{}}]\nfaults")
    campaign = text.format(bounds=bounds, replicas=2, settings="{acks: all}")
    shrinker = Shrinker(load_text(campaign, "outage.yaml").plans[0], 0)
    assert isinstance(shrinker.failure, MissedBound)
    assert shrinker.failure.cause == ("leader down", "leader elected")
    faults, _ = shrinker.run().size()
    assert faults == 1
