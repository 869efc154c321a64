"""The fixture `kafka_cluster` serves a cluster to the clients of a test, and judges them."""

from pathlib import Path
from typing import Final

import pytest

from tests.pytest_harrow.conftest import Pytest

pytest_plugins = ["pytester"]
pytest.importorskip("kafka")
pytest.importorskip("confluent_kafka")

_CLUSTER: Final = """
brokers: 3
topics: [{name: t, replication_factor: 3}]
"""
_CAMPAIGN: Final = """
name: expecting
cluster: {brokers: 1, topics: [{name: t}]}
workload: {producers: [{name: app}], duration: 60s}
expect: {verdict: violated}
"""
_SENDING: Final = """
import pytest
from confluent_kafka import Producer

def send(cluster, value=b"v"):
    producer = Producer({"bootstrap.servers": cluster.bootstrap_servers})
    producer.produce("t", value)
    assert producer.flush(600) == 0
"""


@pytest.fixture
def served(project: Path) -> Path:
    (project / "cluster.yaml").write_text(_CLUSTER, encoding="utf-8")
    (project / "expecting.yaml").write_text(_CAMPAIGN, encoding="utf-8")
    with (project / "tox.ini").open("a", encoding="utf-8") as ini:
        ini.write("\nkafka_cluster = cluster.yaml\n")
    return project


def write_test(project: Path, text: str) -> None:
    (project / "test_it.py").write_text(_SENDING + text, encoding="utf-8")


def test_a_test_crashes_a_leader_between_two_sends(run_pytest: Pytest, served: Path) -> None:
    write_test(
        served,
        """
def test_it(kafka_cluster):
    send(kafka_cluster)
    with kafka_cluster.crash("leader of t-0"):
        send(kafka_cluster)
    assert {each["state"] for each in kafka_cluster.state()["brokers"]} == {"up"}
    verdict = kafka_cluster.judge()
    assert (verdict.status, len(verdict.run["faults"])) == ("held", 1)
""",
    )
    run_pytest().assert_outcomes(passed=1)


@pytest.mark.parametrize("campaign", ["'expecting.yaml'", "campaign='expecting.yaml'"])
def test_a_test_fails_if_its_cluster_is_not_as_expected(
    run_pytest: Pytest, served: Path, campaign: str
) -> None:
    test = f"""
@pytest.mark.kafka_cluster({campaign}, seed=1)
def test_it(kafka_cluster):
    send(kafka_cluster)
"""
    write_test(served, test)
    result = run_pytest()
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(["*the verdict is held, expected violated", "*harrow serve *--seed 1"])
    assert "Traceback" not in result.stdout.str()


def test_a_wider_scope_shares_a_cluster_and_judges_it_at_the_end(run_pytest: Pytest, served: Path) -> None:
    write_test(
        served,
        """
servers = set()

@pytest.mark.parametrize("number", range(2))
def test_it(kafka_cluster, number):
    send(kafka_cluster)
    servers.add(kafka_cluster.bootstrap_servers)
    assert len(servers) == 1
""",
    )
    scope = ("-o", "kafka_cluster_scope=session")
    run_pytest(*scope).assert_outcomes(passed=2)
    run_pytest(*scope, "-o", "kafka_cluster=expecting.yaml").assert_outcomes(passed=2, errors=1)


@pytest.mark.parametrize(
    ("options", "test", "message"),
    [
        (["kafka_cluster="], "", "name one campaign or cluster file: in the ini option `kafka_cluster`*"),
        (["kafka_cluster=none.yaml"], "", "none.yaml: no such file or folder"),
        (["kafka_cluster=acks-0"], "", "*acks-0 cannot be served*"),
        ([], "kafka_cluster.fault('broker_crsh')", "*unknown action or fault `broker_crsh`*"),
        ([], "kafka_cluster.crash(9)", "*unknown broker 9*"),
        ([], "kafka_cluster.judge(); kafka_cluster.state()", "*the cluster has ended, because it was judged"),
    ],
)
def test_a_mistake_is_reported_with_a_message(
    run_pytest: Pytest, served: Path, options: list[str], test: str, message: str
) -> None:
    write_test(served, f"def test_it(kafka_cluster):\n    {test or 'pass'}\n")
    result = run_pytest(*(word for option in options for word in ("-o", option)))
    assert result.ret == pytest.ExitCode.TESTS_FAILED
    result.stdout.fnmatch_lines([message])
    assert "HTTPConnection" not in result.stdout.str()


def test_an_unknown_option_of_a_marker_is_named(run_pytest: Pytest, served: Path) -> None:
    write_test(served, "@pytest.mark.kafka_cluster(sed=3)\ndef test_it(kafka_cluster):\n    pass\n")
    result = run_pytest()
    assert result.ret == pytest.ExitCode.TESTS_FAILED
    result.stdout.fnmatch_lines(["the marker `kafka_cluster` has no option `sed`; did you mean `seed`?"])


def test_an_unknown_scope_is_a_usage_error(run_pytest: Pytest, served: Path) -> None:
    write_test(served, "def test_it(kafka_cluster):\n    pass\n")
    result = run_pytest("-o", "kafka_cluster_scope=galaxy")
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines(["*kafka_cluster_scope: 'galaxy' is none of function, class, *"])


def test_a_fault_ends_with_its_block_even_if_the_cluster_was_judged(run_pytest: Pytest, served: Path) -> None:
    write_test(
        served,
        """
def test_it(kafka_cluster):
    with kafka_cluster.crash("leader of t-0"):
        kafka_cluster.judge()
""",
    )
    run_pytest().assert_outcomes(passed=1)
