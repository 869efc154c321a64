"""Advises on the settings of a cluster: the cheapest that survive, and why no cheaper ones do."""

from collections.abc import Callable, Sequence
from dataclasses import field
from functools import partial
from typing import Any, Final

from harrow.campaigns.advise.axes import AXES
from harrow.campaigns.advise.axis import Axis, Level, Line
from harrow.campaigns.advise.counter_example import Shrinking, ShrunkRun, write_shrunk
from harrow.campaigns.advise.harm import Harm, Needs
from harrow.campaigns.advise.later_release import LaterRelease, later_release
from harrow.campaigns.advise.lattice import Lattice, Point, lattice_of
from harrow.campaigns.advise.search import CounterExample, LatticeSearch
from harrow.campaigns.advise.trial import PointCosts, PointTally
from harrow.campaigns.assess.fault_model import FaultModel
from harrow.campaigns.language.library_index import resolve
from harrow.campaigns.language.loader import load_campaign
from harrow.campaigns.language.plan import Expectation, Plan
from harrow.campaigns.language.problem import CampaignError
from harrow.campaigns.language.units import milliseconds
from harrow.campaigns.record.report import reproduce_command
from harrow.campaigns.run.service import expectation_of
from harrow.campaigns.run.workers.workers import Workers
from harrow.campaigns.sweep.confidence import bound_without_hits
from harrow.campaigns.version import version
from harrow.cluster_model.lazy_dataclass import dataclass, replace

SCHEMA: Final = "harrow.advice/2"
SCREENING_RUNS: Final = 20
"""How many runs of each fault model a point is tried with before its costs are compared."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RefutingRun:
    """A run that shows harm, the command that repeats it, and what is left of it when shrunk."""

    title: str
    seed: int
    harm: Harm
    command: str
    shrunk: ShrunkRun | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelEvidence:
    """The trials of one fault model: ``counted`` of them showed something, and none showed harm."""

    title: str
    tried: int
    counted: int
    why_not: str

    @property
    def bound(self) -> float:
        """The rate of runs with harm that these trials exclude, with 95% confidence."""
        return bound_without_hits(self.counted)


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """A point of the lattice in words, and what its trials showed.

    ``lines`` are the changes to the user's files, ``options`` the same as arguments of ``--set``.
    ``permitted_by`` is the setting that permits harm whatever happens. ``costs`` is None if they
    were not compared. ``unfit`` says why a fault model cannot run with the settings.
    """

    values: tuple[tuple[str, Level], ...]
    lines: tuple[Line, ...]
    options: tuple[str, ...]
    costs: PointCosts | None
    evidence: tuple[ModelEvidence, ...]
    refuted_by: RefutingRun | None = None
    permitted_by: str | None = None
    unfit: str = ""

    @property
    def is_decided(self) -> bool:
        """Whether most of the trials showed something."""
        return all(2 * each.counted > each.tried for each in self.evidence)


@dataclass(frozen=True, slots=True, kw_only=True)
class Cheaper:
    """Settings that differ from the advised ones in one, which is cheaper."""

    axis: str
    value: Level
    settings: Settings


@dataclass(frozen=True, slots=True, kw_only=True)
class ReleaseTrial:
    """What the user's settings did on a later release.

    ``refuted_by`` is None if they survived. Then ``command`` shows that: it repeats on that release
    the run that refutes them on the user's.
    """

    kafka: str
    evidence: tuple[ModelEvidence, ...]
    refuted_by: RefutingRun | None
    command: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Advice:
    """The answer for a cluster. Without ``advised`` settings nothing survives.

    ``cluster`` is the name of its file. If that file was imported, ``source`` names the user's.
    ``yours`` are the user's settings, and ``strongest`` the safest that were tried, if nothing
    survives. ``changeable`` are the only settings that may change, empty if all may. If the user's
    settings do not survive, ``on_release`` says whether they would on a later release. The answer
    is not ``complete`` if the user interrupted it: then it has what the runs until then showed.
    """

    cluster: str
    kafka: str
    metadata: str
    titles: tuple[str, ...]
    needs: Needs
    changeable: tuple[str, ...]
    yours: Settings
    advised: Settings | None
    cheaper: tuple[Cheaper, ...]
    strongest: Settings | None
    on_release: ReleaseTrial | None
    axes: tuple[tuple[str, tuple[str, ...]], ...]
    runs: int
    complete: bool
    source: str = ""

    @property
    def heading(self) -> str:
        return self.source or self.cluster

    def as_mapping(self) -> dict[str, Any]:
        """Return the advice as JSON."""
        return {
            "schema": SCHEMA,
            "version": version(),
            "cluster": self.cluster,
            "kafka": self.kafka,
            "metadata": self.metadata,
            "survive": list(self.titles),
            "never": list(self.needs.never),
            "outage": None
            if self.needs.outage is None
            else {"comparison": self.needs.outage[0], "ms": milliseconds(self.needs.outage[1])},
            "runs": self.runs,
            "complete": self.complete,
            "axes": {name: list(values) for name, values in self.axes},
            "yours": _settings(self.yours),
            "advised": None if self.advised is None else _settings(self.advised),
            "cheaper": [
                {"setting": each.axis, "value": each.value.text(), **_settings(each.settings)}
                for each in self.cheaper
            ],
            "strongest": None if self.strongest is None else _settings(self.strongest),
            "later_release": None if self.on_release is None else _release(self.on_release),
        }


def advise(
    cluster: str,
    models: Sequence[FaultModel],
    needs: Needs,
    *,
    runs: int,
    workers: Workers,
    source: str = "",
    own_plans: Sequence[Plan] = (),
    changeable: Sequence[str] = (),
    shrinking: Shrinking | None = None,
    on_run: Callable[[int], None] = lambda _runs: None,
) -> Advice:
    """Search for the cheapest settings that let a cluster survive these fault models.

    Each model fits the cluster, at least after a change. Then *own_plans* show the user's settings.
    Only settings in *changeable* are changed; by default all axes are. With *shrinking*, the runs
    that refute settings are shrunk. *on_run* is called with the number of runs so far. A
    `KeyboardInterrupt` ends the search, and the advice is not complete.
    """
    count = _RunCount(on_run)
    plans = [plan for model in models if (plan := model.plan or model.changed_plan) is not None]
    assert len(plans) == len(models), "each fault model fits the cluster"
    axes = [axis for axis in AXES.values() if not changeable or axis.name in changeable]
    lattice = lattice_of(
        axes,
        [*(model.plan for model in models if model.plan is not None), *own_plans],
        needs.kinds(),
        [model.changed_plan for model in models if model.changed_plan is not None],
    )
    paths = [resolve(model.argument)[0] for model in models]

    def plan_with(number: int, options: Sequence[str]) -> Plan | None:
        if not options:
            return models[number].plan
        try:
            return load_campaign(paths[number], (*models[number].overrides, *options)).plans[0]
        except CampaignError:
            return None

    def plan_at(number: int, point: Point) -> Plan | None:
        return plan_with(number, lattice.options(point, plans[number]))

    screening = range(min(runs, SCREENING_RUNS))

    search = LatticeSearch(
        lattice,
        len(models),
        plan_at,
        needs,
        seeds=range(runs),
        screening=screening,
        workers=workers,
        on_run=count.add,
    )
    shrink = None
    if shrinking is not None:
        shrink = partial(write_shrunk, shrinking=shrinking, on_run=count.add)
    own_plan = (*own_plans, *plans)[0]
    answer = _Answer(
        cluster, source, models, plans, own_plan, tuple(changeable), lattice, search, shrink, count
    )
    chosen = on_release = None
    try:
        chosen = search.run()
        counter = search.refuted.get(lattice.own)
        if counter is not None and search.permitted_by(lattice.own) is None:
            on_release = later_release(
                plans[0].kafka,
                lambda number, kafka: plan_with(number, [f"kafka={kafka}"]),
                len(models),
                counter,
                needs,
                screening,
                workers,
                count.add,
            )
        return answer.advice(chosen, on_release)
    except KeyboardInterrupt:
        search.stop()
        return answer.interrupted(chosen, on_release)


@dataclass(slots=True)
class _RunCount:
    """Counts the runs of an advice: its trials, and those that shrink a run."""

    on_run: Callable[[int], None]
    runs: int = 0

    def add(self) -> None:
        self.runs += 1
        self.on_run(self.runs)


@dataclass(frozen=True, slots=True)
class _Answer:
    """Puts the result of a search into words."""

    cluster: str
    source: str
    models: Sequence[FaultModel]
    plans: Sequence[Plan]
    own_plan: Plan
    changeable: tuple[str, ...]
    lattice: Lattice
    search: LatticeSearch
    shrink: Callable[[Plan, int, Sequence[str], str], ShrunkRun | None] | None
    count: _RunCount
    refuting: dict[Point, RefutingRun] = field(default_factory=dict)

    def advice(self, chosen: Point | None, on_release: LaterRelease | None) -> Advice:
        if self.search.is_possible(self.lattice.own):
            self.search.measure(self.lattice.own)
        if chosen is None:
            strongest = self._settings(self.search.strongest(), compared=False)
            return self.assembled(None, (), on_release, strongest=strongest)
        return self.assembled(chosen, tuple(self.search.steps_down(chosen)), on_release)

    def interrupted(self, chosen: Point | None, on_release: LaterRelease | None) -> Advice:
        """Return what the search knows, without more runs.

        If it has not chosen yet, the advice is the smallest change that has survived so far.
        """
        known = replace(self, shrink=None)
        if chosen is None:
            chosen = min(self.search.survivors(), key=self.lattice.change, default=None)
        steps = () if chosen is None else self.search.steps_down(chosen)
        refuted = tuple(step for step in steps if step[1] in self.search.refuted)
        return known.assembled(chosen, refuted, on_release, complete=False)

    def assembled(
        self,
        chosen: Point | None,
        steps: Sequence[tuple[int, Point]],
        on_release: LaterRelease | None,
        *,
        strongest: Settings | None = None,
        complete: bool = True,
    ) -> Advice:
        cheaper = tuple(
            Cheaper(
                axis=self.lattice.axes[axis].name,
                value=self._value(point, self.lattice.axes[axis]),
                settings=self._settings(point, compared=point not in self.search.refuted),
            )
            for axis, point in steps
        )
        return Advice(
            cluster=self.cluster,
            kafka=self.plans[0].kafka,
            metadata=self.plans[0].metadata,
            titles=tuple(model.title for model in self.models),
            needs=self.search.needs,
            changeable=self.changeable,
            yours=self._settings(self.lattice.own, compared=self.search.is_possible(self.lattice.own)),
            advised=None if chosen is None else self._settings(chosen),
            cheaper=cheaper,
            strongest=strongest,
            on_release=None if on_release is None else self._release_trial(on_release),
            axes=tuple(
                (axis.name, tuple(level.text() for level in levels))
                for axis, levels in zip(self.lattice.axes, self.lattice.levels, strict=True)
            ),
            # The arguments above have shrunk runs.
            runs=self.count.runs,
            complete=complete,
            source=self.source,
        )

    def _release_trial(self, tried: LaterRelease) -> ReleaseTrial:
        release = (f"kafka={tried.kafka}",)
        refuting = None
        if tried.refuted_by is not None:
            command = self._command(tried.refuted_by, release)
            refuting = self._run_of(tried.refuted_by, command)
        return ReleaseTrial(
            kafka=tried.kafka,
            evidence=self._evidence(tried.search.tally(())),
            refuted_by=refuting,
            command=self._command(self.search.refuted[self.lattice.own], release),
        )

    def _settings(self, point: Point, *, compared: bool = True) -> Settings:
        counter = self.search.refuted.get(point)
        chosen = self.lattice.chosen(point)
        return Settings(
            values=tuple((axis.name, self._value(point, axis)) for axis in self.lattice.axes),
            lines=tuple(
                line
                for n in self.lattice.changes(point)
                for line in self.lattice.axes[n].lines(self.own_plan, chosen)
            ),
            options=tuple(
                dict.fromkeys(option for plan in self.plans for option in self.lattice.options(point, plan))
            ),
            costs=self.search.costs(point) if compared else None,
            evidence=self._evidence(self.search.tally(point)),
            refuted_by=None if counter is None else self._refuting_run(point, counter),
            permitted_by=self.search.permitted_by(point),
            unfit=self._unfit(point),
        )

    def _unfit(self, point: Point) -> str:
        """Return which fault models cannot run with the user's settings, and why."""
        reasons = [f"{model.title}: {model.unfit}" for model in self.models if model.unfit]
        return "; ".join(reasons) if point == self.lattice.own else ""

    def _value(self, point: Point, axis: Axis) -> Level:
        """Return the value of a setting at a point. Its default may depend on other settings."""
        plans = (self.search.plan(number, point) for number in range(len(self.models)))
        possible = [plan for plan in plans if plan is not None]
        return (
            axis.own_level(possible) if possible else self.lattice.level(point, self.lattice.axes.index(axis))
        )

    def _evidence(self, tally: PointTally) -> tuple[ModelEvidence, ...]:
        return tuple(
            ModelEvidence(
                title=model.title,
                tried=tally.tried(number),
                counted=tally.counted(number),
                why_not=tally.why_not(number),
            )
            for number, model in enumerate(self.models)
        )

    def _refuting_run(self, point: Point, counter: CounterExample) -> RefutingRun:
        if point not in self.refuting:
            command = self._command(counter, self.lattice.options(point, self.plans[counter.model]))
            plan = self.search.plan(counter.model, point)
            shrunk = None
            if self.shrink is not None and plan is not None:
                shrunk = self.shrink(*self._failing(plan, counter), command)
            self.refuting[point] = self._run_of(counter, command, shrunk)
        return self.refuting[point]

    def _failing(self, plan: Plan, counter: CounterExample) -> tuple[Plan, int, Sequence[str]]:
        """Return the plan and the seed of a run that fails, and the names of its failure."""
        bounds = self.search.needs.bounds(counter.harm)
        if not bounds:
            return plan, counter.seed, (counter.harm.rule,)
        expected = replace(plan, expect=Expectation(service=expectation_of(bounds)))
        return expected, counter.seed, [bound.key for bound in bounds]

    def _command(self, counter: CounterExample, options: Sequence[str]) -> str:
        """Return the command that repeats a run with other settings, and shows its kind of harm."""
        model = self.models[counter.model]
        shown = [bound.option() for bound in self.search.needs.bounds(counter.harm)]
        return reproduce_command(model.argument, counter.seed, None, (*model.overrides, *options, *shown))

    def _run_of(self, counter: CounterExample, command: str, shrunk: ShrunkRun | None = None) -> RefutingRun:
        title = self.models[counter.model].title
        return RefutingRun(title=title, seed=counter.seed, harm=counter.harm, command=command, shrunk=shrunk)


def _release(tried: ReleaseTrial) -> dict[str, Any]:
    return {
        "kafka": tried.kafka,
        "survives": tried.refuted_by is None,
        "trials": _trials(tried.evidence),
        "reproduce": (tried.refuted_by or tried).command,
    }


def _trials(evidence: Sequence[ModelEvidence]) -> list[dict[str, Any]]:
    return [
        {"survive": each.title, "runs": each.tried, "counted": each.counted, "bound": each.bound}
        for each in evidence
    ]


def _settings(settings: Settings) -> dict[str, Any]:
    refuted = settings.refuted_by
    return {
        "values": {name: level.text() for name, level in settings.values},
        "options": list(settings.options),
        "changes": [
            {"place": line.place, "before": line.before or None, "line": line.text} for line in settings.lines
        ],
        "costs": None if settings.costs is None else _costs(settings.costs),
        "permitted_by": settings.permitted_by,
        "unfit": settings.unfit or None,
        "trials": _trials(settings.evidence),
        "refuted_by": None
        if refuted is None
        else {
            "survive": refuted.title,
            "seed": refuted.seed,
            "harm": refuted.harm.kind,
            "rule": refuted.harm.rule or None,
            "permitted_by": refuted.harm.permitted_by,
            "what": refuted.harm.sentence,
            "reproduce": refuted.command,
            "shrunk": None
            if refuted.shrunk is None
            else {
                "faults": refuted.shrunk.faults,
                "records": refuted.shrunk.records,
                "reproduce": refuted.shrunk.command,
            },
        },
    }


def _costs(costs: PointCosts) -> dict[str, Any]:
    return {
        "copies": None if costs.copies is None else costs.copies / 1_000,
        "ack_p50_ms": None if costs.ack_p50_us is None else milliseconds(costs.ack_p50_us),
        "ack_p99_ms": None if costs.ack_p99_us is None else milliseconds(costs.ack_p99_us),
        "outage_ms": milliseconds(costs.outage_us),
    }
