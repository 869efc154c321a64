"""DuckDB makes reports of handmade rows."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from harrow.campaigns.record.report import UNDECIDED, UNEXPECTED
from harrow.campaigns.sweep.definition import Vary, VaryError
from harrow.campaigns.sweep.grouping import Grouping
from harrow.campaigns.sweep.row import Row, signature_columns
from harrow.campaigns.sweep.sweep_folder import SweepFolder
from tests.campaigns.sweep.sweep_campaigns import TEXT, acks, definition, write_rows

REQUIRING = f"{TEXT}expect: {{probes: [unclean-election]}}\n"
LOST = signature_columns("lost-write", "acks=all", "acked > lost")
GROUPED = """
import json, sys
from pathlib import Path
from harrow.campaigns.sweep.queries import duck_sql
from harrow.campaigns.sweep.sweep_folder import read_definition, read_state
from harrow.campaigns.sweep.sweep_report import report_of
from tests.campaigns.sweep.sweep_campaigns import loaded
path = Path(sys.argv[1])
sql, definition, state = duck_sql(loaded(path)), read_definition(path), read_state(path)
for by in ("acks", "linger.ms"), ("linger.ms",), ("campaign",):
    print(json.dumps(report_of(sql, definition, state, by).as_mapping()))
"""
SCRIPT = """
import json, sys
from pathlib import Path
from harrow.campaigns.sweep.queries import duck_sql
from harrow.campaigns.sweep.sweep_folder import read_definition, read_state
from harrow.campaigns.sweep.sweep_report import exit_outcome, report_of
from tests.campaigns.sweep.sweep_campaigns import loaded
path = Path(sys.argv[1])
report = report_of(duck_sql(loaded(path)), read_definition(path), {**read_state(path), **json.loads(sys.argv[2])})
print(json.dumps({**report.as_mapping(), "exit": exit_outcome(report)}))
"""


def row(seed: int, verdict: str, *, cell: int = 0, count: int = 0, **fields: Any) -> Row:
    sweep = definition(20, text=REQUIRING, varies=acks("1", "all")).cells[cell]
    return {
        "campaign": sweep.campaign,
        "cell": sweep.name,
        "variant": sweep.variant,
        "settings": sweep.settings,
        "kafka": sweep.plan.kafka,
        "plan_digest": sweep.digest,
        "seed": seed,
        "version": "0",
        "verdict": verdict,
        "outcome": "as-expected",
        "rules": [{"rule": "lost-write", "status": verdict, "count": count}] if count else [],
        **dict.fromkeys(("reasons", "probes"), ()),
        **dict.fromkeys(("events", "simulated_ms"), 0),
        "wall_us": 1_000,
        **fields,
    }


def report_of(path: Path, *rows: Row, **state: Any) -> dict[str, Any]:
    """Return the report of rows from its own process, because DuckDB complains when pytest ends."""
    sweep = definition(20, text=REQUIRING, varies=acks("1", "all"))
    folder = SweepFolder(path, sweep)
    folder.begin()
    write_rows(folder, rows)
    ended = subprocess.run(
        [sys.executable, "-c", SCRIPT, str(path), json.dumps(state)],
        stdout=subprocess.PIPE,
        text=True,
        check=True,
    )
    found: dict[str, Any] = json.loads(ended.stdout)
    return found


REACHED: dict[str, Any] = {"probes": [{"probe": "unclean-election", "count": 2}]}


def test_a_report_has_failures_rates_and_missing_probes(tmp_path: Path) -> None:
    failed: dict[str, Any] = {"outcome": "unexpected", **LOST}
    report = report_of(
        tmp_path,
        row(4, "violated", count=2, events=50, **failed),
        row(2, "violated", count=1, events=90, **failed),
        row(6, "violated", count=1, events=50, **failed),
        row(5, "held", **REACHED),
        row(7, "inconclusive", count=1, outcome="undecided", reasons=("too short",)),
        row(8, "error", outcome="unexpected", error="gone"),
        row(1, "held", cell=1),
        row(2, "permitted", cell=1, count=1),
    )
    (group,) = report["failures"]
    assert (group["failures"], group["signature"]) == (3, LOST["signature"])
    assert (group["earliest"]["seed"], group["shortest"]["seed"], group["shortest"]["events"]) == (2, 4, 50)
    assert group["earliest"]["reproduce"] == "harrow run small.yaml --seed 2 --set acks=1"
    assert group["cells"] == {"base acks=1": 3}
    first, second = report["rates"]
    assert (first["cell"], first["status"], first["hits"], first["runs"]) == (
        "base acks=1",
        "violated",
        3,
        4,
    )
    assert (second["cell"], second["status"], second["hits"], second["runs"]) == (
        "base acks=all",
        "permitted",
        1,
        2,
    )
    assert report["reasons"] == [{"campaign": "small", "reason": "too short", "runs": 1}]
    assert report["required_probes_missed"] == [
        "small, base acks=all: never reached: unclean-election (in 2 runs)"
    ]
    assert report["probes"] == [{"probe": "unclean-election", "runs": 1, "times": 2}]
    assert "unclean-election" not in report["probes_never_reached"]
    assert (report["verdict"], report["exit"]) == ("error", UNEXPECTED)
    assert report["durations"][0]["median_us"] == pytest.approx(1_000, rel=0.01)


def test_each_run_that_sent_records_is_in_one_bin_of_outages(tmp_path: Path) -> None:
    sent = {"acked": 10, "ack_p99_us": 5, **dict.fromkeys(("failed", "unknown", "outages"), 0)}
    times_us = (0, 1, 1_000_000, 1_000_001, 9_000_000)
    rows = [row(seed, "held", sent=10, outage_us=time_us, **sent) for seed, time_us in enumerate(times_us)]
    (service,) = report_of(tmp_path, *rows, row(7, "held", sent=0, outage_us=3))["service"]
    counts = [
        sum(each["from_us"] <= max(1, time_us) < each["to_us"] for time_us in times_us)
        for each in service["outage_bins"]
    ]
    assert [each["runs"] for each in service["outage_bins"]] == counts == [2, 2, 1]


def test_a_required_probe_that_no_run_reached_makes_the_sweep_inconclusive(tmp_path: Path) -> None:
    report = report_of(tmp_path, row(1, "held", **REACHED), row(1, "held", cell=1))
    assert len(report["required_probes_missed"]) == 1
    assert (report["verdict"], report["exit"]) == ("inconclusive", UNDECIDED)


def test_unequal_repeats_are_an_error(tmp_path: Path) -> None:
    rows = (row(1, "held", **REACHED), row(1, "held", cell=1, **REACHED))
    assert report_of(tmp_path / "a", *rows)["verdict"] == "held"
    assert report_of(tmp_path / "b", *rows, unequal=[[0, 1]])["verdict"] == "error"


def test_an_unknown_key_of_a_group_is_a_mistake() -> None:
    with pytest.raises(VaryError, match=r"--by `ack`: no cell has this key; did you mean `acks`\?"):
        Grouping(definition(2, varies=acks("1", "all")).cells, ["ack"])


def test_cells_can_be_grouped_by_their_release_although_the_sweep_does_not_vary_it() -> None:
    cells = definition(2, varies=acks("1", "all")).cells
    groups = Grouping(cells, ["kafka"]).as_cells()
    assert [group["settings"] for group in groups] == [{"kafka": cells[0].plan.kafka}]


def test_cells_with_equal_values_of_some_keys_are_added_up(tmp_path: Path) -> None:
    sweep = definition(20, varies=(*acks("1", "all"), Vary(key="linger.ms", values=("0ms", "5ms"))))
    folder = SweepFolder(tmp_path, sweep)
    folder.begin()
    failed: dict[str, Any] = {"outcome": "unexpected", **LOST}
    rows = [
        {
            **row(seed, "violated" if seed < number else "held", count=int(seed < number)),
            **dict.fromkeys(("sent", "acked"), 10),
            **dict.fromkeys(("failed", "unknown", "outages"), 0),
            **(failed if seed < number else {}),
            "cell": cell.name,
            "events": seed,
            "outage_us": 1_000_000 * (number + 1),
            "ack_p99_us": None if number == 0 else number,
        }
        for number, cell in enumerate(sweep.cells)
        for seed in range(10)
    ]
    write_rows(folder, rows)
    ended = subprocess.run(
        [sys.executable, "-c", GROUPED, str(tmp_path)], stdout=subprocess.PIPE, text=True, check=True
    )
    alone, by_linger, whole = map(json.loads, ended.stdout.splitlines())
    assert [each["runs"] for each in alone["cells"]] == [10] * 4
    assert [each["cell"] for each in by_linger["cells"]] == ["linger.ms=0ms", "linger.ms=5ms"]
    assert [each["verdicts"] for each in by_linger["cells"]] == [
        {"held": 18, "violated": 2},
        {"held": 16, "violated": 4},
    ]
    assert [(each["hits"], each["runs"]) for each in by_linger["rates"]] == [(2, 20), (4, 20)]
    (group,) = by_linger["failures"]
    assert group["cells"] == {"linger.ms=5ms": 4, "linger.ms=0ms": 2}
    assert group["earliest"]["reproduce"].startswith("harrow run small.yaml --seed 0 --set acks=")
    first, second = by_linger["service"]
    assert (first["sent"], first["outage"]["max_us"], first["ack_p99"]["max_us"]) == (200, 3_000_000, 2)
    assert (second["sent"], second["outage"]["max_us"], second["ack_p99"]["max_us"]) == (200, 4_000_000, 3)
    assert second["outage"]["median_us"] == pytest.approx(2_000_000, rel=0.01)
    assert sum(each["runs"] for each in second["outage_bins"]) == 20
    (group,) = whole["cells"]
    assert (group["cell"], group["runs"]) == ("all", 40)
