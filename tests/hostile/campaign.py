"""Tries cases one after the other, in processes that are forked from this one."""

import gc
import json
import shutil
from importlib import import_module
from pathlib import Path

from tests.hostile.cases import CAMPAIGN, SWEEP, Cases
from tests.hostile.fake_broker import FakeBroker
from tests.hostile.trial import Outcome, tried
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
    *("harrow.live_cluster.users.users_brokers", "harrow.live_cluster.users.users_campaign"),
    *("harrow.campaigns.sweep.sweep", "harrow.campaigns.sweep.sweep_report", "harrow.cli.commands.sweep"),
)


class Campaign:
    """Makes what cases begin with, and tries them in a *folder*; those that go wrong are kept in *keep*."""

    def __init__(self, folder: Path, keep: Path | None = None) -> None:
        for name in _WARM:
            import_module(name)
        self._folder = folder
        self._keep = keep
        self._environment = {
            **plain_environment(),
            "PYTHONPATH": PYTHONPATH,
            "HARROW_STATE": str(folder / "state"),
        }
        whole = folder / "whole"
        whole.mkdir()
        (whole / "small.yaml").write_text(json.dumps(CAMPAIGN), encoding="utf-8")
        run = ("run", "small.yaml", "--variant", "base", "--seed", "1", "-j", "1")
        for words in (run, (*SWEEP, "--out", "results/sweep")):
            made = tried(words, whole, self._environment)
            assert made.code in (0, 1), made
        (made_run,) = [
            path
            for path in (whole / "results" / "small").iterdir()
            if path.is_dir() and not path.is_symlink()
        ]
        made_run.rename(made_run.with_name("run"))
        self._cases = Cases(whole, FakeBroker())
        gc.collect()
        gc.freeze()

    def tried(self, number: int) -> tuple[str, Outcome]:
        """Try the case with a number, and return its kind and how it ended."""
        folder = self._folder / "case"
        for path in (folder, self._folder / "case.streams"):
            shutil.rmtree(path, ignore_errors=True)
        folder.mkdir()
        case = self._cases.made(number, folder)
        if self._keep is not None:
            kept = self._keep / str(number)
            shutil.copytree(folder, kept, dirs_exist_ok=True, symlinks=True)
        environment = {**self._environment, **case.environment}
        outcome = tried(case.words, folder, environment, on_terminal=case.is_watched)
        if self._keep is not None and not outcome.faults and not outcome.is_costly:
            shutil.rmtree(kept)
        return case.kind, outcome
