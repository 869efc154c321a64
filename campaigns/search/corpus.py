"""The corpus of regressions: campaigns that failed once, and a check whether they still fail.

An entry is a campaign with `found`: the broken rule, the seed, and a status. With the status
``open``, the failure is known to happen still. With ``fixed``, it must not come back. `expect`
describes how the run ends today.
"""

import shlex
from collections import Counter, deque
from collections.abc import Generator, Iterable, Iterator, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any, Final, cast

from harrow.campaigns.language.loader import READ_MAX, CampaignError, decoded, load_campaign, load_text
from harrow.campaigns.language.plan import FIXED as MUST_HOLD
from harrow.campaigns.language.plan import OPEN, Expectation, Origin, Plan
from harrow.campaigns.language.plan_file import UnwritablePlanError, campaign_text
from harrow.campaigns.language.problem import Problem
from harrow.campaigns.record.report import anomalies, in_short, reproduce_command
from harrow.campaigns.run.run_result import RunResult
from harrow.campaigns.run.runner import run_plan
from harrow.campaigns.run.workers.parallel_runs import tried_run
from harrow.campaigns.run.workers.workers import RunOne, Workers, each_by
from harrow.campaigns.storage.location import Location
from harrow.campaigns.version import version
from harrow.checks.finding import INCONCLUSIVE, PERMITTED, VIOLATED
from harrow.cluster_model.lazy_dataclass import dataclass, replace
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


CorpusFile = Path | Location
"""A file by its path, or a file in shared storage."""


class NotFailingError(Exception):
    """A campaign cannot become an entry. The message says why."""


@dataclass(frozen=True, slots=True, kw_only=True)
class EntryResult:
    """The outcome of an entry. ``problems`` tell why an entry cannot run.

    ``as_recorded`` tells whether the outcome agrees with the entry's status, and ``why`` tells what
    happened.
    """

    file: CorpusFile
    outcome: str
    as_recorded: bool = False
    why: str = ""
    plan: Plan | None = None
    result: RunResult | None = None
    problems: tuple[Problem, ...] = ()

    def reproduce(self) -> str | None:
        """Return the command that runs only this entry, None if it did not run."""
        if self.plan is None or self.plan.found is None:
            return None
        if isinstance(self.file, Location):
            return shlex.join(["harrow", "regress", str(self.file)])
        return reproduce_command(str(self.file), self.plan.found.seed, self.plan.variant)


def corpus_files(place: Path) -> list[Path]:
    """Return the campaign files in a folder and its subfolders, sorted. *place* may also be a file.

    Links are followed, and hidden files are left out. An unreadable file or folder is returned too,
    so that the check of the corpus fails: it would otherwise pass without having run all entries.

    Raises:
        CampaignError: The folder or file does not exist.

    """
    if place.is_file():
        return [place]
    if not place.is_dir():
        raise CampaignError([Problem(str(place), 0, 0, "no such file or folder")])
    return sorted(_campaign_files(place, set()))


def stored_corpus_files(place: Location) -> list[Location]:
    """Return the campaign files of a corpus in shared storage, sorted. *place* may also be a file.

    Raises:
        CampaignError: There is no such folder or file, or it cannot be read.

    """
    try:
        names = [
            name
            for name in place.names()
            if name.lower().endswith(_SUFFIXES)
            and not any(part.startswith(_HIDDEN) for part in name.split("/"))
        ]
        if not names and not place.exists():
            raise CampaignError([Problem(str(place), 0, 0, "no such file or folder")])
        return [place / name for name in names] if place.is_folder() else [place]
    except OSError as error:
        reason = f"cannot be read: {error.strerror or error}"
        raise CampaignError([Problem(str(place), 0, 0, reason)]) from None


def _campaign_files(folder: Path, visited: set[Path]) -> Iterator[Path]:
    """Yield the campaign files below a folder.

    *visited* are folders that a link could lead to again.
    """
    if (resolved := folder.resolve()) in visited:
        return
    visited.add(resolved)
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
            yield from _campaign_files(entry, visited)


def check_files(
    files: Iterable[CorpusFile],
    workers: Workers | None = None,
    run: RunOne[RunResult | str] = tried_run,
) -> Generator[EntryResult]:
    """Run the entries of files, and yield their outcomes in order. Each variant is an entry.

    An error in a file or a run is an outcome too, and the other entries still run.
    """
    entries: deque[EntryResult | tuple[CorpusFile, Plan, Origin]] = deque()

    def runs() -> Iterator[tuple[Plan, int]]:
        for file in files:
            for entry in _entries(file):
                entries.append(entry)
                if not isinstance(entry, EntryResult):
                    yield entry[1], entry[2].seed

    results = each_by(run, runs(), workers or Workers())
    try:
        while True:
            result = next(results, None)
            while entries and isinstance(entries[0], EntryResult):
                yield cast("EntryResult", entries.popleft())
            if result is None:
                return
            file, plan, failure = cast("tuple[CorpusFile, Plan, Origin]", entries.popleft())
            if isinstance(result, str):
                yield _error(file, plan, failure.line, f"the run crashed: {result}")
            else:
                yield entry_result(file, plan, result)
    finally:
        results.close()


def _entries(file: CorpusFile) -> Iterator[EntryResult | tuple[CorpusFile, Plan, Origin]]:
    """Yield the entries of a file, and the outcomes of those that cannot run."""
    try:
        plans = _load(file)
    except CampaignError as error:
        yield EntryResult(file=file, outcome=ERROR, why="the file cannot be read", problems=error.problems)
        return
    for plan in plans:
        if plan.found is None:
            message = (
                "`found` is missing: an entry needs the broken rule, the version that found it, and a status"
            )
            yield _error(file, plan, 1, message)
        else:
            yield file, plan, plan.found


def entry_result(file: CorpusFile, plan: Plan, result: RunResult) -> EntryResult:
    assert plan.found is not None
    outcome, as_recorded, why = _outcome(plan, plan.found, result)
    return EntryResult(file=file, outcome=outcome, as_recorded=as_recorded, why=why, plan=plan, result=result)


def entry_text(plan: Plan, seed: int, name: str | None = None, heading: str = "") -> tuple[str, str]:
    """Return the name and the text of the entry for a failing campaign.

    The text has everything that the run depends on, including what a swarm drew, and expects the
    run's outcome. *heading* is the comment at the top of the campaign, as `harrow shrink` writes.

    Raises:
        NotFailingError: The campaign, or the entry made from it, breaks no promise with this seed.

    """
    result = run_plan(plan, seed)
    violated = _violated(result)
    if result.verdict.status != VIOLATED or not violated:
        reasons = f" ({'; '.join(result.verdict.reasons)})" if result.verdict.reasons else ""
        if result.verdict.status == PERMITTED:
            rule = anomalies(result)[0].rule
            reasons = f"; to demand {rule} anyway, use `--set 'demand=[{rule}]'`"
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
        found=Origin(version=version(), rule=rule, status=OPEN, seed=seed),
    )
    comments = [f"{_FOUND_BY} {version()} with seed {seed}: {in_short(result)}."]
    first, _, rest = heading.partition("\n\n")
    # The heading of an existing entry already says which version found the failure.
    if story := rest if first.startswith(_FOUND_BY) else heading:
        comments.append(f"\n{story}")
    try:
        text = campaign_text(entry, comments=comments)
    except UnwritablePlanError as error:
        raise NotFailingError(str(error)) from None
    (entry_plan,) = load_text(text, f"{name}.yaml").plans
    repeated = entry_result(Path(f"{name}.yaml"), entry_plan, run_plan(entry_plan, seed))
    if repeated.outcome != STILL_FAILING:
        outcome = f"{repeated.outcome}, {repeated.why}"
        raise NotFailingError(f"its failure does not repeat as an entry: {outcome}")
    return name, text


def regress_document(results: Sequence[EntryResult], *, interrupted: bool = False) -> dict[str, Any]:
    """Return the outcomes as JSON. After an *interrupted* check, ``as_recorded`` is false."""
    counts = Counter(item.outcome for item in results)
    return {
        "schema": SCHEMA,
        "version": version(),
        "as_recorded": bool(results) and not interrupted and all(item.as_recorded for item in results),
        "interrupted": interrupted,
        "counts": {outcome: counts[outcome] for outcome in OUTCOMES},
        "entries": [_as_mapping(item) for item in results],
    }


def _load(file: CorpusFile) -> tuple[Plan, ...]:
    if isinstance(file, Path) and file.exists() and not (file.is_file() or file.is_dir()):
        # To open a pipe would block until a process writes to it.
        raise CampaignError([Problem(str(file), 0, 0, "cannot be read: it is not a file")])
    try:
        return load_campaign(file).plans if isinstance(file, Path) else _load_stored(file)
    except CampaignError:
        raise
    except Exception as error:  # A bug in the loader is an outcome, and the other entries still run.
        message = f"cannot be read because of a bug in harrow: {type(error).__name__}: {error}"
        raise CampaignError([Problem(str(file), 1, 1, message)]) from error


def _load_stored(file: Location) -> tuple[Plan, ...]:
    try:
        with file.open() as stream:
            content = stream.read(READ_MAX)
    except OSError as error:
        raise CampaignError(
            [Problem(str(file), 0, 0, f"cannot be read: {error.strerror or error}")]
        ) from None
    return load_text(decoded(content, str(file)), str(file)).plans


def _error(file: CorpusFile, plan: Plan, line: int, message: str) -> EntryResult:
    problem = Problem(str(file), max(line, 1), 1, message)
    return EntryResult(file=file, outcome=ERROR, why=message, plan=plan, problems=(problem,))


def _violated(result: RunResult) -> set[str]:
    return {rule for rule, judged in result.verdict.rules.items() if judged.status == VIOLATED}


def _outcome(plan: Plan, failure: Origin, result: RunResult) -> tuple[str, bool, str]:
    """Return the outcome, whether it is the recorded one, and what happened."""
    violated = _violated(result)
    expected = dict(plan.expect.rules)
    others = violated - {failure.rule} - {rule for rule, status in expected.items() if status == VIOLATED}
    summary = in_short(result)
    missed = "; ".join(message.message for message in result.missed)
    judged = result.verdict.rules.get(failure.rule)
    if failure.rule in violated and failure.status == MUST_HOLD:
        return STILL_FAILING, False, f"it is back: {summary}"
    if others:
        return CHANGED, False, f"also violated: {', '.join(sorted(others))}; {summary}"
    if failure.rule in violated:
        return (CHANGED, False, missed) if missed else (STILL_FAILING, True, summary)
    if result.verdict.status == INCONCLUSIVE:
        return CHANGED, False, f"inconclusive: {'; '.join(result.verdict.reasons)}"
    if judged is None or (judged.status == PERMITTED and expected.get(failure.rule) != PERMITTED):
        return CHANGED, False, f"{failure.rule} is {'not judged' if judged is None else judged.status} now"
    if violated:
        return CHANGED, False, f"{failure.rule} is {judged.status}; {summary}"
    if failure.status == OPEN:
        why = f"{failure.rule} is {judged.status}: set `status: fixed`, and let `expect` match"
        return FIXED, False, why
    if missed:
        return CHANGED, False, missed
    return FIXED, True, "; ".join(filter(None, (judged.status, summary)))


def _without_missed(result: RunResult) -> tuple[Any, ...]:
    """Return the script without missed expectations: an entry expects the run as it is."""
    lines = {missed.line for missed in result.missed if missed.line}
    return tuple(
        replace(step, actions=tuple(action for action in step.actions if not isinstance(action, Expect)))
        if step.line in lines
        else step
        for step in result.plan.script
    )


def _values(result: RunResult, rule: str) -> tuple[str, ...] | None:
    """Return the values in a rule's findings. Return None if there are none, or too many."""
    judged = result.verdict.rules.get(rule)
    values = {str(f.value) for f in judged.findings if f.value is not None} if judged is not None else set()
    return tuple(sorted(values)) if 0 < len(values) <= _VALUES_MAX else None


def _as_mapping(item: EntryResult) -> dict[str, Any]:
    plan, failure = item.plan, None if item.plan is None else item.plan.found
    return {
        "file": str(item.file),
        "campaign": None if plan is None else plan.campaign,
        "variant": None if plan is None else plan.variant,
        "outcome": item.outcome,
        "as_recorded": item.as_recorded,
        "why": item.why,
        "found": None
        if failure is None
        else {
            "version": failure.version,
            "rule": failure.rule,
            "seed": failure.seed,
            "status": failure.status,
        },
        "verdict": None if item.result is None else item.result.verdict.status,
        "violated": [] if item.result is None else sorted(_violated(item.result)),
        "trace_digest": None if item.result is None else item.result.trace_digest,
        "problems": [asdict(problem) for problem in item.problems],
        "reproduce": item.reproduce(),
    }
