"""Lost, late and duplicate messages of clients and coordinators break no promise."""

import pytest

from harrow.campaigns.language.loader import load_text
from harrow.campaigns.run.runner import run_plan
from harrow.checks.finding import HELD, PERMITTED
from harrow.cluster_model.events import MessageRuleApplied
from harrow.cluster_model.trace import select

CAMPAIGN = """
name: coordinator-messages
kafka: "{kafka}"
settings:
  {{acks: all, min.insync.replicas: 2, transaction.timeout.ms: 10s, request.timeout.ms: 3s, offsets.topic.num.partitions: 1,
   transaction.state.log.num.partitions: 1}}
cluster: {{brokers: 3, topics: [{{name: t, partitions: 3, replication_factor: 3}}]}}
workload:
  duration: 20s
  producers: [{{name: app, rate: 10/s, settings: {{transactional.id: app}}, transaction: {{records: 4, abort_every: 4}}}}]
  consumers:
    - {{name: first, commit: after, settings: {{group.id: g, auto.offset.reset: earliest, isolation.level: read_committed}}}}
    - {{name: second, commit: after, start: 5s, stop: 12s, settings: {{group.id: g, auto.offset.reset: earliest}}}}
faults:
{faults}
  - {{at: 6s, do: {{client_crash: {{client: app, restart_after: 1s}}}}}}
"""
"""The producer restarts, and a member joins and leaves. So each request is sent several times."""

CLIENT_REQUESTS = (
    *("FindCoordinator", "InitProducerId", "EndTxn", "JoinGroup", "SyncGroup"),
    *("Heartbeat", "LeaveGroup", "OffsetCommit", "OffsetFetch"),
)
REQUESTS_BEFORE_TRANSACTION_V2 = ("AddPartitionsToTxn",)
BROKER_REQUESTS = ("WriteTxnMarkers",)
STRIKES = (
    ("1ms", "message: {{action: drop, api: {api}, kind: response, count: 1}}"),
    ("5s", "message: {{action: delay, api: {api}, kind: request, count: 1, delay: 4s}}"),
    ("6500ms", "message: {{action: duplicate, api: {api}, kind: request, count: 2}}"),
    ("9s", "message: {{action: drop, api: {api}, kind: request, count: 1}}"),
    ("11s", "message: {{action: delay, api: {api}, kind: response, count: 1, delay: 4s}}"),
)
"""A lost answer, a late request, a duplicate, a lost request, a late answer."""


@pytest.mark.parametrize("api", [*CLIENT_REQUESTS, *REQUESTS_BEFORE_TRANSACTION_V2, *BROKER_REQUESTS])
def test_faults_of_coordinator_messages_break_no_promise(api: str) -> None:
    strikes = [f"  - {{at: {at}, do: {{{fault.format(api=api)}}}}}" for at, fault in STRIKES]
    kafka = "3.9" if api in REQUESTS_BEFORE_TRANSACTION_V2 else "4.3"
    text = CAMPAIGN.format(kafka=kafka, faults="\n".join(strikes))
    (plan,) = load_text(text, "messages.yaml").plans
    result = run_plan(plan, 0)
    struck = [event for event in select(result.evidence.trace, MessageRuleApplied) if event.api == api]
    assert struck, "no such message was sent"
    broken = [name for name, rule in result.verdict.rules.items() if rule.status not in (HELD, PERMITTED)]
    assert broken == []
    assert not result.verdict.reasons
