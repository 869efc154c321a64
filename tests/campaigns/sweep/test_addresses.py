"""A sweep first tries to connect to the servers of a Spark address, and prints no secrets."""

import pytest
from pyspark import SparkConf

from harrow.campaigns.sweep.spark_availability import is_on_this_machine, why_spark_cannot_start
from harrow.campaigns.sweep.spark_session import SparkAddress, _addresses, _with_defaults, in_short


@pytest.fixture(autouse=True)
def no_proxy(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("grpc_proxy", "https_proxy", "http_proxy"):
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(name.upper(), raising=False)


@pytest.mark.parametrize(
    ("url", "addresses"),
    [
        ("spark://one:7077", [("one", 7077)]),
        ("spark://one:7077,two:7078", [("one", 7077), ("two", 7078)]),
        ("spark://[::1]:7077", [("::1", 7077)]),
        ("sc://host", [("host", 15002)]),
        ("sc://host:443/;token=x;user_id=y", [("host", 443)]),
        ("sc://host:port", []),
        ("local[*]", []),
        ("local-cluster[2,1,1024]", []),
        ("yarn", []),
        ("k8s://https://host:6443", [("host", 6443)]),
        ("k8s://host", [("host", 443)]),
    ],
)
def test_the_servers_of_a_spark_address_are_tried_first(url: str, addresses: list[tuple[str, int]]) -> None:
    assert _addresses(url) == addresses


def test_no_server_is_tried_behind_a_proxy(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HTTPS_PROXY", "http://proxy:3128")
    assert _addresses("sc://host:443") == []


@pytest.mark.parametrize("master", ["local", "local[4]", "local-cluster[2,1,1024]"])
def test_only_local_masters_share_this_machines_files(master: str) -> None:
    assert is_on_this_machine(master)
    assert not is_on_this_machine("spark://host:7077")


def test_spark_connect_without_grpc_is_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        "harrow.campaigns.sweep.spark_availability.find_spec",
        lambda name: None if name == "grpc" else object(),
    )
    message = why_spark_cannot_start(remote=True)
    assert message == "gRPC is not installed: pip install 'kafka-harrow[connect]'"


@pytest.mark.parametrize(
    ("text", "short"),
    [
        (
            "Job aborted\n  File x\nModuleNotFoundError: No module named 'y'\nat java",
            "ModuleNotFoundError: No",
        ),
        ("An error occurred\n: java.io.IOException: no\n\tat", "java.io.IOException: no"),
        (
            "java.lang.IllegalStateException: Cannot call methods on a stopped SparkContext.",
            "it gave up",
        ),
        ("first\nsecond", "first"),
        ("", "ValueError"),
    ],
)
def test_an_error_of_spark_is_summarised_in_one_line(text: str, short: str) -> None:
    assert in_short(ValueError(text)).startswith(short)


def defaults(master: str, *, for_sql: bool = False, **settings: str) -> dict[str, str]:
    """Return what harrow adds to the settings of a user, whose dots are underscores here."""
    conf = SparkConf(loadDefaults=False)
    for name, value in settings.items():
        conf.set(name.replace("_", "."), value)
    return _with_defaults({}, SparkAddress(master), conf, for_sql=for_sql)


OVERHEAD = "spark.executor.memoryOverhead"


@pytest.mark.parametrize("master", ["yarn", "k8s://https://host:6443"])
def test_an_executor_in_a_container_gets_memory_for_each_core(master: str) -> None:
    one, four = (int(defaults(master, spark_executor_cores=n)[OVERHEAD].rstrip("m")) for n in "14")
    assert four - one == 3 * 512
    assert OVERHEAD not in defaults("spark://host:7077")


def test_settings_of_a_user_stay_and_none_are_added_on_this_machine() -> None:
    assert defaults("local[2]") == {}
    assert defaults("spark://host:7077")["spark.speculation"] == "true"
    assert "spark.speculation" not in defaults("spark://host:7077", spark_speculation="false")
    assert OVERHEAD not in defaults("yarn", spark_executor_pyspark_memory="2g")
    assert OVERHEAD not in defaults("yarn", spark_executor_memoryOverheadFactor="0.4")


def test_java_optimises_little_on_a_cluster_unless_it_does_the_work() -> None:
    options = "spark.executor.defaultJavaOptions"
    for master in ("spark://host:7077", "yarn"):
        assert defaults(master)[options] == "-XX:TieredStopAtLevel=1"
        assert options not in defaults(master, for_sql=True)
        assert options not in defaults(master, spark_executor_defaultJavaOptions="-Xss2m")
