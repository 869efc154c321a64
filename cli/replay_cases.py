"""A replay for CI systems: one case, whether the trace is the recorded one."""

import shlex

from campaigns.replay import Replay, replayed_name
from cli.ci_suite import REPRODUCE, Case, Status, Suite


def replay_suite(found: Replay, told: str) -> Suite:
    """Return the suite of a replay; *told* is what the terminal would show of it."""
    recorded = found.recorded
    reproduce = shlex.join(["harrow", "replay", str(recorded.folder)])
    message = "the same trace as recorded"
    if not found.is_same():
        line = "" if found.difference is None else f" at line {found.difference.position + 1} of trace.jsonl"
        message = f"DIFFERENT from what was recorded{line}"
    case = Case(
        name="trace",
        status=Status.PASSED if found.is_same() else Status.FAILED,
        message=message,
        details=told.strip(),
        properties=(
            ("seed", str(recorded.seed)),
            (REPRODUCE, reproduce),
            ("trace_digest", recorded.trace_digest),
            ("version", recorded.version),
        ),
    )
    return Suite(name=replayed_name(found), cases=(case,), told=message, reproduce=reproduce)
