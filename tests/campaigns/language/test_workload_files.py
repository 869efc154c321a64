"""Workload files: `workload: FILE` in a campaign."""

from collections.abc import Callable
from pathlib import Path

import pytest

from harrow.campaigns.language.loader import (
    Campaign,
    CampaignError,
    check_workload_file,
    load_campaign,
    load_text,
)
from harrow.campaigns.language.problem import WorkloadFileGivenError
from harrow.campaigns.language.yaml_positions import MAX_BYTES
from harrow.campaigns.record.campaign_copy import campaign_copy
from harrow.campaigns.sweep.definition import define, load_stored_cell

BUSY = """\
duration: 5s
producers:
  - {name: steady, rate: 10/s}
  - {name: burst, rate: 100/s, start: 1s, stop: 2s}
consumers: [{name: consumer}]
"""
CAMPAIGN = "name: any\nworkload: busy.yaml\n"


@pytest.fixture
def load(tmp_path: Path) -> Callable[..., Campaign]:
    """Return a function that loads a campaign beside the workload file ``busy.yaml``."""
    (tmp_path / "busy.yaml").write_text(BUSY, encoding="utf-8")

    def load(text: str, *overrides: str) -> Campaign:
        (tmp_path / "any.yaml").write_text(text, encoding="utf-8")
        return load_campaign(tmp_path / "any.yaml", overrides)

    return load


def mistakes(load: Callable[..., Campaign], text: str) -> list[str]:
    with pytest.raises(CampaignError) as refused:
        load(text)
    return [
        f"{Path(problem.file).name}:{problem.line}:{problem.column}: {problem.message}"
        for problem in refused.value.problems
    ]


def test_a_campaign_with_a_workload_file_is_the_campaign_with_these_keys(
    load: Callable[..., Campaign],
) -> None:
    inline = "name: any\nworkload:\n" + "".join(f"  {line}\n" for line in BUSY.splitlines())
    assert load(CAMPAIGN).plans[0].digest() == load(inline).plans[0].digest()


def test_the_keys_beside_the_name_replace_those_of_the_file(load: Callable[..., Campaign]) -> None:
    (plan,) = load("name: any\nworkload: {file: busy.yaml, duration: 9s, consumers: []}\n").plans
    assert (plan.duration_us, plan.consumers) == (9_000_000, ())
    assert [producer.name for producer in plan.producers] == ["steady", "burst"]


def test_a_variant_and_an_option_change_the_workload_of_the_file(
    tmp_path: Path, load: Callable[..., Campaign]
) -> None:
    (tmp_path / "idle.yaml").write_text("producers: []\n", encoding="utf-8")
    text = f"{CAMPAIGN}variants: {{idle: {{workload: idle.yaml}}, long: {{workload: {{duration: 7s}}}}}}\n"
    base, idle, long = load(text, "workload.producers.0.rate=20/s").plans
    assert base.producers[0].interval_us == 50_000
    assert (idle.duration_us, len(idle.producers)) == (5_000_000, 1)
    assert (long.duration_us, len(long.producers)) == (7_000_000, 2)


def test_a_recorded_campaign_and_a_sweep_need_the_file_no_more(
    tmp_path: Path, load: Callable[..., Campaign]
) -> None:
    campaign = load(CAMPAIGN)
    (plan,) = campaign.plans
    definition = define([(campaign, "any")], range(1))
    (tmp_path / "busy.yaml").unlink()
    copy = campaign_copy(campaign, plan, 0)
    assert load_text(copy, "copy.yaml").plans[0].producers == plan.producers
    (source,) = definition.sources
    assert load_stored_cell(source, "elsewhere/any.yaml", ()).plans == campaign.plans


@pytest.mark.parametrize(
    ("file", "campaign", "message"),
    [
        ("producers: many\n", CAMPAIGN, "busy.yaml:1:12: producers: expected a list"),
        ("duration: 5s\nduraton: 6s\n", CAMPAIGN, "busy.yaml:2:1: unknown key `duraton`"),
        ("file: other.yaml\n", CAMPAIGN, "busy.yaml:1:1: a workload file names no other file"),
        ("[]\n", CAMPAIGN, "busy.yaml:1:1: a workload file is a mapping"),
        ("a: [\n", CAMPAIGN, "busy.yaml:2:1: not valid YAML"),
        ("duration: !!python/object:os.system 5s\n", CAMPAIGN, "busy.yaml:1:11: "),
        (
            f"# {'x' * MAX_BYTES}\n",
            CAMPAIGN,
            "any.yaml:2:11: workload: `busy.yaml` cannot be read: it is larger",
        ),
        (BUSY, "workload: none.yaml\n", "any.yaml:1:11: workload: `none.yaml` cannot be read: No such file"),
        (BUSY, "workload: {file: []}\n", "any.yaml:1:18: workload: expected the name of a file"),
        (BUSY, "workload: [busy.yaml]\n", "any.yaml:1:11: workload: expected"),
    ],
)
def test_a_mistake_in_a_workload_file_is_reported_at_its_place(
    tmp_path: Path, load: Callable[..., Campaign], file: str, campaign: str, message: str
) -> None:
    (tmp_path / "busy.yaml").write_text(file, encoding="utf-8")
    first, *_ = mistakes(load, campaign)
    assert first.startswith(message)


def test_a_link_out_of_the_folder_is_refused(tmp_path: Path, load: Callable[..., Campaign]) -> None:
    (tmp_path / "link.yaml").symlink_to("/etc/hostname")
    (problem,) = mistakes(load, "workload: link.yaml\n")
    assert "a link leads out of the campaign's folder" in problem


def test_a_workload_file_is_valid_but_no_campaign(tmp_path: Path, load: Callable[..., Campaign]) -> None:
    load(CAMPAIGN)
    check_workload_file(tmp_path / "busy.yaml")
    with pytest.raises(WorkloadFileGivenError, match="this is a workload file"):
        load_campaign(tmp_path / "busy.yaml")
