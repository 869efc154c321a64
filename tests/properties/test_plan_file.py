"""The campaign file that is written for a plan loads as the same plan."""

import pytest
import yaml
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from harrow.campaigns.language.loader import load_text
from harrow.campaigns.language.plan import Plan
from harrow.campaigns.language.plan_file import campaign_text
from harrow.campaigns.language.yaml_text import Items, Rows, yaml_text
from tests.properties.drawn_clusters import texts
from tests.properties.drawn_plans import written_plans
from tests.properties.test_model import plans

SLOW = (HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.filter_too_much)


def check_round_trip(plan: Plan) -> None:
    text = campaign_text(plan)
    again = load_text(text, "written.yaml").plans[0]
    assert again.digest() == plan.digest()
    assert [step.note for step in again.script] == [step.note for step in plan.script]
    assert again.description == plan.description.strip()
    assert campaign_text(again) == text


@pytest.mark.soak(size=10, rounds_in_test=1, rounds_in_soak=500)
@settings(max_examples=10, suppress_health_check=SLOW)
@given(plan=written_plans())
def test_any_plan_survives_a_round_trip_through_its_file(plan: Plan) -> None:
    check_round_trip(plan)


@pytest.mark.soak(size=10, rounds_in_test=1, rounds_in_soak=100)
@settings(max_examples=10)
@given(plan=plans(power_loss=True))
def test_random_runnable_plans_survive_a_round_trip_through_their_files(plan: Plan) -> None:
    check_round_trip(plan)


trees = st.recursive(
    texts | st.none() | st.booleans() | st.integers(),
    lambda inner: st.one_of(
        st.lists(inner),
        st.lists(inner).map(Items),
        st.dictionaries(texts, inner),
        st.dictionaries(texts, inner).map(Rows),
    ),
    max_leaves=30,
)


@pytest.mark.soak(size=50, rounds_in_test=1, rounds_in_soak=100)
@settings(max_examples=50)
@given(tree=st.dictionaries(texts, trees, min_size=1), comments=st.lists(texts))
def test_other_yaml_readers_load_the_same_tree(tree: dict[str, object], comments: list[str]) -> None:
    text = yaml_text(Rows(tree), comments)
    assert yaml.load(text, yaml.SafeLoader) == tree
    assert yaml.load(text, yaml.CSafeLoader) == tree
    assert all(line.isprintable() for line in text.split("\n"))
