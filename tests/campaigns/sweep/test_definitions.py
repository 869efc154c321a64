"""Definitions of sweeps: campaigns, grids, seeds and names."""

from pathlib import Path

import pytest

from harrow.campaigns.language.problem import CampaignError
from harrow.campaigns.language.seeds import SeedError, parse_seeds
from harrow.campaigns.sweep.definition import Vary, VaryError, define, parse_vary
from harrow.campaigns.sweep.sweep_folder import SweepFolder, read_definition
from tests.campaigns.sweep.sweep_campaigns import acks, campaign, definition


@pytest.mark.parametrize(
    ("text", "key", "values"),
    [
        ("acks=1,all", "acks", ("1", "all")),
        ("cluster.brokers=3, 5", "cluster.brokers", ("3", "5")),
        (
            "workload.producers=[{name: p, rate: 1/s}],[{name: p}]",
            "workload.producers",
            ("[{name: p, rate: 1/s}]", "[{name: p}]"),
        ),
        ("description='a,b',\"c,d\"", "description", ("'a,b'", '"c,d"')),
    ],
)
def test_vary_parses_a_key_and_its_values(text: str, key: str, values: tuple[str, ...]) -> None:
    vary = parse_vary(text)
    assert (vary.key, vary.values) == (key, values)


@pytest.mark.parametrize("text", ["acks", "=1", "acks=", "acks=1,,2", "acks=1,1", ""])
def test_a_malformed_vary_is_rejected(text: str) -> None:
    with pytest.raises(VaryError, match=r"is not of the form|: .1. is listed twice"):
        parse_vary(text)


def test_a_grid_has_a_cell_for_each_combination_and_variant() -> None:
    text = "name: v\ncluster: {brokers: 3, topics: [{name: t, replication_factor: 3}]}\nvariants: {old: {kafka: '0.11'}}"
    varies = (*acks("1", "all"), parse_vary("min.insync.replicas=1,2"))
    defined = define([(campaign(text), "v.yaml")], range(10), varies=varies)
    assert [cell.name for cell in defined.cells[:3]] == [
        "base acks=1 min.insync.replicas=1",
        "old acks=1 min.insync.replicas=1",
        "base acks=1 min.insync.replicas=2",
    ]
    assert len(defined.cells) == 8
    assert defined.runs() == 80
    assert len({cell.digest for cell in defined.cells}) == 8
    assert defined.cells[1].plan.producers == defined.cells[0].plan.producers


def test_a_definition_has_the_command_that_repeats_a_run() -> None:
    defined = definition(varies=acks("1", "all"))
    assert defined.reproduce(defined.cells[1], 4) == "harrow run small.yaml --seed 4 --set acks=all"


def test_only_selected_variants_have_cells() -> None:
    text = "name: v\ncluster: {brokers: 1, topics: [{name: t}]}\nvariants: {a: {}, b: {}}"
    defined = define([(campaign(text), "v.yaml")], range(1), variants=["b"])
    assert [cell.variant for cell in defined.cells] == ["b"]


def test_a_setting_that_fits_nowhere_is_reported_once() -> None:
    with pytest.raises(CampaignError, match="acks=7") as error:
        define([(campaign(), "small.yaml")], range(1), varies=acks("1", "7"))
    assert len(error.value.problems) == 1


def test_values_that_do_not_fit_together_are_skipped_and_reported(tmp_path: Path) -> None:
    varies = (*acks("1", "all"), parse_vary("enable.idempotence=true,false"))
    defined = define([(campaign(), "small.yaml")], range(2), varies=varies)
    assert [dict(cell.settings) for cell in defined.cells] == [
        {"acks": "1", "enable.idempotence": "false"},
        {"acks": "all", "enable.idempotence": "true"},
        {"acks": "all", "enable.idempotence": "false"},
    ]
    (skipped,) = defined.skipped
    assert skipped.settings == (("acks", "1"), ("enable.idempotence", "true"))
    assert "needs acks=all, not acks=1" in skipped.reason
    SweepFolder(tmp_path, defined).begin()
    assert read_definition(tmp_path) == defined


def test_variants_that_a_varied_release_excludes_are_reported_once() -> None:
    text = """
name: small
cluster: {brokers: 1, topics: [{name: t}]}
workload: {duration: 1s}
variants:
  old: {kafka: "2.0"}
"""
    defined = define([(campaign(text), "v.yaml")], range(1), varies=(parse_vary("kafka=3.9,4.3"),))
    assert [cell.name for cell in defined.cells] == ["base kafka=3.9", "base kafka=4.3"]
    (note,) = defined.notes
    assert "old names a release of its own and is left out" in note.message
    assert not define([(campaign(text), "v.yaml")], range(1)).notes


def test_a_value_that_suits_no_combination_is_rejected() -> None:
    varies = (*acks("1", "all"), parse_vary("enable.idempotence=true"))
    with pytest.raises(CampaignError, match="needs acks=all, not acks=1"):
        define([(campaign(), "small.yaml")], range(2), varies=varies)


def test_two_campaigns_of_the_same_name_are_rejected() -> None:
    with pytest.raises(CampaignError, match="is also named `small`"):
        define([(campaign(), "a.yaml"), (campaign(), "b.yaml")], range(1))


def test_two_campaigns_whose_names_differ_only_by_case_are_rejected() -> None:
    other = campaign("name: Small\ncluster: {brokers: 1, topics: [{name: t}]}")
    with pytest.raises(CampaignError, match="is also named `small`"):
        define([(campaign(), "a.yaml"), (other, "b.yaml")], range(1))


def test_the_name_of_a_campaign_cannot_vary() -> None:
    with pytest.raises(VaryError, match="--vary name"):
        define([(campaign(), "a.yaml")], range(1), varies=[parse_vary("name=a,b")])


def test_cells_with_the_same_name_are_rejected() -> None:
    text = "name: v\ncluster: {brokers: 1, topics: [{name: t}]}\nvariants: {a: {}, 'a description=1': {}}"
    varies = [parse_vary("description='1','1 description=1'")]
    assert len(define([(campaign(text), "v.yaml")], range(1), varies=varies).cells) == 6
    varies = [parse_vary("description=1,1 description=1")]
    with pytest.raises(VaryError, match="two cells of v would be named `a description=1 description=1`"):
        define([(campaign(text), "v.yaml")], range(1), varies=varies)


def test_more_seeds_than_can_be_counted_are_rejected() -> None:
    assert len(parse_seeds(f"1..{2**63}")) == 2**63 - 1
    with pytest.raises(SeedError, match="too many seeds"):
        parse_seeds(f"0..{2**63}")


def test_the_same_sweep_has_the_same_name() -> None:
    assert definition(6).name() == definition(6).name()
    assert len({definition(6).name(), definition(7).name(), definition(6, varies=acks("1")).name()}) == 3


def test_a_number_n_means_the_first_n_seeds() -> None:
    assert parse_seeds("5") == parse_seeds("0..5") == range(5)
    for text in ("0", "", "..5", "5..", "-5", "1.5"):
        with pytest.raises(SeedError):
            parse_seeds(text)


def test_a_grid_that_is_too_large_is_rejected_before_any_cell_is_loaded() -> None:
    read: list[int] = []
    varies = [
        Vary(key=f"limits.{key}", values=tuple(map(str, range(1, 1_001)))) for key in ("events", "faults")
    ]
    with pytest.raises(VaryError, match="1000000 combinations of values, more than 10000"):
        define([(campaign(), "a.yaml")], range(1), varies=varies, check=lambda *at: read.append(at[0]))
    assert not read


def test_loading_a_grid_can_be_stopped_before_each_combination() -> None:
    read: list[tuple[int, int]] = []

    def check(*at: int) -> None:
        read.append((at[0], at[1]))
        if at[0] == 2:
            raise TimeoutError

    with pytest.raises(TimeoutError):
        define(
            [(campaign(), "a.yaml")], range(1), varies=[parse_vary("limits.events=1,2,3,4,5")], check=check
        )
    assert read == [(0, 5), (1, 5), (2, 5)]
