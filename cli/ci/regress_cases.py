"""A corpus for CI systems, with a suite for each entry and a case for its rule."""

from collections.abc import Iterable

from harrow.campaigns.language.spelling import run_name
from harrow.campaigns.record.report import run_id
from harrow.campaigns.search.corpus import ERROR, EntryResult
from harrow.cli.ci.suite import MS_PER_S, REPRODUCE, Case, Status, Suite, note_suite, problem_suites


def corpus_suites(entries: Iterable[EntryResult], *, interrupted: bool = False) -> list[Suite]:
    """Return the suites of a corpus, and one about the whole if it is incomplete."""
    suites = [suite for item in entries for suite in _suites(item)]
    if interrupted:
        suites.append(note_suite("complete", "interrupted: not all entries ran"))
    elif not suites:
        suites.append(note_suite("complete", "there are no entries"))
    return suites


def _suites(item: EntryResult) -> list[Suite]:
    if item.plan is None or item.plan.found is None or item.outcome == ERROR:
        return problem_suites(item.problems)
    plan, recorded = item.plan, item.plan.found
    summary, reproduce = f"{item.outcome}: {item.why}", item.reproduce() or ""
    properties = [("seed", str(recorded.seed)), ("status", recorded.status), ("outcome", item.outcome)]
    properties.append((REPRODUCE, reproduce))
    if item.result is not None:
        properties += [("run_id", run_id(item.result)), ("trace_digest", item.result.trace_digest)]
    case = Case(
        name=recorded.rule,
        status=Status.PASSED if item.as_recorded else Status.FAILED,
        message=summary,
        line=recorded.line,
        time_s=0.0 if item.result is None else item.result.wall_ms / MS_PER_S,
        properties=tuple(properties),
    )
    return [
        Suite(
            name=run_name(str(item.file), plan.variant),
            file=str(item.file),
            cases=(case,),
            summary=summary,
            reproduce=reproduce,
            properties=(("campaign", plan.campaign), ("variant", plan.variant or ""), ("kafka", plan.kafka)),
        )
    ]
