"""Runs of the library to play, and how a moment of one looks."""

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
"""A variant that no campaign has: its controllers are brokers."""


@cache
def library_run(campaign: str, variant: str | None = None, seed: int = 0) -> RunResult:
    """Return a run of a campaign that ships."""
    (file,) = resolve(campaign)
    plans = load_campaign(file).plans
    if variant == COMBINED:
        return run_plan(combined_quorum(plans[0]), seed)
    (plan,) = (plan for plan in plans if plan.variant == variant)
    return run_plan(plan, seed)


def combined_quorum(plan: Plan) -> Plan:
    """Return a plan in which the controllers of KRaft are brokers."""
    return replace(plan, cluster=replace(plan.cluster, combined=True))


def played(result: RunResult, until_us: int) -> Scene:
    """Return a run as it is after everything up to a time."""
    playback = Playback(result)
    position = sum(event.at_us <= until_us for event in playback.events) - 1
    playback.advance(position)
    return playback.scene(until_us)


def drawn(renderable: RenderableType, *, width: int, colours: bool = False) -> str:
    """Return what a terminal gets, without blanks at the ends of plain lines."""
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
