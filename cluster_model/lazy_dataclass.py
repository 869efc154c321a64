"""Makes dataclasses that generate each of their methods when it is first looked up.

`dataclasses` describes the fields and generates the source of every method when it makes a class,
and Python compiles each method separately. harrow has hundreds of dataclasses, and a command looks
at the fields and calls the methods of few of them. Generating all methods took a fifth of the
start-up time, and describing all fields a twentieth.
"""

# Plain Python: it changes classes and adds methods to them at run time, which mypyc cannot compile.

import dataclasses
from abc import ABCMeta, update_abstractmethods
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from functools import cache, partial
from itertools import repeat
from reprlib import recursive_repr
from types import CodeType, FunctionType, GenericAlias, MemberDescriptorType, UnionType
from typing import TYPE_CHECKING, Any, ClassVar, Final

if TYPE_CHECKING:
    # mypy and mypyc understand `dataclasses.dataclass`. The function below takes its place at run
    # time, and behaves in the same way. So does `replace`.
    from dataclasses import dataclass, replace
else:

    def replace(instance: Any, /, **changes: Any) -> Any:
        """Return a copy with *changes*, three times as fast as `dataclasses.replace`."""
        kind = type(instance)
        names = _parameters_of(kind)
        return kind(**dict(zip(names, map(getattr, repeat(instance), names), strict=True)) | changes)

    @cache
    def _parameters_of(kind: type) -> tuple[str, ...]:
        return tuple(field.name for field in dataclasses.fields(kind) if field.init)

    @cache
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
        is_hashable = unsafe_hash or (eq and frozen)
        wanted = {"__init__": True, "__repr__": repr, "__eq__": eq, "__hash__": is_hashable}
        generated = [*(name for name, is_wanted in wanted.items() if is_wanted), "__match_args__"]
        parameters = _parameters(repr=repr, eq=eq, unsafe_hash=unsafe_hash, frozen=frozen)

        def process(kind: type) -> type:
            own = vars(kind)
            fields = _Fields(kind, is_frozen=frozen, is_keyword_only=kw_only)
            added = {name: _Lazy(fields, name) for name in generated if name not in own}
            if eq and not is_hashable and "__hash__" not in own:
                added["__hash__"] = None
            if frozen:
                added["__setattr__"] = added["__delattr__"] = _freezer(fields)
            has_state = "__getstate__" in own or "__setstate__" in own
            if frozen and (slots or "__slots__" in own) and not has_state:
                # Without these two methods, unpickling would assign to fields of a frozen object.
                added |= {"__getstate__": _getstate, "__setstate__": _setstate}
            if "__mypyc_attrs__" in own and "__reduce__" not in own:
                added["__reduce__"] = _reduce
            added |= {_FIELDS: _Lazy(fields, _FIELDS), _PARAMETERS: parameters}
            if slots:
                kind = fields.kind = _with_slots(kind, fields, added)
            else:
                fields.set_defaults()
                for name, value in added.items():
                    setattr(kind, name, value)
            return update_abstractmethods(kind) if isinstance(kind, ABCMeta) else kind

        return process


__all__ = ["dataclass", "is_dataclass_type", "replace"]


is_dataclass_type: Final[Callable[[type], bool]] = cache(dataclasses.is_dataclass)
"""Whether a class is a dataclass. Without the cache, it takes long to find out that it is not."""


_FIELDS: Final = "__dataclass_fields__"
_PARAMETERS: Final = "__dataclass_params__"
_RESERVED_NAMES: Final = frozenset({"self", "DEFAULT", "set_field", "set_fields"})
"""The names that `_initialiser` uses beside those of fields."""


@cache
def _parameters(**options: bool) -> Any:
    """Return the record that `dataclasses` keeps of the options of a class."""
    return vars(dataclasses.dataclass(**options)(type("Empty", (), {})))[_PARAMETERS]


def _check_freezing(
    name: str, own: Mapping[str, Any], inherited: Iterable[Mapping[str, Any]], *, is_frozen: bool
) -> None:
    """Raise the same errors as `dataclasses` about frozen classes and their bases."""
    if is_frozen and ("__setattr__" in own or "__delattr__" in own):
        raise TypeError(f"Cannot overwrite attribute __setattr__ or __delattr__ in class {name}")
    for namespace in inherited:
        if _PARAMETERS in namespace and namespace[_PARAMETERS].frozen is not is_frozen:
            this, other = ("frozen", "non-frozen") if is_frozen else ("non-frozen", "frozen")
            raise TypeError(f"cannot inherit {this} dataclass from a {other} one")


class _Fields:
    """The fields of a class. `dataclasses` describes them when they are first looked up."""

    __slots__ = ("_attributes", "_own", "is_frozen", "kind", "names")

    def __init__(self, kind: Any, *, is_frozen: bool, is_keyword_only: bool) -> None:
        self.kind = kind
        self.is_frozen = is_frozen
        self._own: dict[str, bool] = {}
        """The class's own fields, and whether they are keyword-only unless they say otherwise."""
        self._attributes: dict[str, Any] = {}
        """The attributes that declare the defaults of the class's own fields."""
        self.names: dict[str, bool | None] = {}
        """All fields. Whether each positional argument has a default; None for other fields."""
        own, *inherited = map(vars, kind.__mro__[:-1])
        _check_freezing(kind.__name__, own, inherited, is_frozen=is_frozen)
        for namespace in reversed(inherited):
            if _FIELDS in namespace:
                self.names |= _names_in(namespace[_FIELDS])
        for name, annotation in kind.__annotations__.items():
            has_default = name in own or any(name in namespace for namespace in inherited)
            has_default = has_default and type(getattr(kind, name)) is not MemberDescriptorType
            if has_default:
                self._attributes[name] = getattr(kind, name)
            if annotation is dataclasses.KW_ONLY:
                is_keyword_only = True
            elif type(annotation) in _PLAIN_ANNOTATIONS or _is_field(kind, name, annotation):
                self._own[name] = is_keyword_only
                self.names[name] = None if is_keyword_only else False
                if has_default:
                    self._add_default(name)
            else:
                self.names.pop(name, None)
        _check_names(kind, self._own)
        if not is_keyword_only:
            _check_order(self.names)

    def _add_default(self, name: str) -> None:
        """Check the default of a field, and record that the field has one."""
        default = self._attributes[name]
        if type(default) is dataclasses.Field:
            if default.kw_only is _MISSING:
                default.kw_only = self._own[name]
            self.names[name] = _has_default(default)
            default = default.default
        elif not self._own[name]:
            self.names[name] = True
        if not _is_hashable(type(default)):  # type: ignore[arg-type]  # to mypy, `type[Any]` has no hash
            message = f"mutable default {type(default)} for field {name} is not allowed: use default_factory"
            raise ValueError(message)

    def set_defaults(self) -> None:
        """Replace the fields in the attributes of the class by their defaults."""
        for name, attribute in self._attributes.items():
            if type(attribute) is dataclasses.Field and name in vars(self.kind):
                if attribute.default is _MISSING:
                    delattr(self.kind, name)
                else:
                    setattr(self.kind, name, attribute.default)

    def described(self) -> dict[str, dataclasses.Field[Any]]:
        """Return the fields by name, those of base classes first.

        `dataclasses` describes the fields of a class only while it makes one, and to make another
        class just for that takes several times as long.
        """
        fields: dict[str, dataclasses.Field[Any]] = {}
        for base in self.kind.__mro__[-2:0:-1]:
            fields |= getattr(base, _FIELDS, {})
        for name, is_keyword_only in self._own.items():
            default = self._attributes.get(name, _MISSING)
            is_described = type(default) is dataclasses.Field
            field = default if is_described else dataclasses.field(default=default, kw_only=is_keyword_only)
            field.name, field.type = name, self.kind.__annotations__[name]
            field._field_type = _FIELD_TYPE  # noqa: SLF001 - `dataclasses` has no other way to mark a field
            fields[name] = field
        return {name: fields[name] for name in self.names}


_MISSING: Final = dataclasses.MISSING
_EXAMPLE: Final[Any] = dataclasses.dataclass(init=False, repr=False, eq=False)(
    type("Example", (), {"__doc__": "A class with a field.", "__annotations__": {"field": int}})
)
_FIELD_TYPE: Final = vars(_EXAMPLE)[_FIELDS]["field"]._field_type  # noqa: SLF001 - it has no public name
"""The mark that `dataclasses.fields` looks for, which class variables lack."""


@cache
def _is_hashable(kind: type) -> bool:
    """Return whether objects have a hash. ``kind.__hash__`` would generate that of a dataclass."""
    return next(vars(base)["__hash__"] for base in kind.__mro__ if "__hash__" in vars(base)) is not None


def _check_names(kind: type, fields: Mapping[str, bool]) -> None:
    """Reject a reserved name, and, as `dataclasses` does, a field without a type annotation."""
    for name in _RESERVED_NAMES.intersection(fields):
        raise _unsupported(kind, name)
    for name, value in vars(kind).items():
        if type(value) is dataclasses.Field and name not in fields and name not in kind.__annotations__:
            raise TypeError(f"{name!r} is a field but has no type annotation")


def _names_in(fields: Any) -> Mapping[str, bool | None]:
    if type(fields) is _Lazy:
        return fields.fields.names
    return {
        name: _has_default(field)
        for name, field in fields.items()
        if _is_field(type(field), name, field.type)
    }


def _has_default(field: dataclasses.Field[Any]) -> bool | None:
    """Return whether a positional argument has a default; None for other fields."""
    if not field.init or field.kw_only:
        return None
    return field.default is not _MISSING or field.default_factory is not _MISSING


_PLAIN_ANNOTATIONS: Final = frozenset({type, GenericAlias, UnionType})


def _is_field(kind: type, name: str, annotation: Any) -> bool:
    """Return whether an annotation is of a field, not of a class variable."""
    if type(annotation) is str:
        special = annotation.removeprefix("dataclasses.").removeprefix("typing.")
        is_init_var, is_class_var = special.startswith("InitVar"), special.startswith("ClassVar")
    else:
        origin = getattr(annotation, "__origin__", annotation)
        is_init_var = origin is dataclasses.InitVar or type(origin) is dataclasses.InitVar
        is_class_var = origin is ClassVar
    if is_init_var:
        raise _unsupported(kind, name)
    return not is_class_var


def _unsupported(kind: type, name: str) -> TypeError:
    return TypeError(f"{kind.__name__}.{name} is not supported here: use dataclasses.dataclass")


def _check_order(names: Mapping[str, bool | None]) -> None:
    """Reject a field without a default after a field with one, as `dataclasses` does."""
    with_default = None
    for name, has_default in names.items():
        if has_default:
            with_default = name
        elif has_default is False and with_default is not None:
            message = f"non-default argument {name!r} follows default argument {with_default!r}"
            raise TypeError(message)


def _with_slots(kind: Any, fields: _Fields, added: dict[str, Any]) -> Any:
    """Return the same class with *added* attributes, and with slots in place of ``__dict__``."""
    if "__slots__" in vars(kind):
        raise TypeError(f"{kind.__name__} already specifies __slots__")
    inherited = set(_slots_of(kind.__mro__[1:-1]))
    left_out = {"__dict__", "__weakref__", *fields.names}
    content = {name: value for name, value in vars(kind).items() if name not in left_out}
    content["__slots__"] = tuple(name for name in fields.names if name not in inherited)
    copied = type(kind)(kind.__name__, kind.__bases__, content | added)
    copied.__qualname__ = kind.__qualname__
    return copied


def _slots_of(kinds: Iterable[type]) -> Iterator[str]:
    for kind in kinds:
        slots: str | Collection[str] = vars(kind).get("__slots__", ())
        yield from (slots,) if isinstance(slots, str) else slots


class _Lazy:
    """A placeholder for an attribute of a dataclass. On first access it generates the attribute."""

    __slots__ = ("fields", "name")

    def __init__(self, fields: _Fields, name: str) -> None:
        self.fields, self.name = fields, name

    def __get__(self, instance: object, owner: type) -> Any:
        """Add what is generated to the class, and return it."""
        kind = self.fields.kind
        if self.name == _FIELDS:
            generated: Any = self.fields.described()
        elif self.name == "__match_args__":
            generated = tuple(name for name, default in self.fields.names.items() if default is not None)
        else:
            generated = _method(kind, self.name, is_frozen=self.fields.is_frozen)
        setattr(kind, self.name, generated)
        return generated.__get__(instance, owner) if callable(generated) else generated


def _method(kind: type, name: str, *, is_frozen: bool) -> Any:
    """Generate a method of a dataclass."""
    fields = dataclasses.fields(kind)
    if name == "__init__":
        method = _initialiser(kind, fields, is_frozen=is_frozen)
    elif name == "__repr__":
        method = _representation([field.name for field in fields if field.repr])
    elif name == "__eq__":
        compared = [field.name for field in fields if field.compare]
        method = _function(
            "__eq__(self, other)",
            "if other.__class__ is not self.__class__: return NotImplemented",
            f"return {_values('self', compared)} == {_values('other', compared)}",
            fields=compared,
        )
    else:
        hashed = [field for field in fields if (field.compare if field.hash is None else field.hash)]
        names = [field.name for field in hashed]
        method = _function("__hash__(self)", f"return hash({_values('self', names)})", fields=names)
    method.__qualname__ = f"{kind.__qualname__}.{name}"
    method.__module__ = kind.__module__
    return method


def _representation(names: Sequence[str]) -> Any:
    @recursive_repr()
    def __repr__(self: Any) -> str:  # noqa: N807 - its name in tracebacks
        text = ", ".join([f"{name}={getattr(self, name)!r}" for name in names])
        return f"{self.__class__.__qualname__}({text})"

    return __repr__


def _values(object_name: str, names: Sequence[str]) -> str:
    return f"({''.join(f'{object_name}.f{index},' for index in range(len(names)))})"


def _initialiser(kind: Any, fields: Iterable[dataclasses.Field[Any]], *, is_frozen: bool) -> Any:
    """Generate ``__init__``.

    Its defaults are set afterwards, because Python takes longer to compile than to set them.
    """
    positional: list[str] = []
    keyword_only: list[str] = []
    fields_set: list[str] = []
    values: list[str] = []
    lines: list[str] = []
    defaults: dict[str, Any] = {}
    known: dict[str, Any] = {
        "__name__": kind.__module__,
        "DEFAULT": _MISSING,
        "set_field": object.__setattr__,
    }
    for field in fields:
        has_factory, has_default = field.default_factory is not _MISSING, field.default is not _MISSING
        name = value = f"f{len(fields_set)}"
        if field.init:
            (keyword_only if field.kw_only else positional).append(name)
            if has_factory or has_default:
                defaults[name] = field.default
        elif not (has_factory or has_default):
            continue  # `__post_init__` sets this field.
        fields_set.append(field.name)
        if has_factory:
            known[f"factory_{name}"] = field.default_factory
            value = (
                f"factory_{name}() if {name} is DEFAULT else {name}" if field.init else f"factory_{name}()"
            )
        elif not field.init:
            known[field.name] = field.default
        values.append(value)
    if is_frozen and len(values) > _FIELDS_ONE_BY_ONE:
        known["set_fields"] = _setter(fields_set)
        lines.append(f"set_fields(self, ({', '.join(values)}))")
    else:
        setting = "set_field(self, 'f{0}', {1})" if is_frozen else "self.f{0} = {1}"
        lines += [setting.format(index, value) for index, value in enumerate(values)]
    if hasattr(kind, "__post_init__"):
        lines.append("self.__post_init__()")
    parameters = ", ".join(["self", *positional, *keyword_only])
    method = _function(
        f"__init__({parameters})",
        *(lines or ["pass"]),
        fields=fields_set,
        keyword_only=len(keyword_only),
        **known,
    )
    method.__defaults__ = tuple(defaults[name] for name in positional if name in defaults)
    method.__kwdefaults__ = {
        fields_set[int(name[1:])]: defaults[name] for name in keyword_only if name in defaults
    }
    method.__annotations__ = {field.name: field.type for field in fields if field.init} | {"return": None}
    return method


_FIELDS_ONE_BY_ONE: Final = 12
"""The most fields of a frozen class that ``__init__`` sets with a statement for each.

A loop takes a little longer to run. But classes with more fields are settings and plans, of which
there are few objects, and Python takes three times as long to compile so many statements.
"""


def _setter(names: Sequence[str]) -> Callable[[Any, Sequence[Any]], None]:
    """Return a function that sets fields of a frozen object."""
    set_field = object.__setattr__

    def set_fields(self: Any, values: Sequence[Any]) -> None:
        any(map(set_field, repeat(self), names, values))  # Sets all, as `set_field` returns None.

    return set_fields


def _function(head: str, *lines: str, fields: Sequence[str], keyword_only: int = 0, **known: Any) -> Any:
    """Make a function from its *head* and the *lines* of its body.

    They call the *fields* f0, f1, and so on, because Python takes far longer to compile a function
    than to rename what it uses. For the same reason *head* does not say that the last parameters
    are *keyword_only*. *known* are the global names of the function.
    """
    code = _code(head, lines)
    names = {f"f{index}": name for index, name in enumerate(fields)}
    renamed = code.replace(
        co_argcount=code.co_argcount - keyword_only,
        co_kwonlyargcount=keyword_only,
        co_varnames=tuple([names.get(name, name) for name in code.co_varnames]),
        co_names=tuple([names.get(name, name) for name in code.co_names]),
        co_consts=tuple([names.get(constant, constant) for constant in code.co_consts]),
    )
    return FunctionType(renamed, known)


@cache
def _code(head: str, lines: tuple[str, ...]) -> CodeType:
    """Compile a function. Many classes have the same number and kinds of fields, and share it."""
    text = f"def {head}:\n" + "".join(f"    {line}\n" for line in lines)
    module = compile(text, "<string>", "exec", dont_inherit=True)
    return next(constant for constant in module.co_consts if type(constant) is CodeType)


def _freezer(fields: _Fields) -> Callable[..., None]:
    """Return ``__setattr__`` and ``__delattr__`` of a frozen class."""

    def change(self: Any, name: str, *value: object) -> None:
        kind = fields.kind
        if type(self) is kind or name in fields.names:
            verb = "assign to" if value else "delete"
            raise dataclasses.FrozenInstanceError(f"cannot {verb} field {name!r}")
        parent = super(kind, self)
        (parent.__setattr__ if value else parent.__delattr__)(name, *value)

    return change


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
