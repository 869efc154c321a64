"""The comparison of speeds works from end to end. These tests assert no times."""

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from benchmarks.compare import compare
from benchmarks.speed.clusters import (
    CAMPAIGNS,
    GROWTHS,
    TABLE,
    WORK_TREE,
    LibraryCampaign,
    MeasuredCluster,
)
from benchmarks.speed.comparison import COLUMNS, CostComparison
from benchmarks.speed.growth import GROWTH_COLUMNS, SizeCost, growth_picture
from benchmarks.speed.measurement import (
    CommitError,
    Cost,
    checked_out,
    how_it_runs,
    instructions,
    measure,
    resolved,
)
from benchmarks.speed.run_once import with_names_of
from harrow.campaigns.language.loader import load_text
from harrow.cluster_model.release.former_names import FORMER_NAMES
from harrow.compilation import PURE
from tests.patience import PATIENCE_S

TINY = MeasuredCluster(name="tiny", duration_s=1)
NAMES = [cluster.name for cluster in TABLE]


@pytest.fixture(scope="module")
def head() -> Iterator[Path]:
    try:
        resolved("HEAD")
    except CommitError:
        pytest.skip("this is no git repository")
    with checked_out("HEAD") as root:
        yield root


@pytest.fixture(autouse=True)
def no_valgrind(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let no test wait for valgrind, which takes a minute."""
    monkeypatch.setattr("benchmarks.compare.instructions", lambda *_arguments, **_options: None)


@pytest.fixture(scope="module")
def tiny(head: Path) -> CostComparison:
    return CostComparison(
        cluster=TINY,
        limit_s=PATIENCE_S,
        work_tree=[measure(WORK_TREE, TINY, PATIENCE_S)],
        commit=[measure(head, TINY, PATIENCE_S)],
    )


def test_each_side_runs_its_own_code(tiny: CostComparison, head: Path) -> None:
    assert Path(tiny.work_tree[0].runner).is_relative_to(WORK_TREE)
    assert Path(tiny.commit[0].runner).is_relative_to(head)


def test_a_tiny_cluster_has_every_column(tiny: CostComparison) -> None:
    cells = tiny.cells()
    assert len(cells) == len(COLUMNS)
    assert all(cells)
    assert tiny.ratios() is not None


def test_the_work_tree_is_compared_with_a_commit_from_end_to_end(
    head: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    compare("HEAD", [TINY], rounds=1, limit_s=PATIENCE_S)
    title, _, columns, _, row = capsys.readouterr().out.splitlines()[:5]
    assert title.startswith("work tree (")
    assert columns == f"| {' | '.join(COLUMNS)} |"
    assert row.startswith("| `tiny` | ")


def test_json_has_every_measurement(head: Path, capsys: pytest.CaptureFixture[str]) -> None:
    compare("HEAD", [TINY], rounds=1, limit_s=PATIENCE_S, as_json=True)
    (row,) = json.loads(capsys.readouterr().out)["clusters"]
    assert len(row["work_tree"]) == len(row["commit"]) == 1
    assert row["ratio_min"] <= row["ratio"] <= row["ratio_max"]


def test_a_cluster_that_cannot_be_run_does_not_end_the_table(
    head: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    compare("HEAD", [replace(TINY, name="none", brokers=0), TINY], rounds=1, limit_s=PATIENCE_S)
    out, err = capsys.readouterr()
    assert err.startswith("none cannot be run with the code in ")
    assert out.splitlines()[-1].startswith("| `tiny` | ")


def test_instructions_are_counted_per_run_without_the_start_of_the_process(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def run_once(
        root: Path, cluster: MeasuredCluster, seeds: int, *_: object, **_options: object
    ) -> subprocess.CompletedProcess[str]:
        report = f"==7== I   refs:      {3_000_000_000 + seeds * 500_000_000:,}\n"
        return subprocess.CompletedProcess([], 0, stdout="", stderr=report)

    monkeypatch.setattr("shutil.which", lambda _name: "/usr/bin/valgrind")
    monkeypatch.setattr("benchmarks.speed.measurement._run_once", run_once)
    assert [instructions(WORK_TREE, replace(TINY, seeds=seeds)) for seeds in (1, 10)] == [500.0, 500.0]


@pytest.mark.parametrize(("run_s", "counted"), [(0.01, [3, 3]), (1.5, [3, 3]), (2.0, [])])
def test_the_same_seeds_are_counted_on_fast_and_slow_machines_or_none(
    run_s: float, counted: list[int], head: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    seeds: list[int] = []

    def count(_root: Path, cluster: MeasuredCluster, **_options: object) -> None:
        seeds.append(cluster.seeds)

    monkeypatch.setattr(
        "benchmarks.compare.measure",
        lambda _root, cluster, *_, **_options: cost(cpu_s=run_s * cluster.seeds),
    )
    monkeypatch.setattr("benchmarks.compare.instructions", count)
    compare("HEAD", [replace(TINY, seeds=3)], rounds=1, limit_s=PATIENCE_S)
    assert seeds == counted


def test_other_seeds_than_the_measured_ones_warm_a_process_up(monkeypatch: pytest.MonkeyPatch) -> None:
    requests: list[dict[str, Any]] = []

    def run(*_: object, **options: Any) -> subprocess.CompletedProcess[str]:
        requests.append(json.loads(options["input"]))
        return subprocess.CompletedProcess([], 0, stdout="", stderr="I   refs:  1\n")

    monkeypatch.setattr("shutil.which", lambda _name: "/usr/bin/valgrind")
    monkeypatch.setattr("subprocess.run", run)
    instructions(WORK_TREE, replace(TINY, seeds=3, warm_up_seeds=2))
    # A process without runs warms up in the same way, so the difference leaves it out.
    assert [(request["seeds"], request["warm_up_seeds"]) for request in requests] == [
        (0, [3, 4]),
        (3, [3, 4]),
    ]


def test_the_table_compares_instructions_where_they_are_counted() -> None:
    row = CostComparison(
        cluster=TINY, limit_s=60, work_tree=[cost()], commit=[cost()], instructions=[300.0, 600.0]
    )
    assert row.cells()[-2:] == ["0.500", "300 / 600"]
    assert replace(row, instructions=[]).cells()[-2:] == ["not counted", "not counted"]


def test_different_work_is_noted() -> None:
    same = CostComparison(cluster=TINY, limit_s=60, work_tree=[cost()], commit=[cost()])
    other = CostComparison(cluster=TINY, limit_s=60, work_tree=[cost()], commit=[cost(events=2_000)])
    assert list(same.notes()) == []
    assert list(other.notes()) == ["The events of `tiny` differ much: it did other work."]


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_the_command_leaves_nothing_behind_when_it_is_stopped(
    number: int, head: Path, tmp_path: Path
) -> None:
    command = [sys.executable, "-m", "benchmarks.compare", "HEAD", "--only", "12-brokers-10-minutes"]
    environment = {**os.environ, "TMPDIR": str(tmp_path)}
    with subprocess.Popen(
        command, cwd=WORK_TREE, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as running:
        assert running.stdout is not None
        assert running.stdout.readline().startswith("work tree (")
        assert list(tmp_path.iterdir())
        running.send_signal(number)
        _, messages = running.communicate(timeout=PATIENCE_S)
    assert running.returncode == 128 + number
    assert messages == ""
    assert list(tmp_path.iterdir()) == []


def test_an_unknown_commit_is_reported() -> None:
    completed = subprocess.run(
        [sys.executable, "-m", "benchmarks.compare", "no-such-commit"],
        cwd=WORK_TREE,
        capture_output=True,
        text=True,
        check=False,
    )
    assert completed.returncode == 1
    assert completed.stderr.startswith("git rev-parse")


@pytest.mark.parametrize("cluster", CAMPAIGNS, ids=lambda cluster: cluster.name)
def test_each_measured_campaign_is_in_the_library(cluster: MeasuredCluster) -> None:
    assert load_text(cluster.text(), "benchmark.yaml").plans


def test_a_commit_runs_the_campaign_of_its_own_library(tmp_path: Path) -> None:
    campaign = LibraryCampaign(name="standard-eos")
    assert campaign.text_for(tmp_path) == campaign.text()
    library = tmp_path / "campaigns" / "library"
    library.mkdir(parents=True)
    (library / "standard-eos.yaml").write_text("name: older\n", encoding="utf-8")
    assert campaign.text_for(tmp_path) == "name: older\n"


@pytest.mark.parametrize("cluster", TABLE, ids=NAMES)
def test_the_loader_accepts_each_cluster(cluster: MeasuredCluster, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("harrow.campaigns.language.readers.cluster.PARTITIONS_MAX", cluster.partitions)
    (plan,) = load_text(cluster.text(), "benchmark.yaml").plans
    assert len(list(plan.cluster.partition_names())) == cluster.partitions
    assert len(plan.cluster.brokers) == cluster.brokers
    assert len(plan.producers) == cluster.producers
    assert plan.duration_us == cluster.duration_s * 1_000_000


def test_the_ratio_uses_the_smallest_times_and_the_spread_all_rounds() -> None:
    row = CostComparison(
        cluster=TINY,
        limit_s=60,
        work_tree=[cost(cpu_s=2.0), cost(cpu_s=3.0)],
        commit=[cost(cpu_s=5.0), cost(cpu_s=4.0)],
    )
    assert row.ratios() == (0.5, 0.4, 0.75)
    assert row.cells()[1:3] == ["0.50", "0.40 to 0.75"]


@pytest.mark.parametrize(
    ("new", "old", "ratio", "seconds"),
    [
        (False, True, "< 0.05", "3.00 / over 60"),
        (True, False, "> 20.00", "over 60 / 3.00"),
        (True, True, "", "over 60"),
    ],
)
def test_a_stopped_side_limits_the_ratio(*, new: bool, old: bool, ratio: str, seconds: str) -> None:
    row = CostComparison(cluster=TINY, limit_s=60, work_tree=[cost(over=new)], commit=[cost(over=old)])
    assert row.ratios() is None
    assert row.cells()[1] == ratio
    assert row.cells()[4] == seconds


def test_the_picture_has_a_line_for_each_growing_quantity() -> None:
    steps = [
        SizeCost(growth=growth, size=size, cost=cost(cpu_s=number + 1, over=number == 3))
        for growth in GROWTHS
        for number, (size, _) in enumerate(growth.sizes)
    ]
    picture = growth_picture(steps)
    assert picture.count("<circle") == 2 * sum(not step.cost.over for step in steps)
    assert all(f">{growth.name}</text>" in picture for growth in GROWTHS)
    assert all(len(step.cells(60)) == len(GROWTH_COLUMNS) for step in steps)


def cost(*, cpu_s: float = 3.0, over: bool = False, events: int = 1_000) -> Cost:
    return Cost(
        over=over,
        cpu_s=cpu_s,
        judge_s=1.0,
        events=0 if over else events,
        simulated_s=0.0 if over else 60.0,
        verdicts=[],
        peak_mib=50.0,
        bare_events_per_s=1e6,
        runner="",
    )


@pytest.mark.parametrize(
    ("file", "expected"),
    [
        ("release/log.py", "truncation_drops_empty_last_epoch"),
        ("release.py", "epoch_cache_cut_at_log_end"),
    ],
)
def test_a_commit_gets_a_campaign_with_the_names_of_its_switches(
    file: str, expected: str, tmp_path: Path
) -> None:
    declaration = tmp_path / "cluster_model" / file
    declaration.parent.mkdir(parents=True)
    declaration.write_text(f"{expected}: bool = switch()\n", encoding="utf-8")
    assert f"  {expected}: true\n" in with_names_of(tmp_path, TINY.text(), FORMER_NAMES)


def test_a_commit_without_the_package_harrow_runs_in_pure_python(tmp_path: Path) -> None:
    assert how_it_runs(tmp_path, compiled=True) == PURE
