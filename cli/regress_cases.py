"""A corpus for CI systems: a suite for each entry, with a case for the rule that it is of."""

from collections.abc import Iterable, Iterator

from campaigns.corpus import ERROR, Checked
from campaigns.report import run_id
from campaigns.spelling import run_name
from cli.ci_suite import MS_PER_S, REPRODUCE, Case, Status, Suite, note_suite, problem_suites


def corpus_suites(found: Iterable[Checked], *, interrupted: bool = False) -> list[Suite]:
    """Return the suites of a corpus, with what is to be known of the whole."""
    suites = [suite for item in found for suite in _suites(item)]
    if interrupted:
        suites.append(note_suite("complete", "interrupted: not all entries were run"))
    elif not suites:
        suites.append(note_suite("complete", "there are no entries"))
    return suites


def _suites(item: Checked) -> Iterator[Suite]:
    if item.plan is None or item.plan.found is None or item.outcome == ERROR:
        yield from problem_suites(item.problems)
        return
    found = item.plan.found
    told = f"{item.outcome}: {item.why}"
    properties = [("seed", str(found.seed)), ("status", found.status), ("outcome", item.outcome)]
    properties.append((REPRODUCE, item.reproduce() or ""))
    if item.result is not None:
        properties += [("run_id", run_id(item.result)), ("trace_digest", item.result.trace_digest)]
    case = Case(
        name=found.rule,
        status=Status.PASSED if item.as_recorded else Status.FAILED,
        message=told,
        line=found.line,
        time_s=0.0 if item.result is None else item.result.wall_ms / MS_PER_S,
        properties=tuple(properties),
    )
    yield Suite(
        name=run_name(str(item.file), item.plan.variant),
        file=str(item.file),
        cases=(case,),
        told=told,
        reproduce=item.reproduce() or "",
        properties=(
            ("campaign", item.plan.campaign),
            ("variant", item.plan.variant or ""),
            ("kafka", item.plan.kafka),
        ),
    )
