"""The law of chains (`harrow.checks.link`): each link is a fault or follows from an earlier one.

These tests check the law for every finding of the library. They also compare what chains claim
about copies of a record with the logs at that moment. `make soak` also checks the
mutants, and more seeds of the swarms.
"""

from collections.abc import Iterator
from textwrap import dedent

import pytest

from harrow.campaigns.language.library_index import resolve
from harrow.campaigns.language.loader import load_campaign, load_text
from harrow.campaigns.record.phrases import because
from harrow.campaigns.run.run_result import RunResult
from harrow.campaigns.run.runner import run_plan
from harrow.checks.evidence import Evidence
from harrow.checks.finding import VIOLATED, Finding
from harrow.checks.link import Link, strikes, unmet
from harrow.checks.replay.cluster_state import ClusterState
from tests.chain_laws import assert_lawful
from tests.library_swarm import library_swarm
from tests.scenarios.library_plans import each_plan, fixed_names, library_plans, library_run
from tests.scenarios.test_mutants import BY_LIBRARY, run_mutant

PLANS = library_plans()
SWARMS = sorted(plan.campaign for plan in PLANS.values() if plan.swarm is not None)
ACKS_ALL = -1


def findings(result: RunResult) -> Iterator[Finding]:
    for rule_result in result.verdict.rules.values():
        yield from rule_result.findings


def assert_all_lawful(result: RunResult) -> None:
    for finding in findings(result):
        assert_lawful(finding, f"seed {result.seed}")


@each_plan()
def test_each_link_is_a_fault_or_follows_from_an_earlier_one_and_each_is_needed(name: str) -> None:
    assert_all_lawful(library_run(name))


@each_plan()
def test_each_fault_of_a_chain_names_its_strike(name: str) -> None:
    result = library_run(name)
    for finding in findings(result):
        for link in finding.chain:
            if link.kind.is_fault:
                assert link.strike is not None, because(finding)
                assert link.at_us is not None
                assert result.faults[link.strike - 1].at_us <= link.at_us
        assert strikes(finding.chain) == tuple(sorted(set(strikes(finding.chain))))


@each_plan(fixed_names())
def test_a_chain_claims_only_copies_that_logs_had_at_that_moment(name: str) -> None:
    result = library_run(name)
    for finding in findings(result):
        for link in finding.chain:
            value = link.operand("value")
            if link.kind.name == "acked" and link.operand("acks") == ACKS_ALL:
                copies_by_broker = copies(
                    result.evidence, finding, link, "acknowledged", link.operand("offset")
                )
                claimed = dict.fromkeys(link.operand("having"), True)
                claimed |= dict.fromkeys(link.operand("missing"), False)
                assert claimed.items() <= copies_by_broker.items(), because(finding)
            elif link.event in ("elected", "elected-uncleanly") and value == finding.value is not None:
                copies_by_broker = copies(result.evidence, finding, link, "election", None)
                assert copies_by_broker[link.broker] == link.operand("has_it"), because(finding)


def copies(
    evidence: Evidence, finding: Finding, link: Link, event_name: str, offset: int | None
) -> dict[int | None, bool]:
    """Return which brokers had a record just before the event of a link."""
    state = ClusterState({})
    value = str(link.operand("value"))
    for number, event in enumerate(evidence.trace, 1):
        if event[:2] == (link.at_us, event_name) and (
            value in event[-1] if event_name == "acknowledged" else event[4] == link.broker
        ):
            break
        state.advance(event, number)
    else:
        raise AssertionError(link)
    partition = state.partition(finding.partition)
    copies_by_broker: dict[int | None, bool] = {}
    for broker in evidence.partitions[finding.partition].replicas:
        replica = partition.replica(broker)
        deleted = any(
            (removal.entry.offset, removal.entry.value) == (offset, value)
            and removal.cause in ("retention", "compaction")
            for removal in replica.removed
        )
        is_stored = any(
            (offset is None or entry.offset == offset) and entry.value == value for entry in replica.log
        )
        copies_by_broker[broker] = is_stored or (deleted and event_name == "acknowledged")
    return copies_by_broker


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("paused-leader[base]", "session-expired"),
        ("paused-leader[base]", "paused"),
        ("acks-1-leader-crash[base]", "stopped"),
        ("forgotten-isr-change[base]", "isr-asked"),
        ("forgotten-isr-change[base]", "isr-forgotten"),
        ("delayed-end-txn[base]", "transaction-end-asked"),
        ("consume-transform-produce[at-most-once]", "application-died"),
        ("zombie-application[without-group-metadata]", "rebalanced"),
        ("bit-rot[base]", "damaged"),
        ("ack-lost[base]", "ack-lost"),
        ("ack-lost[base]", "retried"),
    ],
)
def test_a_chain_without_a_decisive_link_breaks_the_law(name: str, kind: str) -> None:
    chains = [finding.chain for finding in findings(library_run(name))]
    with_link = [chain for chain in chains if any(link.kind.name == kind for link in chain[:-1])]
    assert with_link, "no chain has the link"
    assert any(
        list(unmet([link for link in chain if link.kind.name != kind], of_first=True)) for chain in with_link
    )


def test_a_broken_invariant_names_the_isr_change_that_a_leader_forgot() -> None:
    options = ("kafka=3.9", "behaviours.isr_change_survives_repeated_state=false")
    (plan,) = load_campaign(resolve("standard")[0], options).plans
    (finding,) = run_plan(plan, 9_710_299).verdict.rules["isr-holds-committed"].findings
    kinds = [link.kind.name for link in finding.chain]
    assert kinds == [
        *("appended", "isr-asked", "isr-written", "isr-forgotten"),
        *("committed-alone", "invariant-broken"),
    ]
    assert_lawful(finding)
    # A leader that remembers the change would not commit without the follower.
    assert list(unmet(link for link in finding.chain if link.kind.name != "isr-forgotten"))


@pytest.mark.soak(size=1, rounds_in_test=0, rounds_in_soak=len(BY_LIBRARY))
def test_each_link_of_a_mutants_findings_follows_from_an_earlier_one(numbers: range) -> None:
    for name in list(BY_LIBRARY)[numbers.start : numbers.stop]:
        assert_all_lawful(run_mutant(PLANS[BY_LIBRARY[name][0]], name))


@pytest.mark.soak(size=2, rounds_in_test=1, rounds_in_soak=100)
def test_each_link_of_a_swarms_findings_follows_from_an_earlier_one(numbers: range) -> None:
    for name in SWARMS:
        for seed in numbers:
            assert_all_lawful(run_plan(library_swarm(name), seed))


def test_a_stuck_high_watermark_is_explained_by_a_refused_isr_change() -> None:
    (plan,) = load_text(dedent(REFUSED), "campaign.yaml").plans
    (finding,) = run_plan(plan, 0).verdict.rules["unavailable"].findings
    assert "the ISR shrank from [0, 1] to [0]" in because(finding)
    assert "broker 0 was refused the ISR [0], although that was written" in because(finding)


REFUSED = """
    name: refused-isr
    kafka: "2.8"
    settings: {replica.lag.time.max.ms: 1s, zookeeper.session.timeout.ms: 4s}
    cluster: {brokers: 2, topics: [{name: t, replication_factor: 2}], network: {latency: 1ms}}
    script:
      - at: 25s
        do: [{partition: {between: [zookeeper], and: [0], one_way: true}}, {slow_follower: {broker: 1}}, {send: m0}]
      - {at: 29s}
    core: {}
"""


def reasons(campaign: str) -> list[str]:
    (plan,) = load_text(dedent(campaign), "campaign.yaml").plans
    sentences = [because(finding) for finding in findings(run_plan(plan, 0))]
    assert sentences, "no findings to explain"
    return sentences


def test_a_fault_that_ended_before_a_request_does_not_explain_its_missing_answer() -> None:
    for reason in reasons(HELD_FETCHES):
        assert "p got no answer from broker 0" in reason
        assert "was paused" not in reason
        assert "held up the Fetch request from broker-2 to broker-0" in reason


HELD_FETCHES = """
    name: held-fetches
    kafka: "3.6"
    settings: {acks: all, enable.idempotence: false, request.timeout.ms: 2s, delivery.timeout.ms: 60s}
    cluster: {brokers: 3, topics: [{name: t, assignment: [[0, 1, 2]]}]}
    workload: {producers: [{name: p}]}
    script:
      - {at: 1s, do: {send: a}}
      - {when: {acked: a}, do: {broker_pause: {broker: 0, duration: 1s}}}
      - after: 100s
        do:
          - message: {action: hold, api: Fetch, kind: request, from: 1, to: 0, id: f1}
          - message: {action: hold, api: Fetch, kind: request, from: 2, to: 0, id: f2}
      - {after: 1s, do: {send: b}}
      - {when: {acked: b}}
"""


def test_a_fault_between_brokers_does_not_explain_a_missing_answer_with_acks_1() -> None:
    for reason in reasons(PAUSED_AND_PARTITIONED):
        assert "broker 0 was paused" in reason
        assert "partition" not in reason


PAUSED_AND_PARTITIONED = """
    name: paused-and-parted
    kafka: "3.6"
    settings: {acks: "1", enable.idempotence: false, request.timeout.ms: 2s, delivery.timeout.ms: 60s}
    cluster: {brokers: 2, topics: [{name: t, assignment: [[0, 1]]}]}
    workload: {producers: [{name: p}]}
    script:
      - {at: 500ms, do: {send: a}}
      - {at: 1s, do: {broker_pause: {broker: 0, duration: 5s}}}
      - {at: 2s, do: {partition: {between: [0], and: [1], duration: 10s}}}
      - {at: 2500ms, do: {send: b}}
      - {when: {acked: b}}
"""


def test_events_before_a_leadership_do_not_explain_its_end() -> None:
    for reason in reasons(MOVED_EARLIER):
        assert "1.608s broker 0 crashed" in reason
        assert "the replicas became" not in reason


MOVED_EARLIER = """
    name: moved-earlier
    kafka: "2.8"
    settings: {acks: "1"}
    cluster: {brokers: 4, controller: 3, topics: [{name: t, assignment: [[0, 1, 2]]}]}
    script:
      - {do: {send: m-before}}
      - {when: {acked: m-before}, do: {reassign_partition: {partition: t-0, replicas: [0, 2, 1]}}}
      - after: 1s
        do:
          - message: {action: hold, api: Fetch, kind: request, from: 1, to: 0, id: fetch-of-1}
          - message: {action: hold, api: Fetch, kind: request, from: 2, to: 0, id: fetch-of-2}
      - {when: {event: [{message_rule: {rule: fetch-of-1}}, {message_rule: {rule: fetch-of-2}}]}, do: {send: m0}}
      - {when: {acked: m0}, after: 600ms, do: {broker_crash: {broker: 0, restart_after: 120s}}}
      - {when: {leader: {t-0: 2}}, do: {send: m1}}
      - {when: {acked: m1}, after: 1s, do: {broker_crash: {broker: 2, restart_after: 60s}}}
      - {when: {leader: {t-0: 1}}, do: {send: m2}}
      - {when: {acked: m2}}
"""


def test_broken_promises_of_the_library_have_chains() -> None:
    violated = [
        finding
        for name in PLANS
        for rule_result in library_run(name).verdict.rules.values()
        for finding in rule_result.findings
        if rule_result.status == VIOLATED and finding.permitted_by is None
    ]
    assert len(violated) > 20
    assert all(finding.chain for finding in violated)
