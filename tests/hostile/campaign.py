"""Runs hostile cases one after the other, each in a forked process."""

import gc
import json
import shutil
from importlib import import_module
from pathlib import Path

from tests.hostile.cases import CAMPAIGN, SWEEP, Cases
from tests.hostile.fake_broker import FakeBroker
from tests.hostile.trial import Outcome, run_in_fork
from tests.plain_environment import PYTHONPATH, plain_environment

_WARM = (
    *("harrow.cli.main", "harrow.cli.commands.run", "harrow.cli.commands.check", "harrow.cli.commands.diff"),
    *("harrow.cli.commands.trace", "harrow.cli.commands.replay", "harrow.cli.commands.validate"),
    *(
        "harrow.cli.commands.target",
        "harrow.cli.commands.new",
        "harrow.cli.render.run",
        "harrow.cli.render.trace",
    ),
    *(
        "harrow.cli.ci.junit",
        "harrow.cli.ci.github",
        "harrow.campaigns.run.runner",
        "harrow.campaigns.language.loader",
    ),
    *("harrow.live_cluster.users.users_brokers", "harrow.live_cluster.users.surveyed_cluster"),
    *("harrow.campaigns.sweep.sweep", "harrow.campaigns.sweep.sweep_report", "harrow.cli.commands.sweep"),
)


def warm_up() -> None:
    """Import what commands import, so that each fork has it."""
    for name in _WARM:
        import_module(name)


class Campaign:
    """Creates the inputs of cases, and runs cases in a *folder*.

    Files of failed cases stay in *keep*.
    """

    def __init__(self, folder: Path, keep: Path | None = None) -> None:
        warm_up()
        self._folder = folder
        self._keep = keep
        self._environment = {
            **plain_environment(),
            "PYTHONPATH": PYTHONPATH,
            "HARROW_STATE": str(folder / "state"),
        }
        intact = folder / "intact"
        intact.mkdir()
        (intact / "small.yaml").write_text(json.dumps(CAMPAIGN), encoding="utf-8")
        run = ("run", "small.yaml", "--variant", "base", "--seed", "1", "-j", "1")
        for words in (run, (*SWEEP, "--out", "results/sweep")):
            outcome = run_in_fork(words, intact, self._environment)
            assert outcome.code in (0, 1), outcome
        (run_folder,) = [
            path
            for path in (intact / "results" / "small").iterdir()
            if path.is_dir() and not path.is_symlink()
        ]
        run_folder.rename(run_folder.with_name("run"))
        self._cases = Cases(intact, FakeBroker())
        gc.collect()
        gc.freeze()

    def run(self, number: int) -> tuple[str, Outcome]:
        """Run the case with a number, and return its kind and its outcome."""
        folder = self._folder / "case"
        for path in (folder, self._folder / "case.streams"):
            shutil.rmtree(path, ignore_errors=True)
        folder.mkdir()
        case = self._cases.create(number, folder)
        if self._keep is not None:
            copy = self._keep / str(number)
            shutil.copytree(folder, copy, dirs_exist_ok=True, symlinks=True)
        environment = {**self._environment, **case.environment}
        outcome = run_in_fork(case.words, folder, environment, on_terminal=case.is_watched)
        if self._keep is not None and not outcome.faults and not outcome.is_costly:
            shutil.rmtree(copy)
        return case.kind, outcome
