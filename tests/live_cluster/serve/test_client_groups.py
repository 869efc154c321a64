"""Rules about groups judge real consumers."""

from typing import Final

from confluent_kafka import Consumer, Producer, TopicPartition

from harrow.campaigns.run.run_result import RunResult
from harrow.checks.finding import HELD, VIOLATED
from harrow.cluster_model.history import COMMIT, INVOKE
from tests.live_cluster.serve.test_served_run import run_with
from tests.patience import PATIENCE_S, act_until

CAMPAIGN: Final = """
name: served-group
kafka: "4.3"
cluster: {brokers: 1, topics: [{name: t}]}
settings: {group.initial.rebalance.delay.ms: 0}
workload: {producers: [{name: unused}], duration: 60s}
"""
COUNT: Final = 10


def produce(servers: str) -> None:
    producer = Producer({"bootstrap.servers": servers, "client.id": "producer"})
    for number in range(COUNT):
        producer.produce("t", b"%d" % number)
    assert producer.flush(PATIENCE_S) == 0


def consumer_of(servers: str, begin: int | None = None) -> Consumer:
    """Return a member of the group g, which reads from *begin* or where the group continues."""

    def assign(consumer: Consumer, partitions: list[TopicPartition]) -> None:
        for partition in partitions:
            if begin is not None:
                partition.offset = begin
        consumer.assign(partitions)

    settings = {"group.id": "g", "auto.offset.reset": "earliest", "enable.auto.commit": False}
    consumer = Consumer({"bootstrap.servers": servers, "client.id": "reader", **settings})
    consumer.subscribe(["t"], on_assign=assign)
    return consumer


def read(consumer: Consumer, count: int) -> None:
    for _ in range(count):
        message = consumer.poll(PATIENCE_S)
        assert message is not None
        assert message.error() is None


def commits(result: RunResult) -> list[int]:
    """Return the positions that clients wanted to commit."""
    return [
        offset
        for operation in result.evidence.operations
        if operation.f == COMMIT and operation.type == INVOKE
        for _, _, offset in operation.value
    ]


def test_a_group_that_continues_where_it_stopped_passes_over_nothing() -> None:
    def use(servers: str) -> None:
        produce(servers)
        for _ in range(2):
            consumer = consumer_of(servers)
            read(consumer, COUNT // 2)
            consumer.commit(asynchronous=False)
            consumer.close()

    result = run_with(CAMPAIGN, use)
    rules = result.verdict.rules
    assert (result.verdict.status, rules["rebalance-skip"].status) == (HELD, HELD)
    assert rules["offset-regression"].status == HELD
    assert "unconsumed" not in rules
    assert commits(result) == [COUNT // 2, COUNT]


def test_a_member_that_commits_beyond_what_the_group_has_read_skips_records() -> None:
    def use(servers: str) -> None:
        produce(servers)
        consumer = consumer_of(servers)
        read(consumer, COUNT)
        consumer.commit(asynchronous=False)
        consumer.close()
        produce(servers)
        consumer = consumer_of(servers, begin=2 * COUNT)
        act_until(consumer.assignment, lambda: consumer.poll(0.1))
        consumer.commit(offsets=[TopicPartition("t", 0, 2 * COUNT)], asynchronous=False)
        consumer.close()

    result = run_with(CAMPAIGN, use)
    skipped = result.verdict.rules["rebalance-skip"]
    assert skipped.status == VIOLATED
    assert [finding.offset for finding in skipped.findings] == [*range(COUNT, 2 * COUNT)]
