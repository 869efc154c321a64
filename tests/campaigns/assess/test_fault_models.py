"""Fault models run on the cluster that they are given, or say what it lacks."""

import json
from pathlib import Path

import pytest

from harrow.campaigns.assess.fault_model import FaultModel, fault_models
from harrow.campaigns.language.library_index import fault_model_names, library_names, resolve
from harrow.campaigns.language.loader import load_campaign
from harrow.campaigns.language.problem import CampaignError
from harrow.campaigns.run.runner import run_plan
from harrow.faults.injection import At, Rate

ONE_RACK = "brokers: [{id: 4, rack: a}, {id: 5, rack: a}]\n"
TWO_RACKS = "brokers: [{id: 4, rack: a}, {id: 5, rack: b}]\n"
NO_RACK = "brokers: 2\n"


def models_on(folder: Path, cluster: str, *files: Path) -> dict[str, FaultModel]:
    path = folder / "cluster.yaml"
    path.write_text(cluster, encoding="utf-8")
    return {model.name: model for model in fault_models(files, [f"--cluster={path}"])}


@pytest.mark.parametrize("name", fault_model_names())
def test_a_fault_model_has_a_title_and_runs_by_its_name_on_a_cluster_of_its_own(name: str) -> None:
    campaign = load_campaign(resolve(name)[0])
    (plan,) = campaign.plans
    assert campaign.name == name
    assert plan.title
    assert plan.description
    assert plan.faults


@pytest.mark.parametrize("name", fault_model_names())
def test_the_last_fault_strikes_while_a_burst_of_records_is_on_its_way(name: str) -> None:
    plan = load_campaign(resolve(name)[0]).plans[0]
    (burst,) = (producer for producer in plan.producers if producer.name == "burst")
    assert burst.stop_us is not None
    timing = plan.faults[-1].timing
    if isinstance(timing, At):
        first_us, last_us = timing.at_us
        assert burst.stop_us - burst.start_us == 200_000
        assert last_us == burst.stop_us
        assert burst.start_us - first_us <= 100_000
    else:
        assert isinstance(timing, Rate)
        assert timing.stop_us is not None
        assert burst.stop_us - burst.start_us == 10_000_000
        assert timing.start_us < burst.start_us < burst.stop_us < timing.stop_us


def test_a_fault_model_and_a_campaign_of_the_library_never_share_a_name() -> None:
    assert not set(fault_model_names()) & set(library_names())


@pytest.mark.parametrize(
    ("cluster", "unfit"),
    [
        (ONE_RACK, "the only rack is a, and `rack any` chooses among several"),
        (NO_RACK, "no broker has a rack, and `rack any` chooses among several"),
        (TWO_RACKS, ""),
    ],
)
def test_a_model_that_needs_racks_fits_only_a_cluster_with_several(
    tmp_path: Path, cluster: str, unfit: str
) -> None:
    model = models_on(tmp_path, cluster)["rack-power"]
    assert model.unfit == unfit
    assert (model.plan is None) == bool(unfit)


def test_a_cluster_is_unfit_because_of_a_line_of_its_file(tmp_path: Path) -> None:
    model = models_on(tmp_path, f"settings:\n  acks: 1\n{TWO_RACKS}")["applications-die"]
    assert model.unfit == f"transactional.id needs acks=all, not acks=1 ({tmp_path / 'cluster.yaml'}:2)"


def test_a_cluster_is_unfit_because_of_an_option(tmp_path: Path) -> None:
    path = tmp_path / "cluster.yaml"
    path.write_text(TWO_RACKS, encoding="utf-8")
    models = {model.name: model for model in fault_models((), [f"--cluster={path}", "acks=1"])}
    assert models["applications-die"].unfit == "--set acks=1: transactional.id needs acks=all, not acks=1"


def test_a_fault_model_runs_on_the_brokers_topics_and_settings_of_the_cluster(tmp_path: Path) -> None:
    cluster = f"settings: {{acks: 0}}\ntopics: [{{name: orders, partitions: 3}}]\n{NO_RACK}"
    plan = models_on(tmp_path, cluster)["broker-dies"].plan
    assert plan is not None
    assert len(plan.cluster.brokers) == 2
    assert [topic.name for topic in plan.cluster.topics] == ["orders"]
    assert {producer.settings["acks"] for producer in plan.producers} == {"0"}


@pytest.mark.parametrize(
    ("kafka", "acks", "idempotence"), [("0.10.2", "1", ""), ("2.4", "1", "false"), ("3.9", "all", "true")]
)
def test_what_a_cluster_file_does_not_set_has_kafkas_default(
    tmp_path: Path, kafka: str, acks: str, idempotence: str
) -> None:
    bare = f'kafka: "{kafka}"\nbrokers: [{{id: 1, rack: a}}, {{id: 2, rack: b}}, {{id: 3, rack: c}}]\n'
    settings = {"acks": acks, "min.insync.replicas": "1"}
    settings |= {"enable.idempotence": idempotence} if idempotence else {}
    written = f"{bare}settings: {json.dumps(settings)}\n"
    explicit = models_on(tmp_path, written)
    for name, model in models_on(tmp_path, bare).items():
        other = explicit[name]
        if other.unfit.startswith("transactional.id "):
            # With transactions acks has another default (``ProducerConfig.configureAcks``).
            assert acks == "1"
            continue
        assert model.unfit == other.unfit
        if model.plan is None or other.plan is None:
            continue
        same, judged = run_plan(model.plan, 0), run_plan(other.plan, 0)
        assert same.trace_digest == judged.trace_digest, name
        assert same.verdict.status == judged.verdict.status, name


@pytest.mark.parametrize("name", fault_model_names())
def test_a_fault_model_strikes_a_cluster_without_settings(tmp_path: Path, name: str) -> None:
    plan = models_on(tmp_path, "brokers: [{id: 1, rack: a}, {id: 2, rack: b}, {id: 3, rack: c}]\n")[name].plan
    assert plan is not None
    assert not plan.cluster.settings
    assert any(run_plan(plan, seed).faults for seed in range(3))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("workload: {duration: 1s}\n", "a fault model needs `faults`"),
        ("title: one broker\nfaults: []\n", "a fault model needs `faults`"),
        ("nonsense: 1\n", "unknown key `nonsense`"),
        (
            "title: one broker\nworkload: {duration: 1s}\nfaults: [{at: 1s, do: {broker_crash: {broker: 0}}}]\n",
            "title: broker-dies is called `one broker` too",
        ),
        (
            "variants: {a: {}}\nworkload: {duration: 1s}\nfaults: [{at: 1s, do: {broker_crash: {broker: 0}}}]\n",
            "a fault model has no variants",
        ),
    ],
)
def test_a_file_that_is_no_fault_model_is_a_mistake(tmp_path: Path, text: str, message: str) -> None:
    path = tmp_path / "mine.yaml"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(CampaignError) as error:
        models_on(tmp_path, NO_RACK, path)
    assert message in str(error.value)
    assert str(path) in str(error.value)
