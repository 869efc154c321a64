"""An application polls, processes and commits in a loop, and a crash may lose or repeat effects."""

from collections import Counter
from collections.abc import Callable
from typing import get_args

import pytest

from harrow.campaigns.language.loader import load_text
from harrow.campaigns.run.run_result import RunResult
from harrow.campaigns.run.runner import run_plan
from harrow.cluster_model.clients.programs import APPLICATIONS, STEPS, ResultStore
from harrow.cluster_model.events import ApplicationEnded, ApplicationStep, OffsetsCommitted
from harrow.cluster_model.history import COMMIT, FAIL, OK, STORE, effect_of, origin_of
from harrow.cluster_model.topology import Delivery
from harrow.cluster_model.trace import select
from harrow.faults import clients as faults

BASE = """
name: applications
kafka: "{kafka}"
settings:
  acks: all
  group.id: app
  auto.offset.reset: earliest
  isolation.level: read_committed
  offsets.topic.num.partitions: 1
  transaction.state.log.num.partitions: 1
  session.timeout.ms: 8s
  transaction.timeout.ms: 10s
  max.poll.records: 10
cluster: {{brokers: 3, topics: [{{name: in, partitions: 2, replication_factor: 3}}, {{name: out, replication_factor: 3}}]}}
workload:
  duration: 15s
  producers: [{{rate: 10/s, partitions: [in-0, in-1], settings: {{enable.idempotence: true}}}}]
  applications:
    - {{name: one, from: in, {target}delivery: {delivery}, work: 10ms{more}}}
    - {{name: two, from: in, {target}delivery: {delivery}, work: 10ms{more}}}
{faults}
"""

Effects = tuple[int, int, int]


@pytest.fixture(scope="module")
def run() -> Callable[..., RunResult]:
    """Run applications with a kind of delivery and a fault; each combination runs once."""
    results: dict[tuple[str, ...], RunResult] = {}

    def run_once(delivery: str, fault: str = "", *, kafka: str = "3.9", more: str = "") -> RunResult:
        key = (delivery, fault, kafka, more)
        if key not in results:
            faults_section = f"faults: [{{at: 8s, do: {{{fault}}}}}]" if fault else ""
            target = "" if delivery == "idempotent_sink" else "to: out, "
            text = BASE.format(
                delivery=delivery, kafka=kafka, target=target, more=more, faults=faults_section
            )
            results[key] = run_plan(load_text(text, "applications.yaml").plans[0], 0)
        return results[key]

    return run_once


def effects(result: RunResult) -> Effects:
    """Return the numbers of records, of records without an effect and of those with several.

    They are counted only from records read back and results stored.
    """
    names = result.evidence.process_names
    read: Counter[str] = Counter()
    produced: Counter[str | None] = Counter()
    for operation in result.evidence.operations:
        if operation.type == OK and names[operation.process] == "reader":
            for _, _, value in operation.polls():
                origin = origin_of(str(value))
                (read if origin is None else produced)[str(value) if origin is None else origin] += 1
        if operation.type == OK and operation.f == STORE:
            produced.update(origin_of(result_) for _, _, (_, result_) in operation.value)
    return len(read), sum(not produced[value] for value in read), sum(produced[value] > 1 for value in read)


@pytest.mark.parametrize("delivery", APPLICATIONS)
def test_without_faults_each_record_has_exactly_one_effect(
    run: Callable[..., RunResult], delivery: str
) -> None:
    result = run(delivery)
    records, lost, doubled = effects(result)
    assert records > 100
    assert (lost, doubled) == (0, 0)
    assert result.verdict.reasons == ()


CRASH = "application_crash: {{client: one, step: {step}, after: {after}, restart_after: 1s}}"


@pytest.mark.parametrize("kafka", ["2.8", "4.3"])
@pytest.mark.parametrize("step", ["poll", "begin", "send", "send_offsets", "commit"])
def test_with_transactions_a_crash_at_any_step_neither_loses_nor_repeats_an_effect(
    run: Callable[..., RunResult], step: str, kafka: str
) -> None:
    result = run("exactly_once", CRASH.format(step=step, after=1), kafka=kafka)
    assert len(result.faults) == 1
    assert effects(result)[1:] == (0, 0)


@pytest.mark.parametrize(
    ("delivery", "step", "loses", "doubles"),
    [
        ("at_least_once", "commit", False, True),
        ("at_most_once", "send", True, False),
        ("auto_commit", "send", False, True),
        ("idempotent_sink", "store", False, False),
        ("watermark", "commit", False, True),
    ],
)
def test_the_order_of_commit_and_effect_decides_whether_a_crash_loses_or_repeats_effects(
    run: Callable[..., RunResult], delivery: str, step: str, *, loses: bool, doubles: bool
) -> None:
    _, lost, doubled = effects(run(delivery, CRASH.format(step=step, after=1)))
    assert (lost > 0, doubled > 0) == (loses, doubles)


def test_an_application_polls_first_after_a_crash(
    run: Callable[..., RunResult],
) -> None:
    result = run("exactly_once", CRASH.format(step="send_offsets", after=0))
    steps = [event for event in select(result.evidence.trace, ApplicationStep) if event.client == "one"]
    crash = next(
        at for at, event in enumerate(steps) if event.at_us >= 8_000_000 and event.step == "send_offsets"
    )
    assert steps[crash + 1].step == "poll", "the restarted application begins with its first step"


@pytest.mark.parametrize("delivery", ["watermark", "highest_finished"])
@pytest.mark.parametrize("work", ["0ms", "1ms", "50ms"])
def test_records_finished_during_a_commit_are_committed_even_if_no_more_records_come(
    delivery: str, work: str
) -> None:
    text = f"""
name: workers
settings: {{auto.offset.reset: earliest}}
cluster: {{brokers: 3, topics: [{{name: in}}, {{name: out}}]}}
workload:
  producers: [{{settings: {{linger.ms: 50}}}}]
  applications: [{{name: app, from: in, to: out, delivery: {delivery}, work: {work}}}]
script: [{{at: 5s, do: {{send: {{value: m, count: 3, partition: in-0}}}}}}, {{after: 5s}}]
"""
    (plan,) = load_text(text, "workers.yaml").plans
    commits = list(select(run_plan(plan, 0).evidence.trace, OffsetsCommitted))
    assert commits[-1].offsets == (("in-0", 3),)


def test_offsets_of_a_transaction_are_commits_in_the_history(run: Callable[..., RunResult]) -> None:
    result = run("exactly_once")
    commits = [operation for operation in result.evidence.operations if operation.f == COMMIT]
    assert {operation.type for operation in commits} == {"invoke", OK}
    committed = {
        (name, offset)
        for event in select(result.evidence.trace, OffsetsCommitted)
        for name, offset in event.offsets
    }
    successful = [operation for operation in commits if operation.type == OK]
    assert {(name, offset) for operation in successful for _, name, offset in operation.value} <= committed


def test_the_commit_in_an_aborted_transaction_fails_in_the_history(run: Callable[..., RunResult]) -> None:
    pause = "application_pause: {client: one, step: send_offsets, duration: 9500ms}"
    result = run("exactly_once", pause)
    assert any(operation.f == COMMIT and operation.type == FAIL for operation in result.evidence.operations)
    assert effects(result)[1:] == (0, 0)


def test_an_application_with_a_fenced_producer_ends_and_its_successor_does_not(
    run: Callable[..., RunResult],
) -> None:
    result = run(
        "exactly_once", "application_pause: {client: one, step: commit, duration: 5s, replaced: true}"
    )
    ended = select(result.evidence.trace, ApplicationEnded)
    assert [(event.client, event.error) for event in ended] == [("one", "PRODUCER_FENCED")]
    assert effects(result)[1:] == (0, 0)


@pytest.mark.parametrize(
    "fault", ["rebalance_storm: {rounds: 2}", "slow_poll: {client: all, by: 3s, duration: 6s}"]
)
@pytest.mark.parametrize("delivery", ["exactly_once", "idempotent_sink", "watermark"])
def test_rebalances_and_slow_polls_lose_no_effect(
    run: Callable[..., RunResult], delivery: str, fault: str
) -> None:
    result = run(delivery, fault, more=", consumer: {max.poll.interval.ms: 5s}")
    assert len(result.faults) == (2 if "slow_poll" in fault else 1)
    assert effects(result)[1] == 0
    assert result.verdict.reasons == ()


def test_a_store_refuses_a_second_result_for_a_record() -> None:
    store = ResultStore()
    assert store.next_offset("in-0") is None
    assert store.add("in-0", 4)
    assert not store.add("in-0", 4)
    assert not store.add("in-0", 3)
    assert store.add("in-0", 6)
    assert store.next_offset("in-0") == 7


def test_an_effect_names_the_record_that_caused_it() -> None:
    assert origin_of(effect_of("app", 3, "order-1")) == "order-1"
    assert origin_of(effect_of("second", 0, effect_of("first", 3, "order-1"))) == "first:3(order-1)"
    assert origin_of("order-1") is None


def test_campaigns_and_faults_accept_exactly_the_deliveries_and_steps_of_the_programs() -> None:
    assert tuple(APPLICATIONS) == get_args(Delivery)
    assert set(faults.STEPS) == set(STEPS)
