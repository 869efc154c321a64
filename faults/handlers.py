"""Registers how a kind of target performs effects, and why it cannot perform some of them."""

from collections.abc import Callable
from typing import Any, Final, Generic, NamedTuple, TypeVar

from harrow.faults.effects import FaultEffect, Undo

T_contra = TypeVar("T_contra", contravariant=True)
E = TypeVar("E", bound=FaultEffect)


class NotPerformedError(Exception):
    """A target was to perform an effect that is impossible on it. The message says why."""


class Handler(NamedTuple):
    """How a target performs and undoes one type of effect.

    Both functions take the target and the effect. ``perform`` is None if the effect is always
    impossible. ``lack`` returns why a given effect is impossible, or None if it is possible. The
    answer may depend on the values of its fields.
    """

    perform: Callable[[Any, Any], None] | None
    undo: Callable[[Any, Any], None] | None = None
    lack: Callable[[Any], str | None] = lambda _: None


_NO_HANDLER: Final = Handler(None, lack=lambda effect: f"nothing here performs {type(effect).__name__}")


class Handlers(Generic[T_contra]):
    """The handlers of a kind of target.

    An effect without a handler is impossible on such targets. The handlers of *bases* apply too,
    even those that are registered later, unless a handler that is registered here replaces them.
    """

    def __init__(self, *bases: "Handlers[T_contra]") -> None:
        inherited = (layer for base in bases for layer in base.layers)
        self.handlers: dict[type[FaultEffect], Handler] = {}
        """The handlers that are registered here."""
        self.layers: tuple[dict[type[FaultEffect], Handler], ...] = (self.handlers, *inherited)
        """The same handlers, and then those of the bases."""

    def register(
        self,
        effect: type[E],
        perform: Callable[[T_contra, E], None],
        *,
        undo: Callable[[T_contra, E], None] | None = None,
    ) -> None:
        """Register how targets perform and undo a type of effect.

        An effect that another effect undoes needs no *undo* function.
        """
        self.handlers[effect] = Handler(perform, undo)

    def restrict(self, effect: type[E], lack: Callable[[E], str | None]) -> None:
        """Register *lack*, which returns why an effect with certain values is impossible."""
        handler = self.handler_of(effect)
        assert handler.perform is not None, effect
        self.handlers[effect] = handler._replace(lack=lack)

    def register_impossible(self, reason: str, *effects: type[FaultEffect]) -> None:
        """Register why these types of *effects* are always impossible."""
        for effect in effects:
            self.handlers[effect] = Handler(None, lack=lambda _: reason)

    def handler_of(self, effect: type[FaultEffect]) -> Handler:
        for handlers in self.layers:
            if effect in handlers:
                return handlers[effect]
        return _NO_HANDLER

    def lack(self, effect: FaultEffect) -> str | None:
        """Return why an effect is impossible; None if it is possible."""
        base = effect.effect if isinstance(effect, Undo) else effect
        handler = self.handler_of(type(base))
        if base is not effect and handler.perform is not None and handler.undo is None:
            return f"nothing here undoes {type(base).__name__}"
        return handler.lack(base)

    def perform(self, target: T_contra, effect: FaultEffect) -> None:
        """Make a target perform an effect.

        Raises:
            NotPerformedError: there is no handler for the effect or its undo.

        """
        is_undo, base = (True, effect.effect) if isinstance(effect, Undo) else (False, effect)
        handler = self.handler_of(type(base))
        perform = handler.undo if is_undo else handler.perform
        if perform is None:
            raise NotPerformedError(self.lack(effect))
        perform(target, base)
