"""An effect without a handler is impossible on a target, with a reason."""

import pytest

from harrow.campaigns.run.targets.model_environment import MODEL
from harrow.cluster_model.sim.link_quality import LinkQuality
from harrow.faults import effects
from harrow.faults.effects import BrokerEffect, FaultEffect, LastingEffect, Undo
from harrow.faults.handlers import Handlers, NotPerformedError
from harrow.live_cluster.local.started_effects import STARTED
from harrow.live_cluster.users.users_reach import USER_CLUSTER_EFFECTS

KINDS = [
    kind
    for kind in vars(effects).values()
    if isinstance(kind, type) and issubclass(kind, FaultEffect) and kind.__module__ == effects.__name__
]
ABSTRACT = {kind for kind in KINDS if kind.__subclasses__()} - {effects.LosePower, effects.PauseClient}
CONCRETE = {*KINDS} - ABSTRACT - {Undo}


class UnsupportedEffect(LastingEffect, BrokerEffect):
    """An effect without a handler in the catalogue."""


class PermanentEffect(FaultEffect):
    """An effect without an end."""


@pytest.mark.parametrize("target", [MODEL, STARTED, USER_CLUSTER_EFFECTS], ids=["model", "started", "users"])
def test_every_target_performs_each_effect_or_has_a_reason(target: Handlers[object]) -> None:
    assert set().union(*target.layers) >= CONCRETE


@pytest.mark.parametrize("target", [MODEL, STARTED, USER_CLUSTER_EFFECTS], ids=["model", "started", "users"])
def test_a_target_can_undo_every_effect_that_it_performs(target: Handlers[object]) -> None:
    for kind in CONCRETE:
        handler = target.handler_of(kind)
        if handler.perform is not None and issubclass(kind, LastingEffect):
            assert handler.undo is not None, kind
    assert target.lack(effects.Pause(0)) == target.lack(effects.Resume(0))


def test_an_effect_is_performed_and_undone_by_the_handlers_of_its_type() -> None:
    done: list[object] = []
    handlers: Handlers[list[object]] = Handlers()
    handlers.register(
        UnsupportedEffect,
        lambda target, it: target.append(it.broker),
        undo=lambda target, it: target.append(-it.broker),
    )
    handlers.perform(done, UnsupportedEffect(3))
    undo = UnsupportedEffect(3).undo()
    assert undo is not None
    handlers.perform(done, undo)
    assert done == [3, -3]
    assert handlers.lack(UnsupportedEffect(3)) is handlers.lack(undo) is None


def test_an_effect_without_an_undo_cannot_end() -> None:
    handlers: Handlers[object] = Handlers()
    handlers.register(UnsupportedEffect, lambda *_: None)
    assert handlers.lack(UnsupportedEffect(3)) is None
    assert handlers.lack(Undo(UnsupportedEffect(3))) == "nothing here undoes UnsupportedEffect"


def test_an_effect_without_a_handler_is_impossible() -> None:
    handlers: Handlers[object] = Handlers()
    assert handlers.lack(PermanentEffect()) == "nothing here performs PermanentEffect"
    with pytest.raises(NotPerformedError, match="nothing here performs PermanentEffect"):
        handlers.perform(None, PermanentEffect())
    assert PermanentEffect().undo() is None


def test_a_reason_against_an_effect_also_applies_to_its_undo() -> None:
    base: Handlers[object] = Handlers()
    base.register(UnsupportedEffect, lambda *_: None, undo=lambda *_: None)
    handlers: Handlers[object] = Handlers(base)
    handlers.register_impossible("there is no fire", UnsupportedEffect)
    assert (
        handlers.lack(UnsupportedEffect(0)) == handlers.lack(Undo(UnsupportedEffect(0))) == "there is no fire"
    )
    assert base.lack(UnsupportedEffect(0)) is None
    with pytest.raises(NotPerformedError, match="there is no fire"):
        handlers.perform(None, UnsupportedEffect(0))


def test_a_handler_applies_to_targets_that_were_derived_before_it_was_registered() -> None:
    base: Handlers[object] = Handlers()
    handlers: Handlers[object] = Handlers(Handlers(base))
    base.register(UnsupportedEffect, lambda *_: None)
    assert handlers.lack(UnsupportedEffect(0)) is None


def test_an_effect_may_be_impossible_with_certain_values() -> None:
    handlers: Handlers[object] = Handlers()
    handlers.register(UnsupportedEffect, lambda *_: None)
    handlers.restrict(UnsupportedEffect, lambda it: "broker 1 is made of stone" if it.broker == 1 else None)
    assert [handlers.lack(UnsupportedEffect(broker)) for broker in (0, 1)] == [
        None,
        "broker 1 is made of stone",
    ]


def test_effects_are_equal_and_hashed_by_their_values() -> None:
    slow = effects.SlowLink(0, 1, LinkQuality(latency_us=5))
    assert slow == effects.SlowLink(0, 1, LinkQuality(latency_us=5))
    assert len({effects.Kill(0), effects.Kill(0), effects.Stop(0), Undo(slow), Undo(slow)}) == 3
