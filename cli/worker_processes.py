"""Starts as many worker processes for a command as `--jobs` allows."""

from typing import TYPE_CHECKING

from harrow.campaigns.run.workers.available_workers import available_workers
from harrow.campaigns.run.workers.workers import Workers
from harrow.cli.console import message_console, say

if TYPE_CHECKING:
    from harrow.cli.requests.advise import AdviseRequest
    from harrow.cli.requests.assess import AssessRequest
    from harrow.cli.requests.failures import RegressRequest, ShrinkRequest
    from harrow.cli.requests.run import RunRequest


def workers_of(
    request: "AdviseRequest | AssessRequest | RunRequest | RegressRequest | ShrinkRequest",
    end_s: float = float("inf"),
) -> Workers:
    """Return as many workers as `--jobs` says; by default, one for each core."""

    def on_lost() -> None:
        say(
            message_console(no_color=request.no_color),
            "a worker process died, perhaps for lack of memory: the remaining runs happen one at a time",
            style="yellow",
        )

    return Workers(request.jobs or available_workers(), end_s=end_s, on_lost=on_lost)
