"""The results of a run do not depend on how it stores its trace and history."""

from pathlib import Path

import pytest

from harrow.campaigns.language.library_index import resolve
from harrow.campaigns.language.loader import load_campaign
from harrow.campaigns.language.plan import Plan
from harrow.campaigns.record.report import run_as_mapping
from harrow.campaigns.record.results_folder import write_run
from harrow.campaigns.run.run_result import RunResult
from harrow.campaigns.run.runner import run_plan
from harrow.checks import index
from harrow.cluster_model.packed_log import PackedLog
from harrow.cluster_model.release.profiles import MUTANTS
from tests.library_swarm import swarm_with_mutant

_RUNS = [
    *[
        (name, 0)
        for name in (
            *("standard", "acks-1-leader-crash", "all-replicas-die", "divergence-by-hw", "hw-two-rounds"),
            *("power-loss", "retry-reorders", "unclean-election", "visibility"),
        )
    ],
    *[
        (name, seed)
        for name in ("swarm", "hw-ignores-followers", "no-truncation", "early-isr-expansion")
        for seed in range(3)
    ],
]
"""A library campaign, or a mutant that runs in the swarm, and a seed."""


def _plan(name: str) -> Plan:
    return swarm_with_mutant(name) if name in MUTANTS else load_campaign(resolve(name)[0]).plans[0]


@pytest.mark.parametrize(("name", "seed"), _RUNS)
def test_a_run_with_constant_packing_has_the_results_of_one_without(
    name: str, seed: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    plan = _plan(name)
    plain = run_plan(plan, seed)
    monkeypatch.setattr(PackedLog, "CHUNK", 7)
    monkeypatch.setattr(PackedLog, "UNPACKED_MAX", 15)
    monkeypatch.setattr(PackedLog, "UNCOMPRESSED_MAX", 10_000)
    monkeypatch.setattr(index, "_REPLAYED_AT_ONCE", 0)
    packed = run_plan(plan, seed)
    trace = packed.evidence.trace
    assert isinstance(trace, PackedLog)
    assert len(trace.newest) < len(trace)
    assert packed.trace_digest == plain.trace_digest
    assert packed.verdict == plain.verdict
    assert packed.probes == plain.probes
    assert packed.missed == plain.missed
    assert packed.service == plain.service
    assert packed.evidence.trace == plain.evidence.trace
    assert packed.evidence.operations == plain.evidence.operations
    assert _files(tmp_path / "packed", packed) == _files(tmp_path / "plain", plain)


def _files(results: Path, result: RunResult) -> dict[str, str]:
    folder = write_run(results, result, run_as_mapping(result, "harrow run"), "name: packed\n")
    return {file.name: file.read_text(encoding="utf-8") for file in sorted(folder.iterdir())}
