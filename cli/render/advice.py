"""Renders advice on the settings of a cluster for a terminal."""

from collections.abc import Iterator, Sequence
from typing import Final

from rich.console import Console, RenderableType

from harrow.campaigns.advise.advice import Advice, Cheaper, ModelEvidence, RefutingRun, ReleaseTrial, Settings
from harrow.campaigns.advise.advice_by_release import AdviceByRelease
from harrow.campaigns.language.literals import duration_text
from harrow.campaigns.language.spelling import counted, listed, printable
from harrow.campaigns.language.units import rough_duration_text
from harrow.checks.finding import HELD, INCONCLUSIVE, VIOLATED
from harrow.cli.console import show, unbroken
from harrow.cli.render.figures import grouped, percent
from harrow.cli.render.layout import DIM, FAILED, STYLES, columns, indented, marks, terms
from harrow.cli.text import Text
from harrow.cluster_model.topology import CONTROL_PLANES

_BOLD: Final = "bold"
_NONE: Final = "-"


def show_advice(console: Console, advice: Advice) -> None:
    show(console, *_question(advice), Text(), *_yours(console, advice), Text())
    if advice.advised is None:
        show(console, *_nothing_survives(console, advice))
    else:
        show(console, *_advised(console, advice, advice.advised))
        if advice.cheaper:
            show(console, Text(), Text("With one setting changed", _BOLD))
            for each in advice.cheaper:
                show(console, *_cheaper(console, each))
    if advice.on_release is not None:
        show(console, Text(), *_release(console, advice.on_release))
    show(console, Text(), Text(f"{_runs(advice.runs)}; tried: {_tried(advice)}", DIM))


def show_advice_by_release(console: Console, answer: AdviceByRelease) -> None:
    """Print where the answers differ, and then the advice on each release."""
    differences = answer.differences()
    if differences:
        releases = [advice.kafka for advice in answer.advices]
        table = columns("what the release changes", *releases)
        for what, by_release in differences.items():
            table.add_row(what, *(printable(by_release.get(release, _NONE)) for release in releases))
        show(console, table)
    else:
        show(console, Text("The answer is the same on each release", _BOLD))
    for advice in answer.advices:
        show(console, Text())
        show_advice(console, advice)


def _question(advice: Advice) -> Iterator[RenderableType]:
    plane = CONTROL_PLANES[advice.metadata]
    yield Text(f"{printable(advice.heading)}: Kafka {advice.kafka} with {plane}", _BOLD)
    yield Text(f"to survive: {'; '.join(map(printable, advice.titles))}")
    bound = ""
    if advice.needs.outage is not None:
        comparison, limit_us = advice.needs.outage
        bound = f"outages {comparison} {duration_text(limit_us)}"
    never = f"never {' or '.join(advice.needs.never)}" if advice.needs.never else ""
    yield Text(f"in every run: {'; '.join(filter(None, (never, bound)))}")


def _yours(console: Console, advice: Advice) -> Iterator[RenderableType]:
    yours = advice.yours
    if yours.unfit:
        yield _headline(console, VIOLATED, "A fault model does not run with your settings")
        yield indented(Text(printable(yours.unfit), FAILED), 2)
    elif yours.refuted_by is not None:
        yield _headline(console, VIOLATED, "Your settings do not survive")
        yield from _refutation(yours.refuted_by)
    elif yours.permitted_by is not None:
        yield _unpromised(console, "Your settings", yours.permitted_by)
        yield from _evidence(yours.evidence)
    elif not advice.complete and yours != advice.advised:
        yield _headline(console, INCONCLUSIVE, "Your settings are not refuted so far")
        yield from _evidence(yours.evidence)
    elif not yours.is_decided:
        yield _headline(console, INCONCLUSIVE, "Your settings were not decided")
        yield from _undecided(yours)
    else:
        yield _headline(console, HELD, "Your settings survive")
        if yours != advice.advised:
            yield from _evidence(yours.evidence)


def _advised(console: Console, advice: Advice, advised: Settings) -> Iterator[RenderableType]:
    if not advice.complete:
        yield _headline(console, INCONCLUSIVE, "Settings that have survived so far")
    elif advised.options:
        yield _headline(console, HELD, "The cheapest settings that survive")
    else:
        yield _headline(console, HELD, "No settings that cost less survive: keep yours")
    if advised.options:
        for place in dict.fromkeys(line.place for line in advised.lines):
            yield indented(Text(printable(place)), 2)
            for line in (line for line in advised.lines if line.place == place):
                if line.before:
                    yield indented(Text(f"- {printable(line.before)}", "red"), 4)
                yield indented(Text(f"+ {printable(line.text)}", "green"), 4)
    yield from _evidence(advised.evidence)
    yield indented(_costs(advice.yours, advised), 2)


def _costs(yours: Settings, advised: Settings) -> RenderableType:
    both = {"yours": yours.costs, **({"advised": advised.costs} if advised.options else {})}
    measured = {name: costs for name, costs in both.items() if costs is not None}
    shown = measured.values()
    table = columns("measured", *measured)
    table.add_row("copies of a record", *(_copies(costs.copies) for costs in shown))
    table.add_row("ack latency p50", *(_time(costs.ack_p50_us) for costs in shown))
    table.add_row("ack latency p99", *(_time(costs.ack_p99_us) for costs in shown))
    table.add_row("longest outage", *(_time(costs.outage_us) for costs in shown))
    return table


def _copies(thousandths: int | None) -> str:
    return _NONE if thousandths is None else f"{thousandths / 1_000:.3g}"


def _time(us: int | None) -> str:
    return rough_duration_text(us) if us else _NONE


def _cheaper(console: Console, each: Cheaper) -> Iterator[RenderableType]:
    settings = each.settings
    name = f"{each.axis}={each.value.words()}"
    if settings.refuted_by is not None and not settings.options:
        # These are the user's own settings.
        yield _headline(console, VIOLATED, f"{name} does not survive, as above")
    elif settings.refuted_by is not None:
        yield _headline(console, VIOLATED, f"{name} does not survive")
        yield from _refutation(settings.refuted_by)
    elif settings.permitted_by is not None:
        yield _unpromised(console, name, settings.permitted_by)
        yield from _evidence(settings.evidence)
    elif not settings.is_decided:
        yield _headline(console, INCONCLUSIVE, f"{name} was not decided")
        yield from _undecided(settings)
    else:
        yield _headline(console, HELD, f"{name} survives as well, and measured costs are no lower")
        yield from _evidence(settings.evidence)


def _release(console: Console, tried: ReleaseTrial) -> Iterator[RenderableType]:
    if tried.refuted_by is not None:
        yield _headline(console, VIOLATED, f"Your settings do not survive on Kafka {tried.kafka} either")
        yield from _refutation(tried.refuted_by)
    else:
        yield _headline(console, HELD, f"Your settings survive on Kafka {tried.kafka}")
        yield from _evidence(tried.evidence)
        yield unbroken(Text(f"    {printable(tried.command)}", DIM))


def _nothing_survives(console: Console, advice: Advice) -> Iterator[RenderableType]:
    strongest = advice.strongest
    if strongest is None:
        yield _headline(console, INCONCLUSIVE, "No settings have survived so far")
        return
    if strongest.refuted_by is None:
        yield _headline(console, INCONCLUSIVE, "No settings were shown to survive")
        yield from _undecided(strongest)
        return
    yield _headline(console, VIOLATED, _no_survivor(advice.changeable))
    yield indented(Text(", ".join(f"{name}={value.words()}" for name, value in strongest.values)), 2)
    yield from _refutation(strongest.refuted_by)


def _no_survivor(changeable: Sequence[str]) -> str:
    if not changeable:
        return "Nothing survives, not even the strongest settings"
    if len(changeable) == 1:
        return f"No value of {listed(changeable)} survives"
    return f"No values of {listed(changeable)} survive"


def _unpromised(console: Console, name: str, setting: str) -> RenderableType:
    with_it = "this" if name == setting else setting
    return _headline(console, INCONCLUSIVE, f"{name}: not refuted, but Kafka promises nothing with {with_it}")


def _headline(console: Console, status: str, text: str) -> RenderableType:
    return terms([(Text(marks(console)[status], STYLES[status]), Text(printable(text), _BOLD))], gap=1)


def _refutation(refuted: RefutingRun) -> Iterator[RenderableType]:
    yield indented(Text(f"{printable(refuted.title)}: {printable(refuted.harm.sentence)}", FAILED), 2)
    # Users copy this line, so it is neither wrapped nor cut off.
    yield unbroken(Text(f"    {printable(refuted.command)}", DIM))
    if refuted.shrunk is not None:
        shrunk = refuted.shrunk
        size = f"{counted(shrunk.faults, 'fault')} and {counted(shrunk.records, 'record')}"
        yield indented(Text(f"shrunk to {size}:"), 2)
        yield unbroken(Text(f"    {printable(shrunk.command)}", DIM))


def _evidence(evidence: Sequence[ModelEvidence]) -> Iterator[RenderableType]:
    for each in evidence:
        if each.counted:
            bound = f"below {percent(each.bound)} of runs, with 95% confidence"
            yield indented(
                Text(
                    f"{printable(each.title)}: not refuted in {_runs(each.counted)}: {bound}{_left_out(each)}"
                ),
                2,
            )


def _runs(count: int) -> str:
    return f"{grouped(count)} {'run' if count == 1 else 'runs'}"


def _left_out(each: ModelEvidence) -> str:
    count = each.tried - each.counted
    return f" ({counted(count, 'more run')} decided nothing: {printable(each.why_not)})" if count else ""


def _undecided(settings: Settings) -> Iterator[RenderableType]:
    for each in settings.evidence:
        if 2 * each.counted <= each.tried:
            text = f"{printable(each.title)}: {each.tried - each.counted} of {counted(each.tried, 'run')} decided nothing: {printable(each.why_not)}"
            yield indented(Text(text), 2)


def _tried(advice: Advice) -> str:
    return listed([name for name, _ in advice.axes]) or "nothing"
