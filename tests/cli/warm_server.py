"""Imports harrow and builds the models of campaign files before the process forks for commands.

The objects are frozen, so the garbage collectors of the commands do not scan them.
"""

import gc
from importlib import import_module
from pathlib import Path

from harrow.campaigns.language.loader import load_campaign

for _name in (
    "harrow.cli.main",
    "harrow.cli.commands.run",
    "harrow.cli.render.run",
    "harrow.cli.commands.sweep",
    "harrow.campaigns.run.runner",
    "harrow.campaigns.sweep.sweep",
    "harrow.campaigns.sweep.sweep_report",
):
    import_module(_name)
for _campaign in ("standard", "loss-by-hw-truncation"):
    load_campaign(Path(__file__).parents[2] / "campaigns" / "library" / f"{_campaign}.yaml")
gc.collect()
gc.freeze()
