"""Histories of a correct log, as a Hypothesis strategy or from a seed."""

import json
from collections.abc import Callable, Iterable
from random import Random

from hypothesis import strategies as st

from tests.properties.correct_log import (
    ACTIONS,
    OUTCOMES,
    ROLES,
    SLOTS,
    TRANSACTIONAL,
    CorrectLog,
    History,
    Micro,
    Setup,
    Step,
)

Choose = Callable[[int], int]
"""Return a number from 0 up to, but not including, a bound."""


def random_step(choose: Choose) -> Step:
    return Step(
        slot=choose(SLOTS),
        action=ACTIONS[choose(len(ACTIONS))],
        micros=tuple(
            Micro(polls=bool(choose(2)), keys=choose(8), records=choose(5)) for _ in range(1 + choose(3))
        ),
        outcome=OUTCOMES[choose(len(OUTCOMES))],
        waits=(choose(3), choose(3), choose(3)),
        crashes=bool(choose(2)),
        number=choose(1 << 12),
    )


def random_setup(choose: Choose) -> Setup:
    count = 1 + choose(3)
    plain = choose(4) == 1
    roles = [role for role in ROLES if role != TRANSACTIONAL] if plain else ROLES
    numbers_as_keys = choose(2) and not plain
    return Setup(
        plain=plain,
        roles=tuple(roles[choose(len(roles))] for _ in range(SLOTS)),
        subscribes=tuple(bool(choose(2)) for _ in range(SLOTS)),
        keys=tuple(range(9, 9 + count)) if numbers_as_keys else tuple(f"t-{at}" for at in range(count)),
        numbers_as_values=bool(choose(2)),
        reads_unacked_tail=bool(choose(2)),
        final_chunk=1 + choose(9),
        final_cut=choose(50),
    )


def play(setup: Setup, script: Iterable[Step]) -> History:
    log = CorrectLog(setup)
    for step in script:
        log.run(step)
    log.read_back()
    return log.history


@st.composite
def _steps(draw: st.DrawFn) -> Step:
    return random_step(lambda count: draw(st.integers(0, count - 1)))


@st.composite
def _setups(draw: st.DrawFn) -> Setup:
    return random_setup(lambda count: draw(st.integers(0, count - 1)))


def correct_histories(min_steps: int = 0, max_steps: int = 40) -> st.SearchStrategy[History]:
    """Return a strategy for histories. A failing history shrinks step by step."""
    return st.builds(play, _setups(), st.lists(_steps(), min_size=min_steps, max_size=max_steps))


def random_history(seed: int, steps: int) -> History:
    """Return the history that a seed gives in this number of steps."""
    choose = Random(seed).randrange
    return play(random_setup(choose), [random_step(choose) for _ in range(steps)])


def lines(history: History) -> list[bytes]:
    """Return the lines of a history file."""
    return [json.dumps(line).encode() + b"\n" for line in history]
