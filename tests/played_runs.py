"""Runs of the library for playback, and their rendered scenes."""

from dataclasses import replace
from functools import cache
from io import StringIO

from rich.console import Console, RenderableType

from harrow.campaigns.language.library_index import resolve
from harrow.campaigns.language.loader import load_campaign
from harrow.campaigns.language.plan import Plan
from harrow.campaigns.run.run_result import RunResult
from harrow.campaigns.run.runner import run_plan
from harrow.campaigns.story.playback import Playback, Scene

TITLE = "loss-by-hw-truncation, seed 0"
COMBINED = "combined"
"""A variant that no campaign has, with brokers as controllers."""


@cache
def library_run(campaign: str, variant: str | None = None, seed: int = 0) -> RunResult:
    """Return a run of a library campaign."""
    (file,) = resolve(campaign)
    plans = load_campaign(file).plans
    if variant == COMBINED:
        return run_plan(combined_quorum(plans[0]), seed)
    (plan,) = (plan for plan in plans if plan.variant == variant)
    return run_plan(plan, seed)


def combined_quorum(plan: Plan) -> Plan:
    """Return a plan with brokers as the KRaft controllers."""
    return replace(plan, cluster=replace(plan.cluster, combined=True))


def scene_at(result: RunResult, until_us: int) -> Scene:
    """Return the scene after all events of a run up to a time."""
    playback = Playback(result)
    position = sum(event.at_us <= until_us for event in playback.events) - 1
    playback.advance(position)
    return playback.scene(until_us)


def rendered(renderable: RenderableType, *, width: int, colours: bool = False) -> str:
    """Return the output on a terminal, without trailing blanks in plain lines."""
    file = StringIO()
    console = Console(
        file=file,
        width=width,
        height=200,
        force_terminal=colours,
        color_system="standard" if colours else None,
        highlight=False,
        markup=False,
        emoji=False,
        _environ={},
    )
    console.print(renderable)
    text = file.getvalue()
    return text if colours else "".join(f"{line.rstrip()}\n" for line in text.splitlines())
