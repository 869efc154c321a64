"""Faults kill applications at a step of their loop, delay their polls, and start and stop them."""

import pytest

from harrow.campaigns.language.loader import load_text
from harrow.campaigns.run.run_result import RunResult
from harrow.campaigns.run.runner import run_plan
from harrow.cluster_model.events import (
    ApplicationStep,
    ClientStopped,
    FaultEnded,
    GroupStateChanged,
    MembershipLost,
)
from harrow.cluster_model.trace import select
from harrow.faults.clients import STEPS, ApplicationCrash
from tests.recorded_choices import RecordedStream

CAMPAIGN = """
name: struck
kafka: "3.9"
settings:
  acks: all
  group.id: app
  auto.offset.reset: earliest
  offsets.topic.num.partitions: 1
  transaction.state.log.num.partitions: 1
  session.timeout.ms: 6s
  max.poll.interval.ms: 4s
cluster: {brokers: 3, topics: [{name: in, replication_factor: 3}, {name: out, replication_factor: 3}]}
workload:
  duration: 15s
  producers: [{name: shop, rate: 10/s, partitions: [in-0]}]
  consumers: [{name: reader-of-in, partitions: [in-0], settings: {group.id: other}}]
  applications: [{name: app, from: in, to: out, work: 5ms}]
"""
SECOND = 1_000_000


def run(fault: str) -> RunResult:
    (plan,) = load_text(f"{CAMPAIGN}faults: [{{at: 6s, do: {{{fault}}}}}]\n", "a.yaml").plans
    return run_plan(plan, 0)


def steps(result: RunResult) -> list[ApplicationStep]:
    return list(select(result.evidence.trace, ApplicationStep))


@pytest.mark.parametrize("step", ["poll", "begin", "process", "send", "send_offsets", "commit"])
def test_an_application_crashes_before_the_step(step: str) -> None:
    result = run(f"application_crash: {{client: app, step: {step}, restart_after: 2s}}")
    (stopped,) = select(result.evidence.trace, ClientStopped)
    before = [event for event in steps(result) if event.at_us <= stopped.at_us]
    assert before[-1].step == step
    after = next(event for event in steps(result) if event.at_us > stopped.at_us)
    assert (after.step, after.at_us) == ("poll", stopped.at_us + 2 * SECOND) or after.at_us > stopped.at_us


def test_healing_releases_an_application_that_never_reaches_the_step() -> None:
    result = run("application_crash: {client: app, step: abort, restart_after: 1s}")
    assert not list(select(result.evidence.trace, ClientStopped))
    assert not list(select(result.evidence.trace, FaultEnded))
    assert result.verdict.reasons == ()


def test_a_paused_application_continues_where_it_stood() -> None:
    result = run("application_pause: {client: app, step: commit, duration: 3s}")
    (ended,) = select(result.evidence.trace, FaultEnded)
    held = [event for event in steps(result) if event.at_us < ended.at_us]
    assert held[-1].step == "commit"
    assert ended.at_us - held[-1].at_us >= 3 * SECOND
    assert not list(select(result.evidence.trace, ClientStopped))


def test_an_application_passes_the_step_as_often_as_the_fault_says() -> None:
    first, third = (
        run(f"application_crash: {{client: app, step: begin, after: {after}, restart_after: 1s}}")
        for after in (0, 2)
    )
    (died,), (died_later,) = (select(each.evidence.trace, ClientStopped) for each in (first, third))
    passed = [event for event in steps(third) if event.step == "begin" and event.at_us >= 6 * SECOND]
    assert died.at_us < died_later.at_us
    assert len([event for event in passed if event.at_us <= died_later.at_us]) == 3


def test_a_missing_step_is_drawn() -> None:
    crash = ApplicationCrash(client="app").with_choices(RecordedStream([STEPS.index("send")]))
    assert crash.step == "send"
    assert crash.with_choices(RecordedStream([])) is crash


@pytest.mark.parametrize(
    "fault",
    [
        "application_crash: {client: shop, step: poll}",
        "application_crash: {client: app, step: store}",
        "slow_poll: {client: shop}",
    ],
)
def test_a_step_fault_does_not_apply_without_the_step(fault: str) -> None:
    assert run(fault).faults == ()


def test_an_application_slower_than_max_poll_interval_leaves_its_group() -> None:
    result = run("slow_poll: {client: app, by: 6s, duration: 1s}")
    (lost,) = select(result.evidence.trace, MembershipLost)
    assert (lost.client, lost.reason) == ("app", "max.poll.interval.ms")


def test_in_a_rebalance_storm_a_group_rebalances_for_each_leave_and_join() -> None:
    result = run("rebalance_storm: {rounds: 3, every: 1s}")
    reasons = [
        event.reason
        for event in select(result.evidence.trace, GroupStateChanged)
        if event.group == "app" and event.at_us > 6 * SECOND
    ]
    assert reasons.count("app leaves") == 3
    assert reasons.count("no members are left") >= 1
    assert result.verdict.reasons == ()
