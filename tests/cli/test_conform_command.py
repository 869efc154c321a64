"""`harrow conform` on brokers played by the model: its output and exit codes."""

import json
import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from harrow.campaigns.language.plan import Plan
from harrow.campaigns.run.run_result import RealTarget, RunResult
from harrow.campaigns.run.runner import run_plan
from harrow.campaigns.run.swarm import draw_for_seed
from harrow.campaigns.storage.location import location
from harrow.cli import exit_code
from harrow.cli.commands import conform, run
from harrow.cli.requests.real_brokers import ConformRequest
from harrow.cli.requests.run import RunRequest
from harrow.live_cluster.releases.kafka_release import KafkaRelease, release_of

GENERATED = """
name: generated
kafka: "2.4"
settings: {acks: all}
cluster: {brokers: 1, topics: [{name: t}]}
workload: {duration: 2s, producers: [{rate: 20/s}]}
"""
SCRIPTED = """
name: scripted
kafka: "2.4"
settings: {acks: 1}
cluster: {brokers: 2, topics: [{name: t, assignment: [[0, 1]]}]}
script:
  - do: {send: m0}
  - when: {acked: m0}
"""


SWARM = """
name: open
kafka: "2.4"
settings: {acks: all}
workload: {duration: 2s, producers: [{rate: 20/s}]}
swarm: {brokers: 1..3}
"""


class PlayedBrokers:
    """Brokers of 2.4.1, played by the model with other seeds."""

    release: KafkaRelease = release_of("2.4.1")

    def run(
        self,
        plan: Plan,
        seed: int,
        results: Path | None,
        check: Callable[[], None] = lambda: None,
        tell: Callable[[Callable[[], str]], None] = lambda _: None,
    ) -> RunResult:
        assert results is None
        check()
        target = RealTarget(kind="kafka", release="2.4.1", metadata="zookeeper", began="20260101T000000")
        return replace(run_plan(self.drawn(plan, seed), 1_000 + seed), seed=seed, target=target)

    def drawn(self, plan: Plan, seed: int) -> Plan:
        return draw_for_seed(plan, seed).plan

    def modelled_plan(self, plan: Plan) -> Plan:
        assert plan.swarm is None, "the model runs the drawn plan"
        return plan


class InterruptedBrokers(PlayedBrokers):
    """Brokers whose user presses Ctrl-C when the run has begun."""

    def run(
        self,
        plan: Plan,
        seed: int,
        results: Path | None,
        check: Callable[[], None] = lambda: None,
        tell: Callable[[Callable[[], str]], None] = lambda _: None,
    ) -> RunResult:
        def press_and_check() -> None:
            signal.raise_signal(signal.SIGINT)
            check()

        target = RealTarget(kind="kafka", release="2.4.1", metadata="zookeeper", began="20260101T000000")
        return replace(run_plan(plan, seed, check=press_and_check), target=target)


def test_an_interrupted_run_on_brokers_is_written_up_to_the_interrupt(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    @contextmanager
    def played(*_: Any, **__: Any) -> Iterator[InterruptedBrokers]:
        yield InterruptedBrokers()

    monkeypatch.setattr(conform, "real_brokers", played)
    monkeypatch.setattr(run, "real_brokers", played)
    campaign = tmp_path / "mine.yaml"
    campaign.write_text(GENERATED, encoding="utf-8")
    options: dict[str, Any] = {"campaigns": [str(campaign)], "target": "kafka:2.4.1", "quiet": True}
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        commands: list[tuple[Any, Any]] = [(conform, ConformRequest), (run, RunRequest)]
        for command, request in commands:
            results = tmp_path / command.__name__
            # Only runs can be written to shared storage.
            place = location(results) if request is RunRequest else results
            code = command.session(request(results=place, output=tmp_path / "output", **options))
            assert code == exit_code.INTERRUPTED
            (file,) = results.glob("generated/*/run.json")
            document = json.loads(file.read_text(encoding="utf-8"))
            assert "the run was given up after an interrupt" in document["reasons"]
            assert (file.parent / "trace.jsonl").is_file()
    finally:
        signal.signal(signal.SIGINT, before)


@pytest.fixture
def conformed(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Callable[..., tuple[int, str]]:
    @contextmanager
    def played(*_: Any, **__: Any) -> Iterator[PlayedBrokers]:
        yield PlayedBrokers()

    monkeypatch.setattr(conform, "real_brokers", played)

    def session(text: str, **options: Any) -> tuple[int, str]:
        campaign, output = tmp_path / "mine.yaml", tmp_path / "output"
        campaign.write_text(text, encoding="utf-8")
        request = ConformRequest(
            campaigns=[str(campaign)],
            target="kafka:2.4.1",
            seeds=range(5),
            no_results=True,
            output=output,
            quiet=True,
            **options,
        )
        return conform.session(request), output.read_text(encoding="utf-8")

    return session


def test_each_seed_of_a_swarm_is_compared_separately(
    conformed: Callable[..., tuple[int, str]],
) -> None:
    code, printed = conformed(SWARM, times=2, output_format="json")
    first, second = json.loads(printed)["comparisons"]
    assert (code, first["status"], second["status"]) == (exit_code.OK, "agreed", "agreed")
    assert [run["seed"] for each in (first, second) for run in each["real"]] == [0, 1]
    assert (first["modelled"], second["modelled"]) == (5, 5)
    _, table = conformed(SWARM, times=2)
    assert "agreed    open seed 0\n" in table
    assert "agreed    open seed 1\n" in table


def test_the_service_levels_of_brokers_and_model_are_shown_side_by_side(
    conformed: Callable[..., tuple[int, str]],
) -> None:
    code, printed = conformed(GENERATED, times=2)
    lines = [line.split() for line in printed.splitlines()]
    assert (code, lines[0]) == (exit_code.OK, ["agreed", "generated"])
    # Two runs, and the minimum and maximum of the model.
    assert ["acked", "100%,", "100%", "(model", "100%", "to", "100%)"] in lines
    named = [" ".join(line[:4]) for line in lines]
    assert {"time to ack, p50", "time to ack, p99", "longest without an ack"} <= set(named)


@pytest.mark.parametrize("output_format", ["table", "markdown"])
def test_the_rules_that_were_not_compared_are_counted(
    conformed: Callable[..., tuple[int, str]], output_format: str
) -> None:
    _, document = conformed(GENERATED, output_format="json")
    (comparison,) = json.loads(document)["comparisons"]
    _, printed = conformed(GENERATED, output_format=output_format)
    assert f"not compared: {len(comparison['not_tried'])} rules not tried on both sides" in printed


def test_a_script_reports_no_service_levels(conformed: Callable[..., tuple[int, str]]) -> None:
    code, printed = conformed(SCRIPTED)
    assert (code, "time to ack" in printed) == (exit_code.OK, False)


def test_json_has_the_settings_the_start_of_each_run_and_the_equal_model_runs(
    conformed: Callable[..., tuple[int, str]],
) -> None:
    _, printed = conformed(GENERATED, output_format="json", overrides=["acks=all"])
    document = json.loads(printed)
    assert document["set"] == ["acks=all"]
    (comparison,) = document["comparisons"]
    (run,) = comparison["real"]
    assert (run["began"], run["alike"], comparison["modelled"]) == ("20260101T000000", 5, 5)
    assert {"G1a", "lost-write"} & set(comparison["not_tried"]) == {"G1a"}
    service = comparison["service"]
    assert [len(service[side]) for side in ("real", "model")] == [1, 5]
    assert service["real"][0]["sent"] == service["real"][0]["acked"] > 0
