"""What a process does before it is forked for each command: it imports harrow and makes the models
of a campaign file.

All of it stays; frozen, it is not scanned by the garbage collector of every command.
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
