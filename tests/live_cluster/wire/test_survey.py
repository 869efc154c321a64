"""What a cluster is that somebody else has started."""

import pytest

from harrow.cluster_model.release import NEWEST_RELEASE
from harrow.live_cluster.wire.survey import release_that_speaks

LIST_OFFSETS, TXN_OFFSET_COMMIT, DESCRIBE_LOG_DIRS = 2, 28, 35


@pytest.mark.parametrize(
    ("newest", "release"),
    [
        ({LIST_OFFSETS: 10, TXN_OFFSET_COMMIT: 5}, "4.0"),
        ({LIST_OFFSETS: 11, TXN_OFFSET_COMMIT: 5, DESCRIBE_LOG_DIRS: 5}, "4.3"),
        ({LIST_OFFSETS: 11, TXN_OFFSET_COMMIT: 6, DESCRIBE_LOG_DIRS: 5}, NEWEST_RELEASE),
    ],
)
def test_a_cluster_has_the_newest_release_whose_requests_its_brokers_speak(
    newest: dict[int, int], release: str
) -> None:
    assert release_that_speaks({api: (0, version) for api, version in newest.items()}).name == release
