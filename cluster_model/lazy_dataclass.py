"""Makes dataclasses that generate each of their methods when it is first looked up.

`dataclasses` generates the source of every method when it makes a class, and Python compiles each
method separately. harrow has hundreds of dataclasses, and a command calls few of their methods.
Generating all of them took a fifth of the start-up time.
"""

# Plain Python: it changes classes and adds methods to them at run time, which mypyc cannot compile.

import dataclasses
from collections.abc import Callable, Iterable
from functools import partial
from reprlib import recursive_repr
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    # mypy and mypyc understand `dataclasses.dataclass`. The function below takes its place at run
    # time, and behaves in the same way.
    from dataclasses import dataclass
else:

    def dataclass(
        *,
        eq: bool = True,
        frozen: bool = False,
        kw_only: bool = False,
        repr: bool = True,  # noqa: A002 - the name that `dataclasses` gives it
        slots: bool = False,
        unsafe_hash: bool = False,
    ) -> Callable[[type], type]:
        """Make a class a dataclass, as `dataclasses.dataclass` with the same options does."""

        def process(kind: type) -> type:
            own_names = set(vars(kind))
            bases = [base.__dataclass_params__ for base in kind.__mro__[1:] if _PARAMETERS in vars(base)]
            _check_bases(kind, bases, own_names, is_frozen=frozen)
            kind = _collect_fields(kind, bases, is_frozen=frozen, kw_only=kw_only, slots=slots)
            _check_fields(kind)
            is_hashable = unsafe_hash or (eq and frozen)
            options = {"__init__": True, "__repr__": repr, "__eq__": eq, "__hash__": is_hashable}
            for name in (name for name, is_wanted in options.items() if is_wanted and name not in own_names):
                setattr(kind, name, _LazyMethod(kind, name, is_frozen=frozen))
            if eq and not is_hashable and "__hash__" not in own_names:
                kind.__hash__ = None
            if frozen:
                _freeze(kind, own_names)
            if hasattr(kind, "__mypyc_attrs__") and "__reduce__" not in own_names:
                kind.__reduce__ = _reduce
            return kind

        return process


__all__ = ["dataclass"]


_PARAMETERS: Final = "__dataclass_params__"
_RESERVED_NAMES: Final = frozenset({"self", "DEFAULT", "set_field"})
"""The names that `_initialiser` uses beside those of fields."""


def _collect_fields(kind: Any, bases: Iterable[Any], *, is_frozen: bool, **options: bool) -> Any:
    """Make a class a dataclass without generated methods, so that Python compiles none of them."""
    frozen_bases = [parameters for parameters in bases if parameters.frozen]
    try:
        for parameters in frozen_bases:
            # With a frozen base, `dataclasses` would compile methods that freeze *kind*.
            parameters.frozen = False
        kind = dataclasses.dataclass(init=False, repr=False, eq=False, **options)(kind)
    finally:
        for parameters in frozen_bases:
            parameters.frozen = True
    kind.__dataclass_params__.frozen = is_frozen
    return kind


def _check_bases(kind: Any, bases: Iterable[Any], own_names: set[str], *, is_frozen: bool) -> None:
    """Raise the same errors as `dataclasses` about frozen classes and their bases."""
    if is_frozen and not own_names.isdisjoint(("__setattr__", "__delattr__")):
        raise TypeError(f"Cannot overwrite attribute __setattr__ or __delattr__ in class {kind.__name__}")
    if any(parameters.frozen is not is_frozen for parameters in bases):
        this, other = ("frozen", "non-frozen") if is_frozen else ("non-frozen", "frozen")
        raise TypeError(f"cannot inherit {this} dataclass from a {other} one")


def _check_fields(kind: Any) -> None:
    """Reject fields that `_initialiser` cannot set.

    Also reject, as `dataclasses` does, a field without a default that follows a field with a
    default.
    """
    missing = dataclasses.MISSING
    for name, annotation in kind.__annotations__.items():
        if name in _RESERVED_NAMES or _is_init_var(annotation):
            raise TypeError(f"{kind.__name__}.{name} is not supported here: use dataclasses.dataclass")
    default = None
    for field in dataclasses.fields(kind):
        if field.init and not field.kw_only:
            has_default = field.default is not missing or field.default_factory is not missing
            if default is not None and not has_default:
                raise TypeError(f"non-default argument {field.name!r} follows default argument {default!r}")
            default = field.name if has_default else default


def _is_init_var(annotation: Any) -> bool:
    if type(annotation) is str:
        return "InitVar" in annotation
    return annotation is dataclasses.InitVar or type(annotation) is dataclasses.InitVar


class _LazyMethod:
    """A placeholder for a method of a dataclass. On first access it generates the method."""

    __slots__ = ("is_frozen", "kind", "name")

    def __init__(self, kind: type, name: str, *, is_frozen: bool) -> None:
        self.kind, self.name, self.is_frozen = kind, name, is_frozen

    def __get__(self, instance: object, owner: type) -> Any:
        """Add the generated method to the class, and return it."""
        fields = dataclasses.fields(self.kind)
        if self.name == "__init__":
            method = _initialiser(self.kind, fields, is_frozen=self.is_frozen)
        elif self.name == "__repr__":
            text = ", ".join(f"{field.name}={{self.{field.name}!r}}" for field in fields if field.repr)
            method = recursive_repr()(
                _function("__repr__(self)", f"return f'{{self.__class__.__qualname__}}({text})'")
            )
        elif self.name == "__eq__":
            compared = [field for field in fields if field.compare]
            method = _function(
                "__eq__(self, other)",
                "if other.__class__ is not self.__class__: return NotImplemented",
                f"return {_values('self', compared)} == {_values('other', compared)}",
            )
        else:
            hashed = [field for field in fields if (field.compare if field.hash is None else field.hash)]
            method = _function("__hash__(self)", f"return hash({_values('self', hashed)})")
        method.__qualname__ = f"{self.kind.__qualname__}.{self.name}"
        setattr(self.kind, self.name, method)
        return method.__get__(instance, owner)


def _values(object_name: str, fields: Iterable[dataclasses.Field[Any]]) -> str:
    return f"({''.join(f'{object_name}.{field.name},' for field in fields)})"


def _initialiser(kind: Any, fields: Iterable[dataclasses.Field[Any]], *, is_frozen: bool) -> Any:
    """Generate ``__init__``.

    Its defaults are set afterwards, because Python takes longer to compile than to set them.
    """
    missing = dataclasses.MISSING
    positional, keyword_only, lines = ["self"], ["*"], []
    defaults: dict[str, Any] = {}
    names: dict[str, Any] = {
        "__name__": kind.__module__,
        "DEFAULT": missing,
        "set_field": object.__setattr__,
    }
    for field in fields:
        name = value = field.name
        has_factory, has_default = field.default_factory is not missing, field.default is not missing
        if field.init:
            (keyword_only if field.kw_only else positional).append(name)
            if has_factory or has_default:
                defaults[name] = field.default
        elif not (has_factory or has_default):
            continue  # `__post_init__` sets this field.
        if has_factory:
            names[f"factory_{name}"] = field.default_factory
            value = (
                f"factory_{name}() if {name} is DEFAULT else {name}" if field.init else f"factory_{name}()"
            )
        elif not field.init:
            names[name] = field.default
        lines.append(f"set_field(self, {name!r}, {value})" if is_frozen else f"self.{name} = {value}")
    if hasattr(kind, "__post_init__"):
        lines.append("self.__post_init__()")
    parameters = ", ".join(positional + (keyword_only if len(keyword_only) > 1 else []))
    method = _function(f"__init__({parameters})", *(lines or ["pass"]), **names)
    method.__defaults__ = tuple(defaults[name] for name in positional if name in defaults)
    method.__kwdefaults__ = {name: defaults[name] for name in keyword_only if name in defaults}
    method.__annotations__ = {field.name: field.type for field in fields if field.init} | {"return": None}
    return method


def _function(head: str, *lines: str, **names: Any) -> Any:
    """Compile a function from its *head* and the *lines* of its body, which may use *names*."""
    exec(f"def {head}:\n" + "".join(f"    {line}\n" for line in lines), names)  # noqa: S102 - as `dataclasses` does
    return names[head.partition("(")[0]]


def _freeze(kind: Any, own_names: set[str]) -> None:
    def change(self: Any, name: str, *value: object) -> None:
        if type(self) is kind or name in kind.__dataclass_fields__:
            verb = "assign to" if value else "delete"
            raise dataclasses.FrozenInstanceError(f"cannot {verb} field {name!r}")
        parent = super(kind, self)
        (parent.__setattr__ if value else parent.__delattr__)(name, *value)

    kind.__setattr__ = kind.__delattr__ = change
    if "__slots__" in vars(kind) and own_names.isdisjoint(("__getstate__", "__setstate__")):
        # Without these two methods, unpickling would assign to the fields of a frozen object.
        kind.__getstate__, kind.__setstate__ = _getstate, _setstate


def _reduce(self: Any) -> tuple[Any, ...]:
    """Pickle a compiled object as a call of its class with the fields as arguments.

    By default pickle would call the class without arguments.
    """
    arguments = {field.name: getattr(self, field.name) for field in dataclasses.fields(self) if field.init}
    kind: Callable[..., object] = type(self)
    return partial(kind, **arguments), ()


def _getstate(self: Any) -> list[Any]:
    return [getattr(self, field.name) for field in dataclasses.fields(self)]


def _setstate(self: Any, state: list[Any]) -> None:
    for field, value in zip(dataclasses.fields(self), state, strict=True):
        object.__setattr__(self, field.name, value)
