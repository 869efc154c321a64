"""Starts as many worker processes for a command as `--jobs` allows, or lets Spark do their work."""

from typing import TYPE_CHECKING

from harrow.campaigns.run.workers.available_workers import available_workers
from harrow.campaigns.run.workers.workers import RunPool, Workers
from harrow.cli.console import message_console, say

if TYPE_CHECKING:
    from harrow.cli.requests.advise import AdviseRequest
    from harrow.cli.requests.assess import AssessRequest
    from harrow.cli.requests.failures import RegressRequest, ShrinkRequest
    from harrow.cli.requests.run import RunRequest


def workers_of(
    request: "AdviseRequest | AssessRequest | RunRequest | RegressRequest | ShrinkRequest",
    end_s: float = float("inf"),
    pool: RunPool | None = None,
    pool_size: int = 0,
) -> Workers:
    """Return as many workers as `--jobs` says; by default, one for each core.

    With a *pool*, return that pool's workers.
    """

    def on_lost() -> None:
        lost = "a worker process died, perhaps for lack of memory" if pool is None else "Spark lost a run"
        message = f"{lost}: the remaining runs happen one at a time"
        say(message_console(no_color=request.no_color), message, style="yellow")

    count = pool_size or request.jobs or available_workers()
    return Workers(count, pool=pool, end_s=end_s, on_lost=on_lost)
