"""Tries cells of `harrow assess` on the model and on real brokers.

Run ``python -m benchmarks.assessed_cells [NAME...]``; a NAME is a part of the name of a fault
model. It needs brokers (``harrow kafka get 4.3.1 3.9.2``), and takes about ten minutes. It
prints the table of docs/evidence/assessed-on-brokers.md, and exits with 1 if a cell differs.
"""

import argparse
import json
import subprocess
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final

from harrow.campaigns.assess.fault_model import fault_models
from harrow.campaigns.assess.tally import ModelTally
from harrow.campaigns.assess.trials import trials
from harrow.campaigns.language.spelling import CLUSTER_OPTION, counted
from harrow.campaigns.language.units import rough_duration_text
from harrow.campaigns.record.markdown import code, table, text
from harrow.campaigns.run.workers.workers import Workers
from harrow.checks.rule import LOST

_HEADS: Final = ("fault model", "cluster", "brokers", "on brokers", "`conform`", "`assess`")
_RUNS: Final = 20
"""How many runs `harrow assess` makes of a fault model."""
_AGREED: Final = "agreed"


@dataclass(frozen=True, kw_only=True)
class AssessedCell:
    """A fault model on a cluster of three brokers, and the brokers that are to show the same."""

    model: str
    settings: Mapping[str, str]
    target: str
    replicas: int = 3
    times: int = 1

    def cluster_text(self) -> str:
        """Return the cluster file. JSON is YAML, too."""
        topic = {"name": "orders", "partitions": 3, "replication_factor": self.replicas}
        release = ".".join(self.target.partition("-")[0].split(".")[:2])
        cluster = {"kafka": release, "settings": self.settings, "brokers": 3, "topics": [topic]}
        if self.target.endswith("zookeeper"):
            cluster["metadata"] = "zookeeper"
        return json.dumps(cluster)


_ACKS_1: Final = {"acks": "1", "min.insync.replicas": "1"}
_SAFE: Final = {"acks": "all", "min.insync.replicas": "2"}
_SINGLE: Final = {"acks": "all", "min.insync.replicas": "1"}

CELLS: Final = (
    AssessedCell(model="broker-dies", settings=_ACKS_1, target="4.3.1-kraft", times=2),
    AssessedCell(model="broker-dies", settings=_SAFE, target="4.3.1-kraft", times=2),
    AssessedCell(model="all-power", settings=_SAFE, target="4.3.1-kraft"),
    AssessedCell(model="disk-lost", settings=_SINGLE, target="3.9.2-kraft", replicas=1),
    AssessedCell(model="leader-paused", settings=_ACKS_1, target="3.9.2-zookeeper", times=2),
    AssessedCell(model="leader-paused", settings=_SAFE, target="3.9.2-kraft"),
    AssessedCell(model="restart-without-waiting", settings=_SAFE, target="3.9.2-zookeeper"),
)


def main() -> None:
    """Print the table, each row when its cell is done."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*", metavar="NAME")
    names: list[str] = parser.parse_args().names
    cells = [cell for cell in CELLS if not names or any(name in cell.model for name in names)]
    if not cells:
        sys.exit("no cell has such a name")
    agreed = 0
    print(table(_HEADS, []))
    for cell in cells:
        with TemporaryDirectory() as folder:
            path = Path(folder) / "cluster.yaml"
            path.write_text(cell.cluster_text(), encoding="utf-8")
            comparison = _compared(cell, path)
            row = [*_row(cell, comparison), _assessed(cell, path)]
        agreed += comparison["status"] == _AGREED
        print("| " + " | ".join(row) + " |", flush=True)
    print(f"\n{agreed} of {counted(len(cells), 'cell')} agreed")
    sys.exit(0 if agreed == len(cells) else 1)


def _compared(cell: AssessedCell, cluster: Path) -> Mapping[str, Any]:
    """Return the comparison that `harrow conform` prints."""
    command = [sys.executable, "-m", "harrow", "conform", cell.model, "--set", f"cluster={cluster}"]
    options = ["--target", f"kafka:{cell.target}", "--times", str(cell.times)]
    ended = subprocess.run(  # noqa: S603  # the arguments are those above
        [*command, *options, "--format", "json", "--no-results", "--quiet"],
        stdout=subprocess.PIPE,
        text=True,
        check=False,
    )
    if not ended.stdout:
        sys.exit(f"harrow conform exited with {ended.returncode}")
    (comparison,) = json.loads(ended.stdout)["comparisons"]
    return dict(comparison)


def _row(cell: AssessedCell, comparison: Mapping[str, Any]) -> Iterator[str]:
    settings = ", ".join(code(f"{name}: {value}") for name, value in cell.settings.items())
    yield code(cell.model)
    yield f"{settings}, {counted(cell.replicas, 'replica')}"
    yield text(cell.target)
    found = "; ".join(run["found"] or run["verdict"] for run in comparison["real"])
    outages = ", ".join(_time(level["without_ack_us"]) for level in comparison["service"]["real"])
    yield f"{text(found)}; without an ack {outages or 'unknown'}"
    modelled = sorted(level["without_ack_us"] for level in comparison["service"]["model"])
    times = f"; {_time(modelled[0])} to {_time(modelled[-1])}" if modelled else ""
    reasons = f": {'; '.join(map(text, comparison['reasons']))}" if comparison["reasons"] else ""
    yield f"{comparison['status']}{times}{reasons}"


def _assessed(cell: AssessedCell, cluster: Path) -> str:
    """Return what `harrow assess` says about the cell."""
    (model,) = (each for each in fault_models((), [f"{CLUSTER_OPTION}={cluster}"]) if each.name == cell.model)
    assert model.plan is not None, model.unfit
    tally = ModelTally(model=model, trials=tuple(trials([model.plan], range(_RUNS), Workers())))
    runs = sum(trial.count(LOST) > 0 for trial in tally.conclusive)
    lost = f"lost in {runs} of {len(tally.conclusive)} runs, at most {tally.records_max(LOST)}"
    return f"{lost}; without an ack at most {_time(tally.longest_max_us)}"


def _time(us: int) -> str:
    return rough_duration_text(us)


if __name__ == "__main__":
    main()
