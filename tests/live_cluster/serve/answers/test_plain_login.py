"""Clients log in with SASL/PLAIN to a served cluster that has users."""

import socket
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import KafkaError, Producer
from confluent_kafka.admin import AdminClient
from kafka.protocol.metadata import MetadataRequest

from harrow.campaigns.language.problem import FileError
from harrow.checks.finding import HELD
from harrow.live_cluster.serve.answers.plain_login import read_users
from tests.live_cluster.serve.test_served_run import CALM, run_python, run_with
from tests.patience import PATIENCE_S

USERS = {"alice": "alice=secret", "bob": "ünsafe"}
PRODUCE = """
import sys
from kafka import KafkaProducer
options = {"security_protocol": "SASL_PLAINTEXT", "sasl_mechanism": "PLAIN"}
user = {"sasl_plain_username": sys.argv[2], "sasl_plain_password": sys.argv[3]}
with KafkaProducer(bootstrap_servers=sys.argv[1], **options, **user) as producer:
    producer.send("t", b"v").get(PATIENCE_S)
""".replace("PATIENCE_S", str(PATIENCE_S))


def login(servers: str, user: str, password: str, mechanism: str = "PLAIN") -> dict[str, Any]:
    return {
        "bootstrap.servers": servers,
        "security.protocol": "SASL_PLAINTEXT",
        "sasl.mechanism": mechanism,
        "sasl.username": user,
        "sasl.password": password,
    }


def errors_of(settings: dict[str, Any]) -> list[int]:
    """Return the first errors of a client until it gives up on all brokers."""
    errors: list[int] = []
    options: dict[str, Any] = {**settings, "error_cb": lambda error: errors.append(error.code())}
    client = AdminClient(options)
    while not errors:
        client.poll(0.1)
    return errors


@pytest.mark.parametrize("user", USERS)
def test_a_client_with_the_right_password_sends_records(user: str) -> None:
    def use(servers: str) -> None:
        producer = Producer(login(servers, user, USERS[user]))
        producer.produce("t", b"v")
        assert producer.flush(PATIENCE_S) == 0

    assert run_with(CALM, use, users=USERS).verdict.status == HELD


def test_kafka_python_logs_in_too() -> None:
    result = run_with(
        CALM, lambda servers: run_python(PRODUCE, servers, "alice", USERS["alice"]), users=USERS
    )
    assert result.verdict.status == HELD


@pytest.mark.parametrize(
    ("user", "password", "mechanism"),
    [
        ("alice", "wrong", "PLAIN"),
        ("alice", "", "PLAIN"),
        ("carol", "alice=secret", "PLAIN"),
        ("alice", "alice=secret", "SCRAM-SHA-256"),
    ],
)
def test_a_client_that_cannot_log_in_is_refused(user: str, password: str, mechanism: str) -> None:
    def use(servers: str) -> None:
        assert KafkaError._AUTHENTICATION in errors_of(login(servers, user, password or "-", mechanism))

    run_with(CALM, use, users=USERS)


def test_a_client_that_does_not_log_in_gets_no_answers() -> None:
    def use(servers: str) -> None:
        host, _, port = servers.partition(",")[0].partition(":")
        request = MetadataRequest[9](topics=None, allow_auto_topic_creation=False)
        request.with_header(1, "app")
        with socket.create_connection((host, int(port)), PATIENCE_S) as connection:
            connection.sendall(request.encode(header=True, framed=True))
            assert connection.recv(1) == b""

    run_with(CALM, use, users=USERS)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "users:1:1: there is no user: write USER=PASSWORD"),
        ("# all\nalice\n", "users:2:1: write USER=PASSWORD"),
        ("=secret\n", "users:1:1: write USER=PASSWORD"),
        ("alice=\n", "users:1:1: write USER=PASSWORD"),
        (b"\xff", "users: cannot be read: not UTF-8"),
    ],
)
def test_a_mistake_in_a_file_of_users_has_its_place(tmp_path: Path, text: str | bytes, message: str) -> None:
    file = tmp_path / "users"
    file.write_bytes(text.encode() if isinstance(text, str) else text)
    with pytest.raises(FileError) as error:
        read_users(file)
    assert str(error.value) == f"{tmp_path}/{message}"


def test_a_password_may_have_any_characters(tmp_path: Path) -> None:
    file = tmp_path / "users"
    file.write_text(
        "# all\n\n" + "".join(f"{user}={password}\n" for user, password in USERS.items()), "utf-8"
    )
    assert read_users(file) == USERS
