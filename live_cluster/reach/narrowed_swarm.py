"""A swarm without what brokers cannot do: each seed draws among the rest.

A seed of a swarm draws faults, actions and settings, most of which real brokers can have. One that they cannot have must not keep a
whole campaign from them. So each choice is drawn alone and rehearsed before anything is: what has an obstacle of its own is drawn by no
seed, and the run says so. What is not open in the campaign, or has nothing left to draw from, stays, and the drawn plan is skipped for it.
"""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field, replace
from typing import Any, Final, TypeVar

from harrow.campaigns.language.plan import Aim, Aims, Plan, Swarm, SwarmActions, SwarmFaults
from harrow.campaigns.run.swarm import STREAM, draw
from harrow.cluster_model.sim.choices import SeededStream

_T = TypeVar("_T")
_OFTEN_US: Final = 1_000_000
ObstaclesOf = Callable[[Plan], Iterable[str]]


def narrowed(plan: Plan, obstacles_of: ObstaclesOf) -> tuple[Plan, tuple[str, ...]]:
    """Return a plan whose swarm leaves open what brokers can do, and the obstacles of what it leaves out."""
    if plan.swarm is None:
        return plan, ()
    narrowing = _Narrowing(plan, obstacles_of)
    return replace(plan, swarm=narrowing.of(plan.swarm)), tuple(narrowing.left_out)


@dataclass(slots=True)
class _Narrowing:
    plan: Plan
    obstacles_of: ObstaclesOf
    left_out: dict[str, None] = field(default_factory=dict)
    _always: frozenset[str] = frozenset()

    def __post_init__(self) -> None:
        self._always = frozenset(self._obstacles(Swarm()))

    def of(self, swarm: Swarm) -> Swarm:
        """Return a swarm without what has an obstacle of its own; where nothing would be left of a choice, that stays as it is."""
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
            settings=tuple(self._choices(swarm.settings, _with_setting)),
            values=tuple(self._choices(swarm.values, _with_value)),
            aims=None if swarm.aims is None else self._aims(swarm.aims),
        )

    def _aims(self, aims: Aims) -> Aims | None:
        """Return the aims that can be had: each with everything that it is about, or with some of its faults."""
        kinds = tuple(
            replace(aim, instead=self.of(aim.instead)) for aim in aims.kinds if self._can_be_had(aim)
        )
        return replace(aims, kinds=kinds) if kinds else None

    def _can_be_had(self, aim: Aim) -> bool:
        said = aim.instead
        return (
            (said.faults is None or bool(self._possible(said.faults.kinds, _with_fault)))
            and (said.actions is None or bool(self._possible(said.actions.kinds, _with_action)))
            and all(
                self._possible([(name, value) for value in values], _with_setting)
                for name, values in said.settings
            )
            and all(
                self._possible([(name, value) for value in values], _with_value)
                for name, values in said.values
            )
        )

    def _choices(
        self, choices: Iterable[tuple[str, tuple[Any, ...]]], opened: Callable[[tuple[str, Any]], Swarm]
    ) -> Iterator[tuple[str, tuple[Any, ...]]]:
        for name, values in choices:
            possible = self._possible([(name, value) for value in values], opened)
            yield name, tuple(value for _, value in possible) or values

    def _possible(self, candidates: Iterable[_T], opened: Callable[[_T], Swarm]) -> tuple[_T, ...]:
        """Return the candidates that brokers can have, and take note of the obstacles of the others."""
        found = []
        for candidate in candidates:
            obstacles = [each for each in self._obstacles(opened(candidate)) if each not in self._always]
            self.left_out.update(dict.fromkeys(obstacles))
            if not obstacles:
                found.append(candidate)
        return tuple(found)

    def _obstacles(self, swarm: Swarm) -> list[str]:
        drawn = draw(replace(self.plan, swarm=swarm), SeededStream(0, STREAM))
        return list(self.obstacles_of(drawn.plan))


def _with_fault(fault: Any) -> Swarm:
    return Swarm(faults=SwarmFaults(in_play=(1, 1), mean_us=(_OFTEN_US, _OFTEN_US), kinds=(fault,)))


def _with_action(action: Any) -> Swarm:
    return Swarm(actions=SwarmActions(count=(1, 1), kinds=(action,)))


def _with_setting(choice: tuple[str, Any]) -> Swarm:
    name, value = choice
    return Swarm(settings=((name, (value,)),))


def _with_value(choice: tuple[str, Any]) -> Swarm:
    name, value = choice
    return Swarm(values=((name, (value,)),))
