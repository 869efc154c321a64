"""Tries the user's settings on later releases of Kafka, until they survive."""

from collections.abc import Callable

from harrow.campaigns.advise.harm import Needs
from harrow.campaigns.advise.lattice import Lattice, Point
from harrow.campaigns.advise.search import CounterExample, LatticeSearch
from harrow.campaigns.language.plan import Plan
from harrow.campaigns.run.workers.workers import Workers
from harrow.cluster_model.lazy_dataclass import dataclass
from harrow.cluster_model.release.profiles import RELEASES

_UNCHANGED: Point = ()
"""The only point of a lattice without axes."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LaterRelease:
    """What the same settings did on a later release: ``refuted_by`` is None if they survived."""

    kafka: str
    search: LatticeSearch
    refuted_by: CounterExample | None


def later_release(
    kafka: str,
    plan_on: Callable[[int, str], Plan | None],
    models: int,
    counter: CounterExample,
    needs: Needs,
    seeds: range,
    workers: Workers,
    on_run: Callable[[], None],
) -> LaterRelease | None:
    """Return the first release after *kafka* on which settings survive, or else the last tried.

    On each release *counter*, which refutes the settings on *kafka*, is tried first.
    """
    tried = None
    for release in RELEASES.values():
        if release.version <= RELEASES[kafka].version:
            continue

        def plan_at(model: int, _: Point, name: str = release.name) -> Plan | None:
            return plan_on(model, name)

        search = LatticeSearch(
            Lattice((), ()),
            models,
            plan_at,
            needs,
            seeds=seeds,
            screening=seeds,
            workers=workers,
            travelling=[(counter.model, counter.seed)],
            on_run=on_run,
        )
        if not search.is_candidate(_UNCHANGED):
            continue
        if search.run() is not None:
            return LaterRelease(kafka=release.name, search=search, refuted_by=None)
        if _UNCHANGED in search.refuted:
            tried = LaterRelease(kafka=release.name, search=search, refuted_by=search.refuted[_UNCHANGED])
    return tried
