"""Removes the choices from a swarm that are impossible on real brokers.

For each seed, a swarm draws faults, actions and settings, and most of them work on real brokers.
The others must not exclude the whole campaign. So harrow first draws and checks each choice alone.
It leaves out choices with obstacles, and the run reports them. If a choice has no possible value,
or the fixed part of the campaign has an obstacle, the drawn plan is skipped.
"""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import field
from typing import Any, Final, TypeVar

from harrow.campaigns.language.plan import Aim, Aims, Plan, Swarm, SwarmActions, SwarmFaults
from harrow.campaigns.run.swarm import STREAM, draw
from harrow.cluster_model.lazy_dataclass import dataclass, replace
from harrow.cluster_model.sim.choices import SeededStream

_T = TypeVar("_T")
_MEAN_GAP_US: Final = 1_000_000
ObstaclesOf = Callable[[Plan], Iterable[str]]


def narrow_swarm(plan: Plan, obstacles_of: ObstaclesOf) -> tuple[Plan, tuple[str, ...]]:
    """Return a plan whose swarm has only possible choices, and the obstacles to the others."""
    if plan.swarm is None:
        return plan, ()
    narrowing = _Narrowing(plan, obstacles_of)
    return replace(plan, swarm=narrowing.narrowed(plan.swarm)), tuple(narrowing.found_obstacles)


@dataclass(slots=True)
class _Narrowing:
    plan: Plan
    obstacles_of: ObstaclesOf
    found_obstacles: dict[str, None] = field(default_factory=dict)
    _fixed_obstacles: frozenset[str] = frozenset()

    def __post_init__(self) -> None:
        self._fixed_obstacles = frozenset(self._obstacles(Swarm()))

    def narrowed(self, swarm: Swarm) -> Swarm:
        """Return a swarm without impossible choices; a choice without a possible value stays."""
        faults, actions = swarm.faults, swarm.actions
        if faults is not None:
            kinds = self._possible(faults.kinds, _with_fault)
            kinds = kinds or faults.kinds
            least, most = (min(count, len(kinds)) for count in faults.in_play)
            faults = replace(faults, kinds=kinds, in_play=(least, most))
        if actions is not None:
            possible = self._possible(actions.kinds, _with_action)
            actions = replace(actions, kinds=possible) if possible else None
        return replace(
            swarm,
            faults=faults,
            actions=actions,
            settings=tuple(self._possible_choices(swarm.settings, _with_setting)),
            values=tuple(self._possible_choices(swarm.values, _with_value)),
            aims=None if swarm.aims is None else self._aims(swarm.aims),
        )

    def _aims(self, aims: Aims) -> Aims | None:
        """Return the possible aims, perhaps with only some of their faults."""
        kinds = tuple(
            replace(aim, instead=self.narrowed(aim.instead)) for aim in aims.kinds if self._is_possible(aim)
        )
        return replace(aims, kinds=kinds) if kinds else None

    def _is_possible(self, aim: Aim) -> bool:
        swarm = aim.instead
        return (
            (swarm.faults is None or bool(self._possible(swarm.faults.kinds, _with_fault)))
            and (swarm.actions is None or bool(self._possible(swarm.actions.kinds, _with_action)))
            and all(
                self._possible([(name, value) for value in values], _with_setting)
                for name, values in swarm.settings
            )
            and all(
                self._possible([(name, value) for value in values], _with_value)
                for name, values in swarm.values
            )
        )

    def _possible_choices(
        self, choices: Iterable[tuple[str, tuple[Any, ...]]], swarm_with: Callable[[tuple[str, Any]], Swarm]
    ) -> Iterator[tuple[str, tuple[Any, ...]]]:
        for name, values in choices:
            possible = self._possible([(name, value) for value in values], swarm_with)
            yield name, tuple(value for _, value in possible) or values

    def _possible(self, candidates: Iterable[_T], swarm_with: Callable[[_T], Swarm]) -> tuple[_T, ...]:
        """Return the possible candidates, and record the obstacles to the others."""
        possible = []
        for candidate in candidates:
            obstacles = [
                text for text in self._obstacles(swarm_with(candidate)) if text not in self._fixed_obstacles
            ]
            self.found_obstacles.update(dict.fromkeys(obstacles))
            if not obstacles:
                possible.append(candidate)
        return tuple(possible)

    def _obstacles(self, swarm: Swarm) -> list[str]:
        drawn = draw(replace(self.plan, swarm=swarm), SeededStream(0, STREAM))
        return list(self.obstacles_of(drawn.plan))


def _with_fault(fault: Any) -> Swarm:
    return Swarm(faults=SwarmFaults(in_play=(1, 1), mean_us=(_MEAN_GAP_US, _MEAN_GAP_US), kinds=(fault,)))


def _with_action(action: Any) -> Swarm:
    return Swarm(actions=SwarmActions(count=(1, 1), kinds=(action,)))


def _with_setting(choice: tuple[str, Any]) -> Swarm:
    name, value = choice
    return Swarm(settings=((name, (value,)),))


def _with_value(choice: tuple[str, Any]) -> Swarm:
    name, value = choice
    return Swarm(values=((name, (value,)),))
