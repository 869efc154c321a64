"""Finds a recorded run in ``results/`` by its folder or its id, and reads it."""

import atexit
import json
from collections.abc import Mapping
from contextlib import ExitStack
from pathlib import Path
from typing import Any, Final

from harrow.campaigns.language.loader import load_campaign
from harrow.campaigns.language.plan import Plan
from harrow.campaigns.language.problem import FileError, Problem
from harrow.campaigns.language.regular_file import regular_text
from harrow.campaigns.language.seeds import SeedError, check_seed
from harrow.campaigns.language.spelling import counted, quoted
from harrow.campaigns.record.recorded_findings import as_tuples, recorded_rules
from harrow.campaigns.record.recorded_service import RecordedService, recorded_service
from harrow.campaigns.record.results_folder import FILES, LATEST, RUN
from harrow.campaigns.storage.location import LocalLocation, Location, location
from harrow.campaigns.version import name_ending, reads_records_of, version
from harrow.checks.finding import RuleResult
from harrow.cluster_model.lazy_dataclass import dataclass
from harrow.cluster_model.packed_log import digest
from harrow.cluster_model.trace import TraceEvent

TRACE: Final = "trace.jsonl"
CAMPAIGN: Final = "campaign.yaml"
_RUNS_SHOWN: Final = 5

_REQUIRED: Final[tuple[tuple[str, type], ...]] = (
    ("campaign", str),
    ("plan_digest", str),
    ("seed", int),
    ("simulated_ms", int),
    ("trace_digest", str),
    ("verdict", str),
)


_originals: Final[dict[Path, Location]] = {}
"""The runs in shared storage, by the folders of their copies. Errors name the run, not the copy."""


def _original(file: str | Path) -> str:
    """Return a file of a run, or the original if it belongs to a copy."""
    for copy, place in _originals.items():
        if Path(file).is_relative_to(copy):
            part = Path(file).relative_to(copy).as_posix()
            return str(place if part == "." else place / part)
    return str(file)


class RecordError(FileError):
    """A recorded run that is missing or damaged. The problem has the file and the line."""

    def __init__(self, file: str | Path, message: str, line: int = 0, column: int = 1) -> None:
        super().__init__([Problem(_original(file), line, column if line else 0, message)])


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordedEvent:
    """An event of a trace: its time, its name, and its fields by name."""

    at_us: int
    event: str
    fields: Mapping[str, Any]


MODEL: Final = "model"
"""The kind of cluster whose runs depend only on their plan and their seed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordedRun:
    """A recorded run: the contents of ``run.json``, its trace, and its plan as loaded today.

    ``version`` and ``model`` are the version of harrow that recorded the run, and the digest of its
    model. ``processes`` are the names of clients by process in the history; older records lack
    them. ``rules`` are the results of the rules, and ``service`` the service levels, if recorded.
    ``lines`` are the lines of the trace, ``events`` the same as data. ``is_whole`` says whether the
    trace has the digest in ``run.json``. ``target`` is the kind of cluster, such as ``model``.
    """

    folder: Path
    seed: int
    simulated_ms: int
    version: str
    model: str | None
    target: str
    plan_digest: str
    trace_digest: str
    verdict: str
    variant: str | None
    processes: Mapping[int, str]
    rules: Mapping[str, RuleResult]
    service: RecordedService | None
    plan: Plan
    lines: tuple[str, ...]
    events: tuple[RecordedEvent, ...]
    is_whole: bool


def find_run(argument: str, results: Path) -> Path:
    """Return the folder of a run. The argument is a path, ``CAMPAIGN/ID`` or an id in *results*.

    It may also be the URI of a run in shared storage. Then the folder is a copy.

    The start of an id (``1f0c35ab-7``: the digest of the plan, and the seed) is enough if only one
    run has it, or if only one run of this version of harrow has it.

    Raises:
        RecordError: No run has this name, or several have it.

    """
    if not argument:
        raise RecordError("''", "the name of a run is empty")
    try:
        place = location(argument)
        if not isinstance(place, LocalLocation):
            return _copy(place)
    except OSError as error:
        raise RecordError(argument, f"cannot be read: {error.strerror or error}") from None
    for path in (Path(argument), results / argument):
        try:
            if path.is_dir():
                return path
            if path.is_file():
                return _run_of_file(path)
        except (OSError, ValueError) as error:
            reason = getattr(error, "strerror", None) or str(error)
            raise RecordError(argument, f"cannot be read: {reason}") from None
    campaign_name, _, name = argument.rpartition("/")
    candidates = [
        folder
        for campaign in _folders(results)
        if campaign.name != LATEST and campaign_name in ("", campaign.name)
        for folder in _folders(campaign)
        if f"{folder.name}-".startswith(f"{name}-")
    ]
    exact = (name, f"{name}{name_ending()}")
    matches = [folder for folder in candidates if folder.name in exact] or candidates
    if len(matches) > 1:
        raise RecordError(argument, f"several runs have this id: {', '.join(map(str, matches))}")
    if not matches:
        message = (
            f"there is no such folder, and no run in {results} has this id; `harrow run` writes runs there"
        )
        raise RecordError(argument, message)
    return matches[0]


def read_run(folder: Path) -> RecordedRun:
    """Read a recorded run.

    Raises:
        RecordError: a file is missing or damaged, or the version that wrote it is too old.
        CampaignError: Its campaign cannot be read, or is not valid in this version.

    """
    if not any((folder / name).exists() for name in (RUN, TRACE, CAMPAIGN)):
        raise RecordError(folder, f"not the folder of a run: {_runs_in(folder)}")
    run = _read_mapping(folder / RUN)
    recorded = _version(run)
    if not reads_records_of(recorded):
        message = (
            f"recorded by harrow {recorded}, whose runs {version()} cannot read; run its {CAMPAIGN} again"
        )
        raise RecordError(folder / RUN, message)
    lines, events, values = _read_trace(folder / TRACE)
    return RecordedRun(
        folder=folder,
        seed=run["seed"],
        simulated_ms=run["simulated_ms"],
        version=recorded,
        model=run.get("model"),
        target=_target(run.get("target")),
        plan_digest=run["plan_digest"],
        trace_digest=run["trace_digest"],
        verdict=run["verdict"],
        variant=run.get("variant"),
        processes=_processes(run.get("processes")),
        rules=_rules(folder / RUN, run.get("rules")),
        service=recorded_service(run),
        plan=_plan(folder / CAMPAIGN, run),
        lines=lines,
        events=events,
        is_whole=digest(values) == run["trace_digest"],
    )


def _copy(place: Location) -> Path:
    """Copy the files of a run in shared storage to a folder that exists until the program ends."""
    if place.name == LATEST and not place.is_folder():
        place = location(str(place).removesuffix(LATEST) + place.read_text().strip())
    if not (place / RUN).exists():
        raise RecordError(str(place), "not the folder of a run: it has no run.json")
    from harrow.campaigns.temporary_folder import temporary_folder  # noqa: PLC0415 - paths need only Python

    until_exit = ExitStack()
    atexit.register(until_exit.close)
    folder = until_exit.enter_context(temporary_folder())
    for name in place.names():
        if name in FILES:
            (folder / name).write_bytes((place / name).read())
    _originals[folder] = place
    return folder


def _target(target: Any) -> str:
    """Return the kind of cluster; older records have none, and are of the model."""
    kind = target.get("kind") if isinstance(target, dict) else None
    return kind if isinstance(kind, str) else MODEL


def _runs_in(folder: Path) -> str:
    """List the runs in the folder of a campaign. For any other folder, say where runs are."""
    runs = [entry for entry in _folders(folder) if entry.name != LATEST and (entry / RUN).is_file()]
    newest = sorted(runs, key=lambda entry: (entry / RUN).stat().st_mtime_ns, reverse=True)
    if not newest:
        return "it has no run.json; runs are in results/CAMPAIGN/ID"
    shown = [f"{entry} ({_in_short(entry)})" for entry in newest[:_RUNS_SHOWN]]
    more = f", and {len(runs) - len(shown)} more" if len(runs) > len(shown) else ""
    return f"name one of its {counted(len(runs), 'run')}: {', '.join(shown)}{more}"


def _in_short(folder: Path) -> str:
    """Return the variant and the verdict of a run, but not the seed, because its id has it."""
    try:
        run = _read_mapping(folder / RUN)
    except RecordError:
        return "damaged"
    return ", ".join(filter(None, (run.get("variant"), run["verdict"])))


def _run_of_file(path: Path) -> Path:
    """Return the folder of a run from one of its files, or from the file in place of ``latest``."""
    if path.name == LATEST:
        return path.parent / record_text(path).strip()
    if (path.parent / RUN).exists() or path.name in (RUN, TRACE, CAMPAIGN):
        return path.parent
    raise RecordError(path, "not a run: name its folder below results/")


def _folders(path: Path) -> list[Path]:
    return sorted(entry for entry in path.iterdir() if entry.is_dir()) if path.is_dir() else []


def record_text(path: Path, missing: str = "a run cannot be replayed without it") -> str:
    """Return the text of a file of a run.

    Raises:
        RecordError: the file is missing, or cannot be read; *missing* says why it is needed.

    """
    try:
        return regular_text(path)
    except FileNotFoundError:
        raise RecordError(path, f"is missing: {missing}") from None
    except OSError as error:
        raise RecordError(path, f"cannot be read: {error.strerror or error}") from None
    except UnicodeDecodeError as error:
        line = bytes(error.object[: error.start]).count(b"\n") + 1
        raise RecordError(path, "not UTF-8", line) from None


def _read_mapping(path: Path) -> dict[str, Any]:
    text = record_text(path)
    try:
        run = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise _not_json(path, error, 1) from None
    if not isinstance(run, dict):
        raise RecordError(path, "expected the mapping of a run", 1)
    for name, kind in _REQUIRED:
        if name not in run:
            raise RecordError(path, f"`{name}` is missing", 1)
        if not isinstance(run[name], kind) or isinstance(run[name], bool):
            kind_text = "a whole number" if kind is int else "text"
            raise RecordError(path, f"{name}: expected {kind_text}, not {quoted(json.dumps(run[name]))}", 1)
    for name in ("variant", "model"):
        if not isinstance(run.get(name), str | None):
            raise RecordError(path, f"{name}: expected text or null, not {quoted(json.dumps(run[name]))}", 1)
    try:
        check_seed(run["seed"])
    except SeedError as error:
        raise RecordError(path, f"seed: {error}, not {quoted(str(run['seed']))}", 1) from None
    return run


def _not_json(path: Path, error: Exception, line: int) -> RecordError:
    if isinstance(error, json.JSONDecodeError):
        return RecordError(path, f"not JSON: {error.msg}", line + error.lineno - 1, error.colno)
    return RecordError(path, "not JSON that can be read", line)


def _processes(names: Any) -> Mapping[int, str]:
    """Return the clients' names by process. Older records have none."""
    if not isinstance(names, dict):
        return {}
    return {int(process): str(name) for process, name in names.items() if process.isdecimal()}


def _rules(path: Path, rules: Any) -> Mapping[str, RuleResult]:
    try:
        return recorded_rules(rules)
    except (ArithmeticError, AttributeError, LookupError, TypeError, ValueError):
        raise RecordError(path, "rules: the findings of a rule cannot be read", 1) from None


def _version(run: Mapping[str, Any]) -> str:
    """Return the version that made a run. Older records have it only in the run's id."""
    recorded = run.get("version") or "-".join(str(run.get("run_id", "")).split("-")[2:])
    return str(recorded) or "unknown"


def _plan(path: Path, run: Mapping[str, Any]) -> Plan:
    """Return the plan of a run from its campaign file.

    The file may have been written from the plan of a variant, which is then the file's base. So the
    digest counts before the name.
    """
    if not path.is_file():
        raise RecordError(path, "is missing: a run cannot be replayed without it")
    plans = load_campaign(path).plans
    same = [plan for plan in plans if plan.digest() == run["plan_digest"]]
    named = [plan for plan in plans if plan.variant == run.get("variant")]
    return [*same, *named, *plans][0]


def _read_trace(path: Path) -> tuple[tuple[str, ...], tuple[RecordedEvent, ...], list[TraceEvent]]:
    text = record_text(path)
    lines = tuple(text.split("\n"))
    if lines[-1]:
        raise RecordError(path, "the line is cut off", len(lines))
    events: list[RecordedEvent] = []
    values: list[TraceEvent] = []
    for number, line in enumerate(lines[:-1], 1):
        try:
            fields = json.loads(line)
        except (ValueError, RecursionError) as error:
            raise _not_json(path, error, number) from None
        if not isinstance(fields, dict) or list(fields)[:2] != ["at_us", "event"]:
            raise RecordError(path, 'expected an event: {"at_us": ..., "event": ..., ...}', number)
        at_us, name = fields.pop("at_us"), fields.pop("event")
        if type(at_us) is not int or not isinstance(name, str):
            raise RecordError(path, "`at_us` is a whole number and `event` a name", number)
        events.append(RecordedEvent(at_us=at_us, event=name, fields=fields))
        values.append((at_us, name, *map(as_tuples, fields.values())))
    return lines[:-1], tuple(events), values
