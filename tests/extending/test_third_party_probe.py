"""A function outside harrow adds a probe, which can be counted, required and listed like others."""

from collections.abc import Callable, Iterator
from types import ModuleType

import pytest
from typer.testing import CliRunner

from harrow.campaigns.language.loader import CampaignError, load_text
from harrow.campaigns.probes.probe import at_each, probe
from harrow.campaigns.probes.probe_counter import ProbeCounter
from harrow.campaigns.probes.probe_memory import ProbeMemory
from harrow.campaigns.probes.probes import PROBES
from harrow.campaigns.run.runner import run_plan
from harrow.cli.main import app
from harrow.cluster_model import events

DELETED = "committed-log-deleted"
MOVING = f"""
cluster: {{brokers: 3, topics: [{{name: t, replication_factor: 2, assignment: [[0, 1]]}}]}}
script:
  - do: {{send: m0}}
  - when: {{acked: m0}}
    do: {{reassign_partition: {{partition: t-0, replicas: [1, 2]}}}}
  - when: {{event: {{log_deleted: {{broker: 0}}}}}}
expect: {{probes: [{DELETED}]}}
"""


@pytest.fixture(autouse=True)
def deleted(example: Callable[[str], ModuleType]) -> Iterator[None]:
    example("campaigns/probes/deleted_logs.py")
    yield
    del PROBES[DELETED], PROBES["unclean-reassignment"]


def test_a_run_counts_the_probe_and_a_campaign_requires_it() -> None:
    result = run_plan(load_text(MOVING, "moving.yaml").plans[0], 0)
    assert result.probes[DELETED] == 1
    assert not result.probes_missed


def test_commands_list_and_explain_the_probe() -> None:
    for arguments in (("list", "probes"), ("explain", DELETED)):
        result = CliRunner().invoke(app, arguments)
        assert "A broker deleted a log with committed records." in " ".join(result.output.split())


def test_a_misspelled_name_gets_a_suggestion() -> None:
    with pytest.raises(CampaignError, match=f"did you mean `{DELETED}`"):
        load_text(MOVING.replace(DELETED, "committed-log-deletd"), "moving.yaml")


def test_a_field_that_its_event_lacks_is_an_error() -> None:
    with pytest.raises(TypeError, match="LogDeleted has no field reason"):

        @at_each(events.LogDeleted, reason="reassignment")
        def log_deleted_for_a_reason() -> None: ...


def test_a_condition_on_a_field_that_its_event_lacks_is_an_error() -> None:
    with pytest.raises(TypeError, match="HighWatermarkSet has no field offset"):

        @probe(events.HighWatermarkSet)
        def high_watermark_rose(run: ProbeMemory, offset: int) -> bool:
            return offset > run.committed.get("t-0", 0)


def test_a_condition_takes_the_fields_that_it_names() -> None:
    @probe(events.HighWatermarkSet)
    def replica_on_zero(_: ProbeMemory, broker: int) -> bool:
        return broker == 0

    @probe(events.HighWatermarkSet)
    def committed_much(run: ProbeMemory, hw: int, partition: str) -> bool:
        return hw > run.committed.get(partition, 0) + 10

    @probe(events.HighWatermarkSet)
    def high_watermark_set(_: ProbeMemory) -> bool:
        return True

    rows = [(20, "hw", 0, "t-0", 11), (21, "hw", 1, "t-0", 20), (22, "hw", 1, "t-0", 40)]
    try:
        counter = ProbeCounter({})
        counter.take(rows)
        counts = counter.result(22)
    finally:
        for name in ("replica-on-zero", "committed-much", "high-watermark-set"):
            del PROBES[name]
    assert counts["replica-on-zero"] == 1
    assert counts["committed-much"] == 2
    assert counts["high-watermark-set"] == 3


def test_a_condition_at_a_notice_is_an_error() -> None:
    with pytest.raises(TypeError, match="declare the probe with `at_each`"):

        @probe()
        def member_gone(run: ProbeMemory, event: events.MemberExpired) -> bool:
            return bool(run.incarnations and event.member)
