"""Which effects a kind of target performs, how, and why it does not perform the others."""

from collections import ChainMap
from collections.abc import Callable
from typing import Any, Generic, NamedTuple, TypeVar

from harrow.faults.effects import FaultEffect, Undo

T_contra = TypeVar("T_contra", contravariant=True)
E = TypeVar("E", bound=FaultEffect)


class NotPerformedError(Exception):
    """A target has no handler for an effect; the message says why."""


class Handler(NamedTuple):
    """What a target does for one type of effect. Both functions take the target and the effect.

    ``perform`` is None where the effect is impossible. ``lack`` returns why an effect is, or one with certain values.
    """

    perform: Callable[[Any, Any], None] | None
    undo: Callable[[Any, Any], None] | None = None
    lack: Callable[[Any], str | None] = lambda _: None


class Handlers(Generic[T_contra]):
    """The effects that targets of a kind perform. An effect without a handler is impossible there.

    What is in *bases* holds here as well, unless it is registered here too.
    """

    def __init__(self, *bases: "Handlers[T_contra]") -> None:
        self.known: ChainMap[type[FaultEffect], Handler] = ChainMap({}, *(base.known for base in bases))

    def on(
        self,
        effect: type[E],
        perform: Callable[[T_contra, E], None],
        *,
        undo: Callable[[T_contra, E], None] | None = None,
    ) -> None:
        """Register how an effect is performed, and how it is undone if that is no effect of its own."""
        self.known[effect] = Handler(perform, undo)

    def refuse(self, effect: type[E], lack: Callable[[E], str | None]) -> None:
        """Register why an effect with certain values is impossible, though others are not."""
        self.known[effect] = self.known[effect]._replace(lack=lack)

    def never(self, reason: str, *effects: type[FaultEffect]) -> None:
        """Register why effects are impossible."""
        for effect in effects:
            self.known[effect] = Handler(None, lack=lambda _: reason)

    def lack(self, effect: FaultEffect) -> str | None:
        """Return why an effect is impossible, None where it is possible."""
        struck = effect.effect if isinstance(effect, Undo) else effect
        handler = self.known.get(type(struck))
        if handler is None:
            return f"nothing here performs {type(struck).__name__}"
        if struck is not effect and handler.perform is not None and handler.undo is None:
            return f"nothing here undoes {type(struck).__name__}"
        return handler.lack(struck)

    def perform(self, target: T_contra, effect: FaultEffect) -> None:
        """Have a target perform an effect.

        Raises:
            NotPerformedError: it has no handler for it.

        """
        is_over, struck = (True, effect.effect) if isinstance(effect, Undo) else (False, effect)
        handler = self.known.get(type(struck))
        perform = None if handler is None else handler.undo if is_over else handler.perform
        if perform is None:
            raise NotPerformedError(self.lack(effect))
        perform(target, struck)
