"""Sequences of steps of any kind, drawn by Hypothesis: the same for the same seed."""

import warnings
from collections.abc import Iterator
from itertools import chain, count
from typing import Final, TypeVar

from hypothesis import HealthCheck, Phase, given, seed, settings
from hypothesis import strategies as st
from hypothesis.errors import HypothesisWarning

S = TypeVar("S")
T = TypeVar("T")

DRAWN_AT_ONCE: Final = 20
"""Sequences that one seed brings."""


def weighted(*choices: tuple[int, st.SearchStrategy[T]]) -> st.SearchStrategy[T]:
    """Return what draws from one of some strategies, each as often as its weight says.

    ``st.one_of`` takes a strategy that it is given several times for one.
    """
    drawn_from = [strategy for weight, strategy in choices for _ in range(weight)]
    return st.sampled_from(drawn_from).flatmap(lambda strategy: strategy)


def all_sequences(strategy: st.SearchStrategy[tuple[S, ...]], first_seed: int) -> Iterator[tuple[S, ...]]:
    """Yield the sequences of a seed, of the next one, and so on."""
    return chain.from_iterable(seed_sequences(number, strategy) for number in count(first_seed))


def seed_sequences(number: int, strategy: st.SearchStrategy[tuple[S, ...]]) -> list[tuple[S, ...]]:
    """Return the sequences of a seed.

    They depend on the seed alone. That threads of the process draw numbers meanwhile, as ZooKeeper's client does before it
    connects again, changes nothing, though Hypothesis warns of it.
    """
    found: list[tuple[S, ...]] = []

    def keep(steps: tuple[S, ...]) -> None:
        found.append(steps)

    draw = settings(
        max_examples=DRAWN_AT_ONCE,
        database=None,
        deadline=None,
        phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
    )(seed(number)(given(strategy)(keep)))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", HypothesisWarning)
        draw()
    return found
