"""An effect in a file outside harrow needs one registration, and a handler in each target."""

from collections.abc import Callable
from types import ModuleType
from typing import Any

import pytest

from harrow.campaigns.language.loader import load_text
from harrow.campaigns.run.run_result import RunResult
from harrow.campaigns.run.runner import run_plan
from harrow.campaigns.run.targets.model_environment import MODEL
from harrow.cluster_model import events
from harrow.cluster_model.trace import select
from harrow.faults.catalogue import FAULTS
from harrow.live_cluster.local.started_effects import STARTED
from harrow.live_cluster.users.fault_reach import targets_of
from tests.extending.conftest import FILES, Register

SECOND = 1_000_000
REASON = "fsync_slow: log directories are folders of one disk, whose flushes are slow for all brokers"


@pytest.fixture(autouse=True)
def module(example: Callable[[str], ModuleType], register: Register) -> Any:
    imported = example("faults/fsync_slow.py")
    register(FAULTS, imported.FsyncSlow.name, imported.FsyncSlow)
    yield imported
    for handlers in (MODEL, STARTED):
        handlers.handlers.pop(imported.SlowFsync, None)


def run(text: str = FILES["slow-fsync.yaml"]) -> RunResult:
    (plan,) = load_text(text, "slow-fsync.yaml").plans
    return run_plan(plan, 0)


def appends(result: RunResult, begin_s: int, end_s: int) -> int:
    appended = select(result.evidence.trace, events.BatchAppended)
    return len([event for event in appended if begin_s * SECOND <= event.at_us < end_s * SECOND])


def test_the_model_performs_the_effect_and_undoes_it() -> None:
    result = run()
    assert 0 < appends(result, 6, 15) <= 5
    assert appends(result, 16, 20) > 40


def test_the_effect_does_nothing_without_immediate_flushes() -> None:
    text = FILES["slow-fsync.yaml"].replace(", log.flush.interval.messages: 1", "")
    assert appends(run(text), 6, 15) > 100


def test_without_a_handler_the_effect_is_impossible_and_the_reason_is_shown(module: Any) -> None:
    reach = targets_of(module.FsyncSlow)
    assert [str(target_reach) for target_reach in reach.values()] == ["yes", "no", "no", "no"]
    assert REASON in reach["ZooKeeper"].obstacles
    assert reach["yours"].obstacles == ("fsync_slow: nothing here performs SlowFsync",)


def test_a_run_on_the_model_reports_why_a_fault_without_a_handler_did_not_strike(module: Any) -> None:
    del MODEL.handlers[module.SlowFsync]
    result = run()
    assert result.faults == ()
    assert any(
        "fsync_slow" in line and "nothing here performs SlowFsync" in line
        for line in result.evidence.not_struck
    )
    assert str(targets_of(module.FsyncSlow)["model"]) == "no"
