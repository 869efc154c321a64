"""Real brokers and the model answer single requests alike."""

from pathlib import Path
from typing import Final

from harrow.live_cluster.local.started_brokers import StartedBrokers
from harrow.live_cluster.requests.brokers.real_broker import RealBrokers
from harrow.live_cluster.requests.comparison import difference_text
from harrow.live_cluster.requests.measures.measure import SETTINGS, Measure, measure

_REQUESTS: Final = 300


def test_the_model_answers_single_requests_like_a_real_broker(
    brokers: StartedBrokers, tmp_path: Path
) -> None:
    measured = Measure()
    with RealBrokers(brokers, tmp_path, SETTINGS) as real:
        measure(brokers.release, real, _REQUESTS, 0, measured, lambda: None)
    differences = [found.difference for found in measured.shortest.values()]
    assert [difference_text(difference) for difference in differences if difference is not None] == []
    assert measured.requests >= _REQUESTS
