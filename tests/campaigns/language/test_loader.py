"""The loader reads campaign files, and reports every mistake in an invalid one."""

import pickle
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from types import FrameType

import pytest

from harrow.campaigns.language import yaml_positions
from harrow.campaigns.language.loader import CampaignError, Problem, load_campaign, load_text
from harrow.campaigns.language.template import new_campaign
from harrow.campaigns.language.yaml_positions import Document, compose
from harrow.cluster_model.sim.virtual_time import US_PER_MS
from harrow.faults.injection import Rate
from tests.campaigns.language.bad_sections import BAD_SECTIONS
from tests.campaigns.language.bad_values import BAD_VALUES
from tests.campaigns.language.campaign_texts import problems, reference_example
from tests.plain_environment import PYTHONPATH, plain_environment

BAD = {**BAD_VALUES, **BAD_SECTIONS}


@pytest.mark.parametrize("case", BAD)
def test_an_invalid_file_is_reported_at_its_position(case: str) -> None:
    text, expected = BAD[case]
    actual = problems(text)
    phrases = [f"{place}: ...{piece}" for place, piece in expected]
    assert len(actual) == len(expected), f"reported {actual}, expected {phrases}"
    for problem, (place, piece) in zip(actual, expected, strict=True):
        assert problem.startswith(f"{place}: "), f"{problem!r} is not at {place}"
        assert piece in problem


def test_a_problem_is_printed_in_the_format_of_editors() -> None:
    assert str(Problem("a.yaml", 3, 7, "no")) == "a.yaml:3:7: no"
    assert str(Problem("a.yaml", 0, 0, "no")) == "a.yaml: no"


def test_an_error_survives_pickling_and_prints_all_problems() -> None:
    error = CampaignError([Problem("a.yaml", 1, 1, "x"), Problem("a.yaml", 2, 1, "y")])
    again = pickle.loads(pickle.dumps(error))
    assert again.problems == error.problems
    assert str(again) == "a.yaml:1:1: x\na.yaml:2:1: y"


def test_a_campaign_file_is_read_with_its_options(tmp_path: Path) -> None:
    file = tmp_path / "crash.yaml"
    file.write_text("kafka: 0.11\n", encoding="utf-8")
    campaign = load_campaign(file, ["acks=all"])
    assert (campaign.name, campaign.path) == ("crash", file)
    assert campaign.plans[0].producers[0].settings == {"acks": "all"}


def test_an_unreadable_file_is_reported_with_the_reason(tmp_path: Path) -> None:
    (tmp_path / "binary.yaml").write_bytes(b"kafka: '2.4'\n# caf\xe9\n")
    (tmp_path / "utf16.yaml").write_bytes("kafka: '2.4'\n".encode("utf-16"))
    (tmp_path / "large.yaml").write_bytes(b"#" * (1 << 20) + b"\xe9" * 10)
    expected = {
        "missing.yaml": "missing.yaml: cannot be read: No such file",
        ".": ": cannot be read: Is a directory",
        "nul\0.yaml": "cannot be read: embedded null byte",
        "binary.yaml": "binary.yaml:2:6: not UTF-8: the byte 0xe9",
        "utf16.yaml": "utf16.yaml:1:1: UTF-16, as PowerShell writes it: save it as UTF-8",
        "large.yaml": "large.yaml:1:1: the file is larger than 1 MiB",
    }
    for name, message in expected.items():
        with pytest.raises(CampaignError) as caught:
            load_campaign(tmp_path / name)
        assert message in str(caught.value)


@pytest.mark.parametrize("name", ["first", "on", "my campaign", "1.0", "{x}"])
def test_the_template_of_a_new_campaign_is_valid(name: str) -> None:
    campaign = load_text(new_campaign(name), f"{name}.yaml")
    assert campaign.name == (
        name if name not in ("my campaign", "{x}") else load_text("{}", f"{name}.yaml").name
    )
    base = campaign.plans[0]
    assert len(base.cluster.brokers) == base.cluster.topics[0].replication_factor == 3
    assert base.producers[0].interval_us == 100 * US_PER_MS
    assert isinstance(base.faults[0].timing, Rate)
    assert not base.expect.is_empty()


def test_plans_survive_pickling() -> None:
    campaign = load_text(reference_example(), "reference.yaml")
    again = pickle.loads(pickle.dumps(campaign))
    assert again == campaign
    assert [loaded.digest() for loaded in again.plans] == [loaded.digest() for loaded in campaign.plans]


def variants(count: int) -> str:
    text = reference_example().partition("\nvariants:")[0] + "\n"
    return (
        text + "variants:\n" + "".join(f"  v{number}: {{settings: {{acks: 1}}}}\n" for number in range(count))
    )


def test_a_text_is_parsed_once_however_many_variants_and_options_it_has(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    parsed: list[str] = []

    def counted(text: str) -> Document:
        parsed.append(text)
        return compose(text)

    monkeypatch.setattr(yaml_positions, "compose", counted)
    text = variants(5)
    assert len(load_text(text, "f.yaml", ["acks=0", "kafka=2.0"]).plans) == 6
    assert parsed == [text]


def test_the_cost_of_loading_grows_linearly_with_the_text() -> None:
    few, many, most = (calls_of(load_text, variants(count), "f.yaml") for count in (10, 20, 40))
    assert most - many == pytest.approx(2 * (many - few), rel=0.01)


def calls_of(function: Callable[..., object], *arguments: object) -> int:
    """Return how many calls a function makes when it runs for the second time."""
    function(*arguments)
    calls = 0

    def count(_frame: FrameType, event: str, _function: object) -> None:
        nonlocal calls
        calls += event in {"call", "c_call"}

    before = sys.getprofile()
    sys.setprofile(count)
    try:
        function(*arguments)
    finally:
        sys.setprofile(before)
    return calls


def test_reading_campaigns_imports_no_code_that_runs_or_prints_them() -> None:
    """The imports decide the start time of a command; the time itself depends on the machine."""
    script = "import sys, harrow.campaigns.language.loader; print(*sys.modules)"
    ended = subprocess.run(
        [sys.executable, "-c", script],
        env={**plain_environment(), "PYTHONPATH": PYTHONPATH},
        capture_output=True,
        check=True,
        text=True,
    )
    assert set(ended.stdout.split()).isdisjoint(
        {
            *("asyncio", "logging", "multiprocessing", "socket", "subprocess", "unittest"),
            *(
                "duckdb",
                "hypothesis",
                "jsonschema",
                "pandas",
                "pyarrow",
                "pyspark",
                "pytest",
                "rich",
                "typer",
            ),
            *(
                "harrow.campaigns.run.runner",
                "harrow.campaigns.search",
                "harrow.campaigns.sweep",
                "harrow.cli",
            ),
            *("harrow.checks.rules", "harrow.cluster_model.broker", "harrow.cluster_model.cluster"),
        }
    )
