"""Writes a shrunk failure as a campaign file, which explains the failure and names its origin."""

import textwrap
from collections.abc import Iterator, Sequence
from typing import Final

from harrow.campaigns.language.plan_file import campaign_text
from harrow.campaigns.language.units import fields_text
from harrow.campaigns.language.yaml_text import VERBATIM_INDENT, WIDTH
from harrow.campaigns.record.phrases import PreventionLine, prevention_lines, timed_sentence
from harrow.campaigns.run.proof import proven
from harrow.campaigns.run.run_result import RunResult
from harrow.campaigns.run.workers.workers import Workers
from harrow.campaigns.search.failure import Failure
from harrow.campaigns.search.shrink import Shrinker, Shrunk
from harrow.campaigns.version import version
from harrow.checks.causes.story import seconds
from harrow.checks.link import Link
from harrow.cluster_model.lazy_dataclass import replace

SHRUNK_BY: Final = "Shrunk by harrow"
"""The beginning of a comment that every shrunk campaign has."""


def shrunk_text(shrinker: Shrinker, command: str) -> str:
    """Return the text of a search's best campaign. *command* runs the original campaign."""
    best = shrinker.best
    sentence = shrinker.failure.sentence(best.result)
    comments = [f"{sentence[:1].upper()}{sentence[1:]}."]
    comments += [f"  {line}" for line in _story(best)]
    comments += prevention_comments(best.result, shrinker.failure, shrinker.workers)
    state = "" if shrinker.complete else ", stopped before nothing more could be left out"
    comments += ["", f"{SHRUNK_BY} {version()}{state} from:", f"    {command}"]
    if best.seed:
        comments += [f"It takes --seed {best.seed} to fail."]
    plan = best.plan
    if best is not shrinker.original:
        expected = shrinker.failure.expectation(best.result)
        word = "Shows" if expected.rules else "Fails"
        plan = replace(plan, description=f"{word}: {sentence}.", expect=expected)
    return campaign_text(plan, comments=comments)


def prevention_comments(result: RunResult, failure: Failure, workers: Workers) -> list[str]:
    """Return comments for a campaign about the remedies of its failure, after trying them."""
    finding = failure.shown_by(proven(result, workers))
    lines = [] if finding is None else list(prevention_lines(finding))
    return ["", *(line for each in lines for line in _prevention_comment(each))] if lines else []


def _prevention_comment(line: PreventionLine) -> list[str]:
    """Return a line about a remedy, wrapped, as comments.

    A command is not wrapped: the campaign file keeps comments with this indent as they are.
    """
    if not line.depth:
        return [f"{line.text[:1].upper()}{line.text[1:]}"]
    indent = VERBATIM_INDENT + "  " * (line.depth - 1)
    width = WIDTH - len(f"# {indent}")
    broken = [line.text] if line.is_command else textwrap.wrap(line.text, width, break_long_words=False)
    return [f"{indent}{part}" for part in broken]


def _story(best: Shrunk) -> Iterator[str]:
    """Yield the story of the finding in order of time, with the faults and the healing."""
    links = best.finding.chain
    narrated = {(link.at_us, link.broker) for link in links if link.event in ("stopped", "paused")}
    events = [
        (fault.at_us, f"{seconds(fault.at_us)} {fault.fault} strikes ({fields_text(fault.details)})")
        for fault in best.result.faults
        if (fault.at_us, dict(fault.details).get("broker")) not in narrated
    ]
    healed_us = max([best.plan.duration_us, *(step.at_us or 0 for step in best.plan.script)])
    if all(step.at_us is not None for step in best.plan.script):
        events.append((healed_us, f"{seconds(healed_us)} the cluster is healed"))
    for place, link in enumerate(links):
        while events and _comes_before(events[0][0], links[place:]):
            yield events.pop(0)[1]
        yield timed_sentence(link)


def _comes_before(at_us: int, links: Sequence[Link]) -> bool:
    """Return whether a fault or the healing comes before the rest of the story.

    At the same time as a link about a stopped broker, it comes after that link.
    """
    begin_us = links[0].at_us
    stops = any(link.event == "stopped" and link.at_us == at_us for link in links)
    return begin_us is not None and (at_us < begin_us or (at_us == begin_us and not stops))
