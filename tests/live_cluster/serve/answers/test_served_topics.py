"""A served cluster finds topics by their ids without a look at all its topics."""

from collections.abc import Iterator
from uuid import UUID

import pytest

from harrow.campaigns.language.loader import load_text
from harrow.campaigns.run.targets.model_target import ModelTarget
from harrow.cluster_model.sim.choices import Choices
from harrow.live_cluster.serve.answers.served_topics import ServedTopics
from tests.live_cluster.serve.test_served_run import CALM


def test_an_unknown_id_costs_no_look_at_all_topics(monkeypatch: pytest.MonkeyPatch) -> None:
    def look(_: object) -> Iterator[str]:
        raise AssertionError

    (plan,) = load_text(CALM, "c.yaml").plans
    topics = ServedTopics(ModelTarget(plan, Choices.from_seed(0), ()).cluster)
    id_ = topics["t"]
    monkeypatch.setattr(ServedTopics, "__iter__", look)
    assert topics.find(UUID(int=7)) is None
    assert topics.find(id_) == "t"
