"""A plan with a transactional application, another producer, and a fault."""

from functools import cache

from harrow.campaigns.language.loader import load_text
from harrow.campaigns.language.plan import Plan

ORDERS = """
name: orders
kafka: "{release}"
settings: {{acks: all, enable.idempotence: true, min.insync.replicas: 2, transaction.timeout.ms: 5s}}
cluster:
  brokers: 3
  topics: [{{name: t, partitions: 2, replication_factor: 3}}, {{name: u, replication_factor: 3}}]
workload:
  duration: 10s
  producers:
    - {{name: app, rate: 40/s, settings: {{transactional.id: app}}, transaction: {{records: 4, abort_every: 3}}}}
    - {{name: other, rate: 20/s}}
  consumers:
    - {{name: committed, settings: {{isolation.level: read_committed}}}}
    {uncommitted}
faults:
  - at: 3s
    do: {{{fault}}}
"""
# A reset connection changes no outcome.
NOTHING = "link_reset: {between: app, and: 0}"
CRASH = "broker_crash: {broker: 1, restart_after: 2s}"
ZOMBIE = "client_zombie: {client: app, duration: 2s}"
RESTART = "client_crash: {client: app, restart_after: 1s}"


@cache
def orders(release: str = "3.9", fault: str = NOTHING, *, uncommitted: bool = False) -> Plan:
    text = ORDERS.format(
        release=release, fault=fault, uncommitted="- {name: uncommitted}" if uncommitted else ""
    )
    (plan,) = load_text(text, "orders.yaml").plans
    return plan
