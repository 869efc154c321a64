"""Caches forget values when a registry changes, and tell values of different types apart."""

from harrow.cluster_model.registry import Registry, derived, derived_up_to, typed_items
from harrow.cluster_model.release.profiles import NEWEST_RELEASE
from harrow.cluster_model.settings import broker_config


def test_derived_values_are_computed_again_after_any_registry_has_changed() -> None:
    registry: Registry[str, int] = Registry()
    calls: list[int] = []

    @derived
    def doubled(number: int) -> int:
        calls.append(number)
        return 2 * number

    assert [doubled(1), doubled(2), doubled(1)] == [2, 4, 2]
    assert calls == [1, 2]
    registry["a"] = 1
    assert doubled(1) == 2
    assert calls == [1, 2, 1]


def test_a_value_is_computed_from_what_its_function_has_registered() -> None:
    registry: Registry[str, int] = Registry()

    @derived
    def size() -> int:
        before = len(registry)
        if not before:
            registry["a"] = 1
        return before

    assert [size(), size()] == [1, 1]


def test_a_bounded_cache_keeps_the_results_that_were_used_last() -> None:
    calls: list[int] = []

    @derived_up_to(2)
    def doubled(number: int) -> int:
        calls.append(number)
        return 2 * number

    assert [doubled(number) for number in (1, 2, 1, 3, 1, 2)] == [2, 4, 2, 6, 2, 4]
    assert calls == [1, 2, 3, 2]


def test_equal_settings_of_different_types_do_not_share_a_result() -> None:
    assert typed_items({"a": 1}) != typed_items({"a": True})
    name = "unclean.leader.election.enable"
    configs = [broker_config(NEWEST_RELEASE, {name: value}) for value in (1, True)]
    assert [type(config.unclean_leader_election) for config in configs] == [int, bool]
