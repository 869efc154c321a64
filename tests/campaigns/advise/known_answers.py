"""Clusters and faults for which the cheapest settings that survive are known, and why.

Each answer follows from Kafka's promises or from a KIP, not from the model. Faults strike within a
few seconds of work on one partition, so that a hundred runs take seconds.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from harrow.campaigns.advise.advice import Advice, advise
from harrow.campaigns.advise.harm import FAILED, Needs
from harrow.campaigns.assess.fault_model import fault_models
from harrow.campaigns.assess.trials import UNCOMMITTED
from harrow.campaigns.run.workers.workers import Workers
from harrow.checks.rule import DOUBLED, LOST, REORDERED

RUNS: Final = 8
"""How many runs of a case show its answer in a test."""

ACKS: Final = "acks"
IDEMPOTENCE: Final = "enable.idempotence"
IN_FLIGHT: Final = "max.in.flight.requests.per.connection"
MIN_ISR: Final = "min.insync.replicas"
UNCLEAN: Final = "unclean.leader.election.enable"
FACTOR: Final = "replication.factor"
PLACEMENT: Final = "placement"
ELR: Final = "eligible.leader.replicas.version"
FLUSH: Final = "log.flush.interval.messages"

_WORK: Final = "workload: {duration: 8s, producers: [{rate: 40/s}], consumers: [{}]}\n"
_TRANSACTIONS: Final = (
    "workload: {duration: 8s, consumers: [{}], producers: [{rate: 40/s, settings: {transactional.id: shop}, "
    "transaction: {records: 4, abort_every: 3}}]}\n"
)
_SHOP: Final = "rate: 20/s"
_ABORTING_SHOP: Final = (
    "rate: 20/s, settings: {transactional.id: shop}, transaction: {records: 4, abort_every: 3}"
)
_THREE_RACKS: Final = "brokers: [{id: 0, rack: a}, {id: 1, rack: b}, {id: 2, rack: c}]\n"
_TOPIC: Final = "topics: [{name: t, replication_factor: 3}]\n"
_UNFLUSHED: Final = "disk: {writeback: never}\n"

BROKER: Final = "faults: [{at: 2s..6s, do: {broker_crash: {broker: any, restart_after: 2s..4s}}}]\n"
LEADER: Final = "faults: [{at: 2s..6s, do: {broker_crash: {broker: leader of t-0, restart_after: 2s..4s}}}]\n"
RACK: Final = "faults: [{at: 2s..6s, do: {broker_crash: {broker: rack any, kind: power_loss, restart_after: 2s..4s}}}]\n"
RACK_A: Final = "faults: [{at: 2s..6s, do: {broker_crash: {broker: rack a, kind: power_loss, restart_after: 10s..12s}}}]\n"
"""The brokers are gone for longer than their sessions. A leader that came back earlier could lead
again, without what it has lost, wherever the other replicas are (KIP-966)."""
ALL_POWER: Final = (
    "faults: [{at: 2s..6s, do: {broker_crash: {broker: all, kind: power_loss, restart_after: 2s..4s}}}]\n"
)
LOST_ANSWERS: Final = "faults: [{at: 1s, do: {network_ack_loss: {probability: 0.5, duration: 4s}}}]\n"
DISK: Final = "faults: [{at: 2s..6s, do: {disk_loss: {broker: leader of t-0, restart_after: 2s..4s}}}]\n"
LONE_LEADER_LOSES_POWER: Final = (
    "faults:\n"
    "  - {at: 1s, do: {slow_follower: {broker: followers of t-0, duration: 12s}}}\n"
    "  - {at: 7s..8s, do: {broker_crash: {broker: leader of t-0, kind: power_loss, restart_after: 2s}}}\n"
)
LONE_LEADER_STAYS_DOWN: Final = (
    "faults:\n"
    "  - {at: 1s, do: {slow_follower: {broker: followers of t-0, duration: 5s}}}\n"
    "  - {at: 5s, do: {broker_crash: {broker: leader of t-0, restart_after: 60s}}}\n"
)
"""The leader dies while it is alone in the ISR, and the others have not all that it has acked."""
LAST_REPLICA_STANDING: Final = (
    "faults:\n"
    "  - {at: 1s, do: {broker_crash: {broker: 2, restart_after: 60s}}}\n"
    "  - {at: 14s, do: {broker_stop: {broker: 1, restart_after: 30s}}}\n"
    "  - {at: 18s, do: {broker_crash: {broker: 0, kind: power_loss, restart_after: 15s}}}\n"
)
BROKER_STAYS_DOWN: Final = (
    "faults: [{at: 2s, do: {broker_crash: {broker: follower of t-0, restart_after: 60s}}}]\n"
)
ZOMBIE: Final = "faults: [{at: 10s..14s, do: {application_pause: {client: billing, step: send_offsets, duration: 20s}}}]\n"
"""The group takes the application for dead while it is about to commit."""

_UNNAMED_MEMBERS: Final = (
    ", group_metadata: false}, {name: other, from: orders, to: invoices, group_metadata: false, "
    "consumer: {group.id: billing}"
)


def _billing(delivery: str, *, shop: str = _SHOP, duration: str = "14s", more: str = "") -> str:
    """Return the work of an application that writes an invoice for each order."""
    return (
        f"workload: {{duration: {duration}, producers: [{{{shop}, partitions: [orders-0]}}], consumers: [{{}}], "
        f"applications: [{{name: billing, from: orders, to: invoices, delivery: {delivery}{more}}}]}}\n"
    )


def _billing_dies(step: str) -> str:
    crash = f"application_crash: {{client: billing, step: {step}, restart_after: 1s}}"
    return f"faults: [{{at: 3s..9s, do: {{{crash}}}}}]\n"


@dataclass(frozen=True, kw_only=True)
class Case:
    """A question, and its known answer: the values that change, None if nothing survives."""

    name: str
    why: str
    kafka: str
    faults: str
    settings: str
    answer: Mapping[str, str] | None
    cluster: str = _THREE_RACKS + _TOPIC + _UNFLUSHED
    workload: str = _WORK
    never: tuple[str, ...] = (LOST, REORDERED)
    outage: tuple[str, int] | None = None
    changeable: tuple[str, ...] = ()

    def model_text(self) -> str:
        return f"title: {self.name}\ncluster: cluster.yaml\n{self.workload}{self.faults}"

    def cluster_text(self) -> str:
        return f'kafka: "{self.kafka}"\nsettings: {{{self.settings}}}\n{self.cluster}'


def advice_of(case: Case, folder: Path, runs: int = RUNS, workers: Workers | None = None) -> Advice:
    model_file, cluster_file = folder / "model.yaml", folder / "cluster.yaml"
    model_file.write_text(case.model_text(), encoding="utf-8")
    cluster_file.write_text(case.cluster_text(), encoding="utf-8")
    models = fault_models([model_file], [f"--cluster={cluster_file}"])
    return advise(
        str(cluster_file),
        [model for model in models if model.title == case.name],
        Needs(never=case.never, outage=case.outage),
        runs=runs,
        workers=workers or Workers(),
        changeable=case.changeable,
    )


def changed(advice: Advice) -> dict[str, str] | None:
    """Return the advised values that differ from the user's, None if nothing survives."""
    if advice.advised is None:
        return None
    yours = dict(advice.yours.values)
    return {name: value.text() for name, value in advice.advised.values if yours[name] != value}


_SAFE: Final = "acks: all, enable.idempotence: true, min.insync.replicas: 2"
_TWO_REPLICAS: Final = _THREE_RACKS + "topics: [{name: t, replication_factor: 2}]\n" + _UNFLUSHED
_SINGLE: Final = _THREE_RACKS + "topics: [{name: t, replication_factor: 1}]\n" + _UNFLUSHED
_ONE_RACK: Final = (
    "brokers: [{id: 0, rack: a}, {id: 1, rack: a}, {id: 2, rack: b}, {id: 3, rack: b}]\n"
    "topics: [{name: t, assignment: [[0, 1]]}]\n" + _UNFLUSHED
)
_THREE_IN_ONE_RACK: Final = (
    "brokers: [{id: 0, rack: a}, {id: 1, rack: a}, {id: 2, rack: a}, {id: 3, rack: b}, {id: 4, rack: c}]\n"
    "topics: [{name: t, assignment: [[0, 1, 2]]}]\n" + _UNFLUSHED
)
_ORDERS: Final = (
    _THREE_RACKS
    + "topics: [{name: orders, replication_factor: 3}, {name: invoices, replication_factor: 3}]\n"
    + _UNFLUSHED
)


def _cases() -> tuple[Case, ...]:
    return (
        *(
            Case(
                name=f"one broker, acks=1, {kafka}",
                why="acks=1 promises nothing until the record is committed (ProducerConfig, acks)",
                kafka=kafka,
                faults=LEADER,
                settings=settings,
                cluster=_TWO_REPLICAS,
                answer=answer,
            )
            for kafka, settings, answer in (
                # In 0.11 idempotence allows only one request in flight (KAFKA-5494).
                (
                    "0.11",
                    "acks: 1, retries: 1000",
                    {ACKS: "all", IDEMPOTENCE: "true", IN_FLIGHT: "1"},
                ),
                ("2.4", "acks: 1", {ACKS: "all", IDEMPOTENCE: "true"}),
                # Since 3.0 idempotence is on unless another setting turns it off (KIP-679).
                ("3.9", "acks: 1", {ACKS: "all", IDEMPOTENCE: "true"}),
                ("4.3", "acks: 1", {ACKS: "all", IDEMPOTENCE: "true"}),
            )
        ),
        Case(
            name="one broker, acks=1, before idempotence",
            why="0.10.2 has no idempotence (KIP-98): one request in flight keeps the order; unclean elections are on (KIP-106)",
            kafka="0.10.2",
            faults=LEADER,
            settings="acks: 1",
            cluster=_TWO_REPLICAS,
            answer={ACKS: "all", IN_FLIGHT: "1", UNCLEAN: "false"},
        ),
        *(
            Case(
                name=f"one broker, sound settings, {kafka}",
                why="a single crash loses nothing that min.insync.replicas=2 replicas have acked",
                kafka=kafka,
                faults=BROKER,
                settings=_SAFE,
                cluster=_TWO_REPLICAS.replace("2}]", "2, settings: {min.insync.replicas: 1}}]"),
                answer={},
            )
            for kafka in ("2.4", "3.6", "4.3")
        ),
        *(
            Case(
                name=f"power of one rack, all replicas in it, {kafka}",
                why="acks=all waits for memory, not for disks: replicas in one rack lose power together",
                kafka=kafka,
                faults=RACK_A,
                settings=_SAFE,
                workload=_WORK.replace("8s", "20s").replace("40/s", "20/s"),
                cluster=_THREE_IN_ONE_RACK,
                answer={PLACEMENT: "across racks"},
            )
            for kafka in ("2.4", "3.9", "4.3")
        ),
        Case(
            name="power of one rack, replicas in different racks",
            why="a replica in another rack keeps its memory",
            kafka="3.9",
            faults=RACK,
            settings="acks: all, min.insync.replicas: 1",
            cluster=_TWO_REPLICAS,
            answer={},
        ),
        *(
            Case(
                name=f"power of all, {kafka}",
                why="only what is flushed survives: log.flush.interval.messages=1",
                kafka=kafka,
                faults=ALL_POWER,
                settings="acks: all, enable.idempotence: true, min.insync.replicas: 1",
                cluster=_TWO_REPLICAS,
                answer={FLUSH: "1"},
            )
            for kafka in ("2.4", "3.9", "4.3")
        ),
        *(
            Case(
                name=f"acks=all with one replica in sync, {kafka}",
                why=(
                    "alone in the ISR, the leader leads again whatever its memory has lost, so only flushing helps; "
                    "eligible leader replicas with min.insync.replicas=2 keep it from leading (KIP-966)"
                ),
                kafka=kafka,
                faults=LONE_LEADER_LOSES_POWER,
                settings="acks: all, enable.idempotence: true, min.insync.replicas: 1, replica.lag.time.max.ms: 2s",
                answer=answer,
            )
            for kafka, answer in (
                ("2.4", {FLUSH: "1"}),
                ("3.9", {FLUSH: "1"}),
                ("4.0", {ELR: "1", MIN_ISR: "2"}),
                ("4.3", {MIN_ISR: "2"}),
            )
        ),
        *(
            Case(
                name=f"unclean election for availability, {kafka}",
                why="while the only member of the ISR is down, only an unclean election ends the outage (KIP-106)",
                kafka=kafka,
                faults=LONE_LEADER_STAYS_DOWN,
                settings=(
                    "acks: all, enable.idempotence: true, min.insync.replicas: 1, replica.lag.time.max.ms: 2s"
                ),
                workload=_WORK.replace("8s", "70s").replace("40/s", "5/s"),
                never=(),
                outage=("<", 40_000_000),
                answer=answer,
            )
            for kafka, answer in (("2.4", {UNCLEAN: "true"}), ("3.9", {UNCLEAN: "true"}), ("3.6", None))
        ),
        *(
            Case(
                name=f"the last replica standing loses power, {kafka}",
                why="without eligible leader replicas it leads again without the records (KIP-966)",
                kafka=kafka,
                faults=LAST_REPLICA_STANDING,
                settings=_SAFE,
                workload=_WORK.replace("8s", "20s").replace("40/s", "10/s"),
                changeable=(FLUSH, ELR),
                cluster=_THREE_RACKS + "topics: [{name: t, assignment: [[0, 1, 2]]}]\n" + _UNFLUSHED,
                answer=answer,
            )
            for kafka, answer in (("3.9", {FLUSH: "1"}), ("4.0", {ELR: "1"}), ("4.3", {}))
        ),
        Case(
            name="min.insync.replicas=3 of three, one broker down",
            why="one broker that is down stops all writes if min.insync.replicas is the replication factor",
            kafka="3.9",
            faults=BROKER_STAYS_DOWN,
            settings="acks: all, min.insync.replicas: 3",
            workload=_WORK.replace("8s", "60s").replace("40/s", "5/s"),
            outage=("<", 45_000_000),
            answer={MIN_ISR: "2"},
            changeable=(MIN_ISR,),
        ),
        *(
            Case(
                name=f"duplicates by lost answers, {kafka}",
                why="leaders recognise the retries of an idempotent producer (KIP-98)",
                kafka=kafka,
                faults=LOST_ANSWERS,
                settings=settings,
                never=(LOST, REORDERED, DOUBLED),
                cluster=_TWO_REPLICAS,
                answer=answer,
            )
            for kafka, settings, answer in (
                ("2.4", "acks: all", {IDEMPOTENCE: "true"}),
                ("3.9", "acks: all", {}),
                ("4.3", "acks: all, enable.idempotence: false", {IDEMPOTENCE: "true"}),
            )
        ),
        Case(
            name="the disk of a single replica",
            why="a record is gone with its only disk: a second replica keeps it",
            kafka="3.9",
            faults=DISK,
            settings="acks: all",
            cluster=_SINGLE,
            answer={FACTOR: "2"},
        ),
        Case(
            name="open and aborted transactions",
            why="isolation.level=read_committed hides aborted records (KIP-98)",
            kafka="3.9",
            faults=BROKER,
            settings="acks: all",
            workload=_TRANSACTIONS,
            never=(LOST, REORDERED, UNCOMMITTED),
            cluster=_TWO_REPLICAS,
            answer={"isolation.level": "read_committed"},
        ),
        *(
            Case(
                name=f"an application that dies before its commit, {kafka}",
                why="only a transaction with output and offsets gives each order one invoice (KIP-98)",
                kafka=kafka,
                faults=_billing_dies("commit"),
                settings=f"{_SAFE}, auto.offset.reset: earliest",
                workload=_billing("at_least_once"),
                never=(LOST, REORDERED, DOUBLED),
                cluster=_ORDERS,
                answer={"delivery": "exactly_once"},
            )
            for kafka in ("2.4", "4.3")
        ),
        Case(
            name="an application that commits before it writes",
            why="a commit after the output has been acked loses no order, and a transaction costs more (KafkaConsumer)",
            kafka="3.9",
            faults=_billing_dies("send"),
            settings=f"{_SAFE}, auto.offset.reset: earliest",
            workload=_billing("at_most_once"),
            cluster=_ORDERS,
            answer={"delivery": "at_least_once"},
        ),
        Case(
            name="an application that starts after the first orders",
            why="without a committed offset, auto.offset.reset=latest skips what is there (ConsumerConfig)",
            kafka="3.9",
            faults=_billing_dies("commit"),
            settings=_SAFE,
            workload=_billing("at_least_once", more=", start: 3s"),
            cluster=_ORDERS,
            answer={"auto.offset.reset": "earliest"},
        ),
        Case(
            name="an application that reads aborted orders",
            why="isolation.level=read_committed hides aborted records (KIP-98)",
            kafka="4.3",
            faults=_billing_dies("commit"),
            settings=f"{_SAFE}, auto.offset.reset: earliest",
            workload=_billing("exactly_once", shop=_ABORTING_SHOP),
            never=(LOST, REORDERED, DOUBLED, UNCOMMITTED),
            cluster=_ORDERS,
            answer={"isolation.level": "read_committed"},
        ),
        Case(
            name="an application that its group takes for dead",
            why="only group metadata in the transaction fences a member that was removed (KIP-447)",
            kafka="3.9",
            faults=ZOMBIE,
            settings=f"{_SAFE}, auto.offset.reset: earliest, session.timeout.ms: 8s",
            workload=_billing("exactly_once", duration="20s", more=_UNNAMED_MEMBERS),
            never=(LOST, REORDERED, DOUBLED),
            cluster=_ORDERS,
            answer={"group_metadata": "true"},
        ),
        Case(
            name="failed sends without retries",
            why="up to 2.0 a producer does not retry by default",
            kafka="2.0",
            faults=LEADER,
            settings="acks: all, enable.idempotence: false, max.in.flight.requests.per.connection: 1",
            never=(LOST, REORDERED, FAILED),
            cluster=_TWO_REPLICAS,
            answer={"retries": "2147483647"},
            changeable=("retries",),
        ),
    )


CASES: Final = _cases()
