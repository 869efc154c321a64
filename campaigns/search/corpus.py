"""The corpus of regressions: campaigns that failed once, and whether they still do.

An entry is a campaign with `found`: the rule that broke, the seed, and whether the failure is
known to happen still (``open``) or must not come back (``fixed``). Its `expect` says what it
looks like today.
"""

from collections import Counter, deque
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any, Final, cast

from harrow.campaigns.language.loader import CampaignError, load_campaign, load_text
from harrow.campaigns.language.plan import FIXED as MUST_HOLD
from harrow.campaigns.language.plan import OPEN, Expectation, Found, Plan
from harrow.campaigns.language.plan_file import UnwritablePlanError, campaign_text
from harrow.campaigns.language.problem import Problem
from harrow.campaigns.record.report import anomalies, in_short, reproduce_command
from harrow.campaigns.run.run_result import RunResult
from harrow.campaigns.run.runner import run_plan
from harrow.campaigns.run.workers.parallel_runs import each_by, tried_run
from harrow.campaigns.version import version
from harrow.checks.finding import INCONCLUSIVE, PERMITTED, VIOLATED
from harrow.faults.actions import Expect

SCHEMA: Final = "harrow.regress/1"

STILL_FAILING: Final = "STILL FAILING"
FIXED: Final = "FIXED"
CHANGED: Final = "CHANGED"
ERROR: Final = "ERROR"
OUTCOMES: Final = (STILL_FAILING, FIXED, CHANGED, ERROR)

_SUFFIXES: Final = (".yaml", ".yml")
_HIDDEN: Final = "."
_VALUES_MAX: Final = 20
_FOUND_BY: Final = "Found by harrow"


class NotFailingError(Exception):
    """A campaign that cannot be an entry; the message says why."""


@dataclass(frozen=True, slots=True, kw_only=True)
class EntryResult:
    """How an entry came out; ``problems`` are those of a file that cannot be run.

    ``as_recorded`` says whether that agrees with its status; ``why`` what happened.
    """

    file: Path
    outcome: str
    as_recorded: bool = False
    why: str = ""
    plan: Plan | None = None
    result: RunResult | None = None
    problems: tuple[Problem, ...] = ()

    def reproduce(self) -> str | None:
        """Return the command that runs the entry alone, None where there is no run of it."""
        if self.plan is None or self.plan.found is None:
            return None
        return reproduce_command(str(self.file), self.plan.found.seed, self.plan.variant)


def corpus_files(place: Path) -> list[Path]:
    """Return the campaign files of a folder and of the folders below it, sorted; or the one file.

    Links are followed, hidden files left out. A file or folder that cannot be read is returned as well: without
    it, a corpus with entries that are never run would pass.

    Raises:
        CampaignError: there is no such folder or file.

    """
    if place.is_file():
        return [place]
    if not place.is_dir():
        raise CampaignError([Problem(str(place), 0, 0, "no such file or folder")])
    return sorted(_named_as_campaigns(place, set()))


def _named_as_campaigns(folder: Path, seen: set[Path]) -> Iterator[Path]:
    """Yield what is below a folder; *seen* are those that a link may lead to a second time."""
    if (whole := folder.resolve()) in seen:
        return
    seen.add(whole)
    try:
        entries = sorted(folder.iterdir())
    except OSError:
        yield folder
        return
    for entry in entries:
        if entry.name.startswith(_HIDDEN):
            continue
        if entry.suffix.lower() in _SUFFIXES:
            yield entry
        elif entry.is_dir():
            yield from _named_as_campaigns(entry, seen)


def check_files(
    files: Iterable[Path],
    workers: int = 1,
    run: Callable[[Plan, int, float], RunResult | str] = tried_run,
) -> Generator[EntryResult]:
    """Run the entries of files, one for each variant, on so many workers; yield how they came out, in order.

    Whatever is wrong with a file or a run is an outcome too, and the other entries go on.
    """
    entries: deque[EntryResult | tuple[Path, Plan, Found]] = deque()

    def runs() -> Iterator[tuple[Plan, int]]:
        for file in files:
            for entry in _entries(file):
                entries.append(entry)
                if not isinstance(entry, EntryResult):
                    yield entry[1], entry[2].seed

    results = each_by(run, runs(), workers)
    try:
        while True:
            result = next(results, None)
            while entries and isinstance(entries[0], EntryResult):
                yield cast("EntryResult", entries.popleft())
            if result is None:
                return
            file, plan, found = cast("tuple[Path, Plan, Found]", entries.popleft())
            if isinstance(result, str):
                yield _error(file, plan, found.line, f"the run crashed: {result}")
            else:
                yield entry_result(file, plan, result)
    finally:
        results.close()


def _entries(file: Path) -> Iterator[EntryResult | tuple[Path, Plan, Found]]:
    """Yield the entries of a file that can be run, and what is wrong with the others."""
    try:
        plans = _load(file)
    except CampaignError as error:
        yield EntryResult(file=file, outcome=ERROR, why="the file cannot be read", problems=error.problems)
        return
    for plan in plans:
        if plan.found is None:
            message = (
                "`found` is missing: an entry says which rule was broken, by which version, and its status"
            )
            yield _error(file, plan, 1, message)
        else:
            yield file, plan, plan.found


def entry_result(file: Path, plan: Plan, result: RunResult) -> EntryResult:
    assert plan.found is not None
    outcome, as_recorded, why = _outcome(plan, plan.found, result)
    return EntryResult(file=file, outcome=outcome, as_recorded=as_recorded, why=why, plan=plan, result=result)


def entry_text(plan: Plan, seed: int, name: str | None = None, heading: str = "") -> tuple[str, str]:
    """Return the name and the text of the entry that a failing campaign makes.

    It says all that the run depends on, also what a swarm has drawn, and expects what was seen.
    *heading* is the story above it, as a shrunk campaign has one.

    Raises:
        NotFailingError: the campaign breaks no promise with this seed, or does not do it again.

    """
    result = run_plan(plan, seed)
    violated = _violated(result)
    if result.verdict.status != VIOLATED or not violated:
        reasons = f" ({'; '.join(result.verdict.reasons)})" if result.verdict.reasons else ""
        if result.verdict.status == PERMITTED:
            rule = anomalies(result)[0].rule
            reasons = f"; to hold it against Kafka all the same, `--set 'demand=[{rule}]'`"
        raise NotFailingError(
            f"it does not fail: with seed {seed} the verdict is {result.verdict.status}{reasons}"
        )
    rule = next(anomaly.rule for anomaly in anomalies(result) if anomaly.permitted_by is None)
    name = name or (plan.campaign if plan.variant is None else f"{plan.campaign}-{plan.variant}")
    entry = replace(
        result.plan,
        campaign=name,
        variant=None,
        script=_without_missed(result),
        expect=Expectation(
            verdict=VIOLATED,
            rules=tuple((rule, VIOLATED) for rule in sorted(violated)),
            lost=_values(result, "lost-write"),
            duplicated=_values(result, "duplicate"),
        ),
        found=Found(version=version(), rule=rule, status=OPEN, seed=seed),
    )
    comments = [f"{_FOUND_BY} {version()} with seed {seed}: {in_short(result)}."]
    first, _, rest = heading.partition("\n\n")
    # An entry that is put in again has a heading that says who found it first.
    if story := rest if first.startswith(_FOUND_BY) else heading:
        comments.append(f"\n{story}")
    try:
        text = campaign_text(entry, comments=comments)
    except UnwritablePlanError as error:
        raise NotFailingError(str(error)) from None
    (again,) = load_text(text, f"{name}.yaml").plans
    entry_again = entry_result(Path(f"{name}.yaml"), again, run_plan(again, seed))
    if entry_again.outcome != STILL_FAILING:
        what = f"{entry_again.outcome}, {entry_again.why}"
        raise NotFailingError(f"its failure cannot be written down: as an entry it is {what}")
    return name, text


def regress_document(found: Sequence[EntryResult], *, interrupted: bool = False) -> dict[str, Any]:
    """Return the outcomes as JSON has them; a corpus that was *interrupted* is not as recorded."""
    counts = Counter(item.outcome for item in found)
    return {
        "schema": SCHEMA,
        "version": version(),
        "as_recorded": bool(found) and not interrupted and all(item.as_recorded for item in found),
        "interrupted": interrupted,
        "counts": {outcome: counts[outcome] for outcome in OUTCOMES},
        "entries": [_as_mapping(item) for item in found],
    }


def _load(file: Path) -> tuple[Plan, ...]:
    if file.exists() and not (file.is_file() or file.is_dir()):
        # To open a pipe would be to wait for somebody who writes into it.
        raise CampaignError([Problem(str(file), 0, 0, "cannot be read: it is not a file")])
    try:
        return load_campaign(file).plans
    except CampaignError:
        raise
    except Exception as error:  # a mistake of the loader's is an outcome; the other entries run all the same
        message = f"cannot be read, by a mistake of harrow's: {type(error).__name__}: {error}"
        raise CampaignError([Problem(str(file), 1, 1, message)]) from error


def _error(file: Path, plan: Plan, line: int, message: str) -> EntryResult:
    problem = Problem(str(file), max(line, 1), 1, message)
    return EntryResult(file=file, outcome=ERROR, why=message, plan=plan, problems=(problem,))


def _violated(result: RunResult) -> set[str]:
    return {rule for rule, judged in result.verdict.rules.items() if judged.status == VIOLATED}


def _outcome(plan: Plan, found: Found, result: RunResult) -> tuple[str, bool, str]:
    """Return the outcome, whether it is the recorded one, and what happened."""
    violated = _violated(result)
    expected = dict(plan.expect.rules)
    others = violated - {found.rule} - {rule for rule, status in expected.items() if status == VIOLATED}
    what = in_short(result)
    missed = "; ".join(message.message for message in result.missed)
    judged = result.verdict.rules.get(found.rule)
    if found.rule in violated and found.status == MUST_HOLD:
        return STILL_FAILING, False, f"it is back: {what}"
    if others:
        return CHANGED, False, f"violated as well: {', '.join(sorted(others))}; {what}"
    if found.rule in violated:
        return (CHANGED, False, missed) if missed else (STILL_FAILING, True, what)
    if result.verdict.status == INCONCLUSIVE:
        return CHANGED, False, f"inconclusive: {'; '.join(result.verdict.reasons)}"
    if judged is None or (judged.status == PERMITTED and expected.get(found.rule) != PERMITTED):
        return CHANGED, False, f"{found.rule} is {'not judged' if judged is None else judged.status} now"
    if violated:
        return CHANGED, False, f"{found.rule} is {judged.status}; {what}"
    if found.status == OPEN:
        why = f"{found.rule} is {judged.status}: set `status: fixed`, and `expect` what holds now"
        return FIXED, False, why
    if missed:
        return CHANGED, False, missed
    return FIXED, True, "; ".join(filter(None, (judged.status, what)))


def _without_missed(result: RunResult) -> tuple[Any, ...]:
    """Return the script without the conditions in it that were not met: an entry expects what was seen."""
    lines = {missed.line for missed in result.missed if missed.line}
    return tuple(
        replace(step, actions=tuple(action for action in step.actions if not isinstance(action, Expect)))
        if step.line in lines
        else step
        for step in result.plan.script
    )


def _values(result: RunResult, rule: str) -> tuple[str, ...] | None:
    """Return the values that a rule found something about; None for none, or for too many to read."""
    judged = result.verdict.rules.get(rule)
    values = {str(f.value) for f in judged.findings if f.value is not None} if judged is not None else set()
    return tuple(sorted(values)) if 0 < len(values) <= _VALUES_MAX else None


def _as_mapping(item: EntryResult) -> dict[str, Any]:
    plan, found = item.plan, None if item.plan is None else item.plan.found
    return {
        "file": str(item.file),
        "campaign": None if plan is None else plan.campaign,
        "variant": None if plan is None else plan.variant,
        "outcome": item.outcome,
        "as_recorded": item.as_recorded,
        "why": item.why,
        "found": None
        if found is None
        else {"version": found.version, "rule": found.rule, "seed": found.seed, "status": found.status},
        "verdict": None if item.result is None else item.result.verdict.status,
        "violated": [] if item.result is None else sorted(_violated(item.result)),
        "trace_digest": None if item.result is None else item.result.trace_digest,
        "problems": [asdict(problem) for problem in item.problems],
        "reproduce": item.reproduce(),
    }
