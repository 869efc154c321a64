"""Administrators change settings of brokers while these run."""

from typing import Any, Final

import pytest
from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient
from kafka.protocol.admin import AlterConfigsRequest, IncrementalAlterConfigsRequest

from harrow.checks.finding import HELD
from harrow.live_cluster.serve.answers.described_settings import DEFAULT, OF_ALL_BROKERS, OF_BROKER
from harrow.live_cluster.wire.codec import BROKER_RESOURCE, TOPIC_RESOURCE
from harrow.live_cluster.wire.connection import BrokerConnection
from tests.live.test_described_settings import reported
from tests.live_cluster.serve.answers.test_described_cluster import TOPIC
from tests.live_cluster.serve.answers.test_described_cluster import alter as alter_topic
from tests.live_cluster.serve.test_administration_on_zookeeper import ON_ZOOKEEPER
from tests.live_cluster.serve.test_partition_administration import connections
from tests.live_cluster.serve.test_served_run import CALM, run_with
from tests.patience import PATIENCE_S, act_until

SET, DELETE, APPEND = 0, 1, 2
UNKNOWN_TOPIC, INVALID_TOPIC, INVALID_CONFIG, INVALID_REQUEST = 3, 17, 40, 42
FIXED: Final = "Cannot update these configs dynamically: "
RETENTION, MIN_ISR = "log.retention.ms", "min.insync.replicas"
UNCLEAN: Final = "unclean.leader.election.enable"
Changes = tuple[tuple[str, int, str | None], ...]

REFUSED: Final[tuple[tuple[str, Changes, tuple[int, str]], ...]] = (
    ("0", (("num.partitions", SET, "3"),), (INVALID_REQUEST, f"{FIXED}[num.partitions]")),
    (
        "0",
        (("num.partitions", SET, "3"), ("broker.session.timeout.ms", SET, "3")),
        (INVALID_REQUEST, f"{FIXED}[num.partitions, broker.session.timeout.ms]"),
    ),
    (
        "0",
        (("num.partitions", APPEND, "3"),),
        (INVALID_CONFIG, "Config value append is not allowed for config key: num.partitions"),
    ),
    (
        "0",
        ((RETENTION, SET, "many"),),
        (INVALID_REQUEST, f"Invalid value many for configuration {RETENTION}: Not a number of type LONG"),
    ),
    (
        "0",
        ((MIN_ISR, SET, "0"),),
        (INVALID_REQUEST, f"Invalid value 0 for configuration {MIN_ISR}: Value must be at least 1"),
    ),
    (
        "0",
        ((UNCLEAN, SET, "perhaps"),),
        (
            INVALID_REQUEST,
            f"Invalid value perhaps for configuration {UNCLEAN}: Expected value to be either true or false",
        ),
    ),
    (
        "0",
        ((RETENTION, APPEND, "5"),),
        (INVALID_CONFIG, f"Config value append is not allowed for config key: {RETENTION}"),
    ),
    ("0", ((RETENTION, 7, "5"),), (INVALID_REQUEST, "Unknown operations type 7")),
    ("1", ((RETENTION, SET, "5"),), (INVALID_REQUEST, "Unexpected broker id, expected 0, but received 1")),
    ("x", ((RETENTION, SET, "5"),), (INVALID_REQUEST, "Node id must be an integer, but it is: x")),
    (
        "0",
        ((MIN_ISR, SET, "1"),),
        (INVALID_CONFIG, f"Broker-level {MIN_ISR} cannot be altered while ELR is enabled."),
    ),
    (
        "",
        ((MIN_ISR, DELETE, None),),
        (INVALID_CONFIG, f"Cluster-level {MIN_ISR} cannot be removed while ELR is enabled."),
    ),
)
"""Changes that a broker 0 of Kafka 4.3 refuses, with its error and its words."""
NOT_CHANGED: Final = ("log.cleaner.backoff.ms", "num.io.threads", "max.connections", "x")
"""Settings that Kafka may change while brokers run."""


def alter_all(
    connection: BrokerConnection, *resources: tuple[int, str, Changes]
) -> list[tuple[int, str, int, str]]:
    """Change settings. Return the type, the name, the error and its message of each answer."""
    resource: Any = IncrementalAlterConfigsRequest.AlterConfigsResource
    request = IncrementalAlterConfigsRequest[1](
        resources=[
            resource(
                resource_type=kind,
                resource_name=name,
                configs=[
                    resource.AlterableConfig(name=setting, config_operation=operation, value=value)
                    for setting, operation, value in changes
                ],
            )
            for kind, name, changes in resources
        ],
        validate_only=False,
    )
    return [
        (each.resource_type, each.resource_name, each.error_code, each.error_message or "")
        for each in connection.ask(request).responses
    ]


def alter(connection: BrokerConnection, name: str, *changes: tuple[str, int, str | None]) -> tuple[int, str]:
    """Change settings of brokers. Return the error and its message."""
    ((kind, answered, error, message),) = alter_all(connection, (BROKER_RESOURCE, name, changes))
    assert (kind, answered) == (BROKER_RESOURCE, name)
    return error, message


def values(connection: BrokerConnection, kind: int, name: str, setting: str) -> list[tuple[str | None, int]]:
    """Return the values of a setting that a broker describes, the one in force first."""
    return [(value, source) for _, value, source in reported(connection, kind, name)[setting].synonyms]


def change_and_describe(connection: BrokerConnection) -> None:
    """Change settings of a broker of Kafka 4.3. See its settings then, and those of topic t."""
    for name, changes, refusal in REFUSED:
        assert alter(connection, name, *changes) == refusal
    assert alter(connection, "0", ("num.partitions", DELETE, None)) == (0, "")
    assert alter(connection, "", (RETENTION, SET, "50000000")) == (0, "")
    assert alter(connection, "0", (RETENTION, SET, "60000000"), ("message.max.bytes", SET, "2000000")) == (
        0,
        "",
    )
    assert alter(connection, "0", ("log.cleanup.policy", APPEND, "compact")) == (0, "")
    act_until(lambda: values(connection, BROKER_RESOURCE, "0", "log.cleanup.policy")[0][1] == OF_BROKER)
    in_force = [("60000000", OF_BROKER), ("50000000", OF_ALL_BROKERS), ("168", DEFAULT)]
    assert values(connection, BROKER_RESOURCE, "0", RETENTION) == in_force
    assert values(connection, TOPIC_RESOURCE, "t", "retention.ms") == in_force
    assert values(connection, BROKER_RESOURCE, "", RETENTION) == [("50000000", OF_ALL_BROKERS)]
    largest = [("2000000", OF_BROKER), ("1048588", DEFAULT)]
    assert values(connection, BROKER_RESOURCE, "0", "message.max.bytes") == largest
    assert values(connection, TOPIC_RESOURCE, "t", "max.message.bytes") == largest
    policies = [("delete,compact", OF_BROKER), ("delete", DEFAULT)]
    assert values(connection, TOPIC_RESOURCE, "t", "cleanup.policy") == policies
    assert alter(connection, "0", (RETENTION, DELETE, None)) == (0, "")
    act_until(lambda: values(connection, BROKER_RESOURCE, "0", RETENTION) == in_force[1:])


def test_settings_of_brokers_are_changed_described_and_refused_as_on_real_brokers() -> None:
    def use(servers: str) -> None:
        with connections(servers) as brokers:
            change_and_describe(brokers[0])

    run_with(CALM, use)


def test_settings_that_only_real_brokers_change_are_refused_and_may_be_removed() -> None:
    def use(servers: str) -> None:
        with connections(servers) as brokers:
            for setting in NOT_CHANGED:
                words = f"harrow does not change {setting} of running brokers"
                assert alter(brokers[0], "0", (setting, SET, "3")) == (INVALID_REQUEST, words)
                assert alter(brokers[0], "0", (setting, DELETE, None)) == (0, "")

    run_with(CALM, use)


def test_topics_follow_changed_settings_of_brokers() -> None:
    def use(servers: str) -> None:
        outcomes: list[str] = []
        producer = Producer({"bootstrap.servers": servers, "linger.ms": 0})

        def send() -> None:
            producer.produce(
                "t", "v", on_delivery=lambda error, _: outcomes.append(error.name() if error else "")
            )
            assert producer.flush(PATIENCE_S) == 0

        with connections(servers) as brokers:
            send()
            assert alter(brokers[0], "", ("log.cleanup.policy", SET, "compact")) == (0, "")
            # A compacted topic refuses records without keys.
            act_until(lambda: outcomes[-1] == "INVALID_RECORD", send)

    result = run_with(CALM, use)
    assert (result.verdict.status, result.verdict.reasons) == (HELD, ())


def test_a_batch_may_be_as_large_as_its_topic_or_else_its_broker_permits() -> None:
    def use(servers: str) -> None:
        client = AdminClient({"bootstrap.servers": servers})
        outcomes: list[str] = []
        producer = Producer({"bootstrap.servers": servers, "linger.ms": 0, "message.max.bytes": 4_000_000})

        def send(size: int) -> str:
            producer.produce(
                "t", bytes(size), on_delivery=lambda error, _: outcomes.append(error.name() if error else "")
            )
            assert producer.flush(PATIENCE_S) == 0
            return outcomes[-1]

        with connections(servers) as brokers:
            assert send(2_000_000) == "MSG_SIZE_TOO_LARGE"
            assert alter(brokers[0], "", ("message.max.bytes", SET, "3000000")) == (0, "")
            act_until(lambda: not send(2_000_000))
            assert alter_topic(client, TOPIC, "t", max_message_bytes="500") == ""
            act_until(lambda: send(1_000) == "MSG_SIZE_TOO_LARGE")
            assert send(100) == ""

    run_with(CALM, use)


def test_an_older_request_replaces_all_settings_of_a_broker() -> None:
    def use(servers: str) -> None:
        with connections(servers) as brokers:
            assert alter(brokers[1], "1", (RETENTION, SET, "7"), ("log.segment.bytes", SET, "2000000")) == (
                0,
                "",
            )
            resource: Any = AlterConfigsRequest.AlterConfigsResource
            configs = [resource.AlterableConfig(name="log.segment.bytes", value="3000000")]
            request = AlterConfigsRequest[2](
                resources=[resource(resource_type=BROKER_RESOURCE, resource_name="1", configs=configs)],
                validate_only=False,
            )
            assert [each.error_code for each in brokers[1].ask(request).responses] == [0]
            while values(brokers[1], BROKER_RESOURCE, "1", "log.segment.bytes")[0][0] != "3000000":
                pass
            assert values(brokers[1], BROKER_RESOURCE, "1", RETENTION) == []
            assert values(brokers[0], BROKER_RESOURCE, "0", "log.segment.bytes")[0][1] == DEFAULT

    run_with(CALM, use)


def test_settings_of_brokers_do_not_change_with_zookeeper() -> None:
    def use(servers: str) -> None:
        with connections(servers) as brokers:
            assert alter(brokers[0], "0", (RETENTION, SET, "7"))[0] == INVALID_REQUEST

    run_with(ON_ZOOKEEPER, use)


@pytest.mark.parametrize(
    ("text", "unknown", "of_brokers"),
    [(CALM, INVALID_TOPIC, 0), (ON_ZOOKEEPER, UNKNOWN_TOPIC, INVALID_REQUEST)],
)
def test_no_name_of_a_topic_stands_for_brokers(text: str, unknown: int, of_brokers: int) -> None:
    changes: Changes = ((UNCLEAN, SET, "true"),)
    names = (":", ":0", ":x", "", "..", "a b")
    resources = [(TOPIC_RESOURCE, name, changes) for name in names]

    def use(servers: str) -> None:
        with connections(servers) as brokers:
            answers = alter_all(brokers[0], *resources, (BROKER_RESOURCE, "", ((RETENTION, SET, "7"),)))
            refused = {name: INVALID_REQUEST if not name else unknown for name in names}
            assert {(kind, name): error for kind, name, error, _ in answers} == {
                **{(TOPIC_RESOURCE, name): error for name, error in refused.items()},
                (BROKER_RESOURCE, ""): of_brokers,
            }
            assert len(answers) == len(names) + 1
            assert OF_ALL_BROKERS not in [
                source for _, source in values(brokers[0], BROKER_RESOURCE, "0", UNCLEAN)
            ]

    run_with(text, use)
