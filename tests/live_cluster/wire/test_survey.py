"""A survey finds out the release and the settings of a foreign cluster."""

from typing import Any, cast

import pytest
from kafka.protocol.admin import DescribeConfigsResponse

from harrow.live_cluster.wire.connection import BrokerConnection
from harrow.live_cluster.wire.survey import SurveyError, inferred_release, reported_settings

LIST_OFFSETS, TXN_OFFSET_COMMIT, DESCRIBE_LOG_DIRS = 2, 28, 35


@pytest.mark.parametrize(
    ("newest", "release"),
    [
        ({LIST_OFFSETS: 10, TXN_OFFSET_COMMIT: 5}, "4.0"),
        ({LIST_OFFSETS: 11, TXN_OFFSET_COMMIT: 5, DESCRIBE_LOG_DIRS: 5}, "4.3"),
    ],
)
def test_the_release_is_the_newest_whose_requests_the_brokers_support(
    newest: dict[int, int], release: str
) -> None:
    assert inferred_release({api: (0, version) for api, version in newest.items()}).name == release


def test_settings_of_another_broker_are_a_clear_error() -> None:
    class Connection:
        def version_of(self, _request: Any, *_known: int) -> int:
            return 1

        def ask(self, _request: Any) -> Any:
            result = DescribeConfigsResponse[1].DescribeConfigsResult
            other = result(error_code=0, error_message=None, resource_type=4, resource_name="2", configs=[])
            return DescribeConfigsResponse[1](throttle_time_ms=0, results=[other])

    with pytest.raises(SurveyError, match="broker 1 does not describe its settings"):
        reported_settings(cast("BrokerConnection", Connection()), 1)


@pytest.mark.parametrize(
    ("level", "release"),
    [(1, "3.0"), (7, "3.3"), (21, "3.9"), (25, "4.0"), (30, "4.3"), (33, "4.4"), (34, "4.5"), (99, "4.5")],
)
def test_with_kraft_the_newest_metadata_version_determines_the_release(level: int, release: str) -> None:
    assert inferred_release({LIST_OFFSETS: (0, 10)}, level).name == release
