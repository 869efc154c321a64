"""Trials show what fault models do to a cluster, and tallies sum that up."""

from pathlib import Path

import pytest

from harrow.campaigns.assess.assessment import parse_limit
from harrow.campaigns.assess.fault_model import FaultModel, fault_models
from harrow.campaigns.assess.tally import ModelTally
from harrow.campaigns.assess.trials import FATES, UNCOMMITTED, trials, tried
from harrow.campaigns.language.library_index import fault_model_names, resolve
from harrow.campaigns.language.loader import load_campaign
from harrow.campaigns.run.workers.workers import Workers
from harrow.checks.finding import HELD, PERMITTED
from harrow.checks.promise import ACKS_1, CLOCK_SKEW, DISK_FAILURE, UNCLEAN_ELECTION
from harrow.checks.rule import LOST


def model_on(folder: Path, name: str, cluster: str) -> FaultModel:
    path = folder / "cluster.yaml"
    path.write_text(cluster, encoding="utf-8")
    return next(model for model in fault_models((), [f"--cluster={path}"]) if model.name == name)


def tally_of(model: FaultModel, runs: int, workers: Workers) -> ModelTally:
    assert model.plan is not None
    return ModelTally(model=model, trials=tuple(trials([model.plan], range(runs), workers)))


def test_a_single_replica_is_lost_with_its_disk_and_several_are_not(tmp_path: Path) -> None:
    topic = "topics: [{{name: t, partitions: 3, replication_factor: {}}}]\nbrokers: 3\nsettings: {{acks: all, min.insync.replicas: 1}}\n"
    single = tally_of(model_on(tmp_path, "disk-lost", topic.format(1)), 1, Workers())
    assert single.status_of(LOST) == PERMITTED
    assert single.records_max(LOST) > 0
    assert {damage.setting for damage in single.damage() if damage.fate == LOST} == {DISK_FAILURE}
    several = tally_of(model_on(tmp_path, "disk-lost", topic.format(3)), 1, Workers())
    assert (several.status_of(LOST), several.records_max(LOST)) == (HELD, 0)


@pytest.mark.parametrize(
    ("name", "kafka", "replicas", "settings", "permitted_by"),
    [
        ("clock-jumps", "3.9", 3, "acks: all, min.insync.replicas: 2, log.retention.ms: 12h", CLOCK_SKEW),
        ("controller-dies", "2.4", 3, "acks: 1", ACKS_1),
        (
            "restart-without-waiting",
            "3.9",
            2,
            "acks: all, min.insync.replicas: 1, unclean.leader.election.enable: true",
            UNCLEAN_ELECTION,
        ),
    ],
    ids=["clock", "controller", "restart"],
)
def test_a_fault_model_that_seldom_harms_does_so_where_settings_permit_it(
    tmp_path: Path, name: str, kafka: str, replicas: int, settings: str, permitted_by: str
) -> None:
    topic = f"topics: [{{name: t, partitions: 3, replication_factor: {replicas}}}]\n"
    cluster = f'kafka: "{kafka}"\nsettings: {{{settings}}}\nbrokers: 3\n{topic}'
    tally = tally_of(model_on(tmp_path, name, cluster), 3, Workers())
    assert tally.status_of(LOST) == PERMITTED
    assert permitted_by in {damage.setting for damage in tally.damage() if damage.fate == LOST}


def test_the_answer_is_the_same_for_every_number_of_processes(tmp_path: Path) -> None:
    model = model_on(tmp_path, "broker-dies", "brokers: 3\nsettings: {acks: 1}\n")
    assert tally_of(model, 4, Workers(1)).trials == tally_of(model, 4, Workers(2)).trials


def test_a_trial_without_a_strike_proves_nothing(tmp_path: Path) -> None:
    path = tmp_path / "never.yaml"
    path.write_text(
        "title: never\nworkload: {duration: 2s, producers: [{rate: 5/s}]}\n"
        "faults: [{at: 1s, do: {broker_resume: {broker: 0}}}]\n",
        encoding="utf-8",
    )
    model = next(model for model in fault_models([path], []) if model.title == "never")
    tally = tally_of(model, 2, Workers())
    assert (tally.conclusive, tally.inconclusive) == ((), 2)
    assert "did not strike" in tally.not_tried


def test_a_trial_in_which_only_the_load_of_a_fault_model_struck_proves_nothing(tmp_path: Path) -> None:
    path = tmp_path / "half.yaml"
    path.write_text(
        "title: half\nworkload: {duration: 3s, producers: [{rate: 5/s}]}\n"
        "faults:\n  - {at: 1s, do: {slow_follower: {broker: all, duration: 1s}}}\n"
        "  - {at: 2s, do: {broker_resume: {broker: 0}}}\n",
        encoding="utf-8",
    )
    model = next(model for model in fault_models([path], []) if model.title == "half")
    assert not tally_of(model, 2, Workers()).conclusive


# The default of linger.ms is 0 before 4.0 and 5 since then (KIP-1030).
@pytest.mark.parametrize(
    ("isolation", "permitted_by"),
    [("read_uncommitted", {"isolation.level=read_uncommitted"}), ("read_committed", set())],
)
def test_consumers_get_results_of_a_dying_application_that_it_did_not_commit_unless_they_read_committed(
    tmp_path: Path, isolation: str, permitted_by: set[str]
) -> None:
    settings = f"isolation.level: {isolation}, auto.offset.reset: earliest"
    cluster = f'kafka: "4.3"\nbrokers: 3\nsettings: {{{settings}}}\n'
    tally = tally_of(model_on(tmp_path, "applications-die", cluster), 2, Workers())
    assert {damage.setting for damage in tally.damage() if damage.fate == UNCOMMITTED} == permitted_by
    assert not any(tally.records_max(fate) for fate in FATES)


@pytest.mark.parametrize("kafka", ["2.4", "3.9", "4.3"])
@pytest.mark.parametrize("name", ["broker-dies", "disk-lost", "log-dir-fails"])
def test_a_leader_that_fails_under_load_takes_records_with_it_unless_acks_is_all(
    tmp_path: Path, kafka: str, name: str
) -> None:
    cluster = 'kafka: "{}"\nbrokers: 3\nsettings: {{acks: {}, min.insync.replicas: 2}}\n'
    assert tally_of(model_on(tmp_path, name, cluster.format(kafka, 1)), 5, Workers()).records_max(LOST)
    assert not tally_of(model_on(tmp_path, name, cluster.format(kafka, "all")), 5, Workers()).records_max(
        LOST
    )


@pytest.mark.parametrize("name", fault_model_names())
def test_every_fault_model_strikes_a_cluster_that_has_what_it_needs(name: str) -> None:
    plan = load_campaign(resolve(name)[0]).plans[0]
    trial = tried(plan, 0, Workers())
    assert trial.is_conclusive, trial.reasons
    assert trial.acked > 0


def test_a_time_without_an_ack_below_a_second_is_no_outage_but_exceeds_a_limit(tmp_path: Path) -> None:
    tally = tally_of(model_on(tmp_path, "clock-jumps", "brokers: 3\n"), 1, Workers())
    assert (tally.outage_p50_us, tally.outage_max_us) == (0, 0)
    assert 0 < tally.longest_max_us < 1_000_000
    assert parse_limit("outage=1us").excess(tally) is not None
    assert parse_limit("outage=1s").excess(tally) is None
