"""Draws sequences with Hypothesis: the same seed gives the same sequences."""

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
"""How many sequences each seed has."""


def single(step: st.SearchStrategy[T]) -> st.SearchStrategy[tuple[T, ...]]:
    """Return a strategy for sequences of one step."""
    return step.map(lambda value: (value,))


def weighted(*choices: tuple[int, st.SearchStrategy[T]]) -> st.SearchStrategy[T]:
    """Return a strategy that draws from several strategies in proportion to their weights.

    ``st.one_of`` cannot do that: it removes repeated strategies.
    """
    strategies = [strategy for weight, strategy in choices for _ in range(weight)]
    return st.sampled_from(strategies).flatmap(lambda strategy: strategy)


def all_sequences(strategy: st.SearchStrategy[tuple[S, ...]], first_seed: int) -> Iterator[tuple[S, ...]]:
    """Yield the sequences of a seed, then of the next one, and so on."""
    return chain.from_iterable(seed_sequences(number, strategy) for number in count(first_seed))


def seed_sequences(number: int, strategy: st.SearchStrategy[tuple[S, ...]]) -> list[tuple[S, ...]]:
    """Return the sequences of a seed.

    They depend on the seed alone. Other threads may draw random numbers meanwhile, as ZooKeeper's
    client does before it reconnects. Hypothesis warns of that, but the sequences stay the same.
    """
    sequences: list[tuple[S, ...]] = []

    def keep(steps: tuple[S, ...]) -> None:
        sequences.append(steps)

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
    return sequences
