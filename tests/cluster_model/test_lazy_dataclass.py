"""Lazy dataclasses behave like those of `dataclasses`, but generate their methods on first use."""

import copy
import dataclasses
import inspect
import pickle
from collections.abc import Callable
from functools import partial
from itertools import product
from pathlib import Path
from typing import Any, ClassVar

import pytest

from harrow.cluster_model import lazy_dataclass
from harrow.cluster_model.lazy_dataclass import dataclass, replace

ROOT = Path(__file__).parents[2]


def parts(decorate: Callable[..., Any], **options: bool) -> type[Any]:
    """Return a dataclass with each kind of field, made by one of both decorators."""

    @decorate(frozen=options["frozen"], eq=options["eq"])
    class Base:
        first: int
        second: str = "two"

    @decorate(**options)
    class Part(Base):
        kind: ClassVar[str] = "part"
        names: list[str] = dataclasses.field(default_factory=list)
        hidden: int = dataclasses.field(default=3, repr=False, compare=False)
        after: int = dataclasses.field(init=False, default=4)
        made: list[int] = dataclasses.field(init=False, default_factory=list, hash=False)
        named: int = dataclasses.field(default=5, kw_only=True)
        _: dataclasses.KW_ONLY
        last: int = 6

    return Part


def outcome(call: Callable[[], Any]) -> Any:
    """Return the result or the error of a call, without numbers that differ between two classes."""
    try:
        return call()
    except (AttributeError, TypeError) as error:
        return type(error), str(error)


OPTIONS = [
    dict(zip(("frozen", "eq", "kw_only", "repr", "slots", "unsafe_hash"), values, strict=True))
    for values in product((False, True), repeat=6)
]


@pytest.mark.parametrize(
    "options", OPTIONS, ids=lambda options: "-".join(n for n, on in options.items() if on)
)
def test_a_class_behaves_as_if_dataclasses_had_made_it(options: dict[str, bool]) -> None:
    lazy: Any = parts(dataclass, **options)
    eager: Any = parts(dataclasses.dataclass, **options)
    assert lazy.__match_args__ == eager.__match_args__
    assert list(inspect.signature(lazy).parameters) == list(inspect.signature(eager).parameters)
    calls: list[tuple[tuple[Any, ...], dict[str, Any]]] = [
        ((1,), {}),
        ((1, "b", ["n"], 7), {"named": 8}),
        ((1, "b", ["n"], 7, 8), {}),
        ((), {}),
        ((1,), {"names": ["n"], "hidden": 9}),
        ((1,), {"after": 9}),
    ]
    for arguments, named in calls:
        one, two = (outcome(partial(lazy, *arguments, **named)) for _ in range(2))
        other, another = (outcome(partial(eager, *arguments, **named)) for _ in range(2))
        if not isinstance(other, eager):
            assert one == other
            continue
        assert dataclasses.astuple(one) == dataclasses.astuple(other)
        assert ((one == two), (one != two), one == other) == (other == another, other != another, False)
        if options["repr"]:
            assert repr(one) == repr(other)
        hashes = [outcome(partial(hash, part)) for part in (one, two, other, another)]
        assert isinstance(hashes[0], int) == isinstance(hashes[2], int)
        assert (hashes[0] == hashes[1]) == (hashes[2] == hashes[3])
        # Before Python 3.12 a frozen class with slots raises a `TypeError` for other names.
        for name in ("first", "hidden", *(() if options["slots"] else ("other",))):
            assert outcome(partial(setattr, one, name, 1)) == outcome(partial(setattr, other, name, 1))
            assert outcome(partial(delattr, two, name)) == outcome(partial(delattr, another, name))


@pytest.mark.parametrize("frozen", [False, True])
@pytest.mark.parametrize("fields", [1, 12, 13, 40])
def test_an_object_of_any_number_of_fields_has_the_values_that_its_caller_gives(
    *, fields: int, frozen: bool
) -> None:
    def outcomes(decorate: Callable[..., Any]) -> list[Any]:
        names = [f"field{index}" for index in range(fields)]
        content: dict[str, Any] = {"__annotations__": dict.fromkeys([*names, "made", "last"], object)}
        content |= {"made": dataclasses.field(default_factory=list), "last": 9}
        kind = decorate(frozen=frozen)(type("Part", (), content))
        values = [f"value of {name}" for name in names]
        made = [outcome(partial(kind, *values, *more)) for more in ((), ([1],), ([1], 2), ([1], 2, 3))]
        return [dataclasses.astuple(part) if isinstance(part, kind) else part[0] for part in made]

    assert outcomes(dataclass) == outcomes(dataclasses.dataclass)


@pytest.mark.parametrize("keyword_only", [False, True])
def test_fields_are_described_as_dataclasses_describes_them(*, keyword_only: bool) -> None:
    options = dict.fromkeys(("frozen", "eq", "repr", "slots", "unsafe_hash"), False)
    lazy, eager = (
        [
            {name: getattr(field, name) for name in dataclasses.Field.__slots__}
            for field in dataclasses.fields(parts(decorate, **options, kw_only=keyword_only))
        ]
        for decorate in (dataclass, dataclasses.dataclass)
    )
    assert lazy == eager


@pytest.mark.parametrize(
    "options", OPTIONS, ids=lambda options: "-".join(n for n, on in options.items() if on)
)
def test_a_copy_with_changes_is_the_one_that_dataclasses_would_make(options: dict[str, bool]) -> None:
    kind = parts(dataclass, **options)
    original = kind(first=1, names=["a"], named=8)
    for changes in ({}, {"first": 2}, {"second": "three", "last": 7}, {"hidden": 0, "named": 9}):
        copied, expected = (copy_with(original, **changes) for copy_with in (replace, dataclasses.replace))
        names = [field.name for field in dataclasses.fields(kind)]
        assert [getattr(copied, name) for name in names] == [getattr(expected, name) for name in names]
        assert copied.names is original.names
        assert type(copied) is kind
    assert outcome(lambda: replace(original, unknown=1)) == outcome(
        lambda: dataclasses.replace(original, unknown=1)
    )


def test_a_class_variable_is_no_field_even_if_a_base_class_has_a_field_of_that_name() -> None:
    def parameters(decorate: Callable[..., Any]) -> list[str]:
        @decorate()
        class Base:
            kind: str = "base"

        @decorate()
        class Part(Base):
            kind: ClassVar[str] = "part"  # type: ignore[misc]  # the test is about this clash
            number: int = 1

        return list(inspect.signature(Part).parameters)

    assert parameters(dataclass) == parameters(dataclasses.dataclass)


def test_classes_with_the_same_number_of_plain_fields_share_compiled_code() -> None:
    @dataclass()
    class Point:
        x: int
        y: int = 0

    @dataclass()
    class Mark:
        line: int
        column: int = 1

    @dataclass(kw_only=True)
    class Size:
        width: int = 2
        height: int

    assert Point(1, 2) == Point(1, 2)
    compiled = lazy_dataclass._code.cache_info().misses
    assert Mark(3) == Mark(3, 1)
    assert (Mark(3).line, Mark(3).column) == (3, 1)
    assert Size(height=5) == Size(width=2, height=5)
    assert (Size(height=5).width, Size(height=5).height) == (2, 5)
    assert lazy_dataclass._code.cache_info().misses == compiled


@dataclass(frozen=True, slots=True)
class Place:
    broker: int
    rack: str = ""


def test_a_frozen_class_with_slots_can_be_pickled_and_copied() -> None:
    place = Place(1, "a")
    assert pickle.loads(pickle.dumps(place)) == place
    assert copy.deepcopy(place) == place
    assert dataclasses.replace(place, rack="b") == Place(1, "b")


def test_post_init_sees_all_fields_and_sets_those_that_the_caller_cannot() -> None:
    @dataclass(slots=True)
    class Sum:
        one: int
        other: int = 2
        total: int = dataclasses.field(init=False)

        def __post_init__(self) -> None:
            self.total = self.one + self.other

    assert Sum(1).total == 3


def test_a_method_is_generated_when_it_is_first_looked_up(monkeypatch: pytest.MonkeyPatch) -> None:
    written: list[str] = []
    write = lazy_dataclass._function

    def noted(head: str, *lines: str, **names: Any) -> Any:
        written.append(head.partition("(")[0])
        return write(head, *lines, **names)

    monkeypatch.setattr(lazy_dataclass, "_function", noted)

    @dataclass(frozen=True)
    class Point:
        x: int

    assert written == []
    origin = Point(0)

    @dataclass()
    class Line:
        start: Point = origin

    assert written == ["__init__"]
    assert {Point(1), Point(1)} == {Point(1)}
    assert sorted(written) == ["__eq__", "__hash__", "__init__"]


def test_fields_are_described_when_they_are_first_looked_up() -> None:
    @dataclass(frozen=True, slots=True)
    class Point:
        x: int
        kind: ClassVar[str] = "point"

    assert not isinstance(vars(Point)["__dataclass_fields__"], dict)
    assert [field.name for field in dataclasses.fields(Point)] == ["x"]
    assert dataclasses.replace(Point(1), x=2) == Point(2)


def test_the_rooms_of_harrow_make_and_copy_dataclasses_the_fast_way() -> None:
    rooms = ("cluster_model", "faults", "checks", "campaigns", "live_cluster", "cli")
    paths = [path for room in rooms for path in (ROOT / room).rglob("*.py")]
    eager = [
        path.relative_to(ROOT).as_posix()
        for path in paths
        for line in path.read_text(encoding="utf-8").splitlines()
        if line.startswith("from dataclasses import")
        and not {"dataclass", "replace"}.isdisjoint(line.partition("import")[2].replace(",", " ").split())
    ]
    assert eager == []


@dataclass(frozen=True, slots=True, kw_only=True)
class LazyBase:
    first: int = 1


def test_a_frozen_dataclass_of_another_library_may_inherit_from_a_lazy_one() -> None:
    @dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
    class Outside(LazyBase):
        second: int = 2

    outside = Outside(first=3)
    assert (outside.first, outside.second) == (3, 2)
    with pytest.raises(dataclasses.FrozenInstanceError):
        outside.first = 4  # type: ignore[misc]


def frozen_from_open(decorate: Callable[..., Any]) -> None:
    @decorate()
    class Open:
        first: int

    @decorate(frozen=True)
    class Frozen(Open):
        pass


def open_from_frozen(decorate: Callable[..., Any]) -> None:
    @decorate(frozen=True)
    class Frozen:
        first: int

    @decorate()
    class Open(Frozen):
        pass


def own_freeze(decorate: Callable[..., Any]) -> None:
    @decorate(frozen=True)
    class Frozen:
        first: int

        def __setattr__(self, name: str, value: object) -> None:
            raise AttributeError(name)


def default_first(decorate: Callable[..., Any]) -> None:
    @decorate()
    class Mixed:
        first: int = 1
        second: int


def default_in_base(decorate: Callable[..., Any]) -> None:
    @decorate()
    class Base:
        first: int = 1

    @decorate()
    class Mixed(Base):
        second: int


def default_before_field(decorate: Callable[..., Any]) -> None:
    @decorate()
    class Mixed:
        first: int = 1
        second: int = dataclasses.field(repr=False)


def field_without_type(decorate: Callable[..., Any]) -> None:
    @decorate()
    class Untyped:
        first = dataclasses.field()


def mutable_default(decorate: Callable[..., Any]) -> None:
    @decorate(frozen=True)
    class Shared(LazyBase):
        names: list[str] = []  # noqa: RUF012 - this is the mistake


MISTAKES = [
    frozen_from_open,
    open_from_frozen,
    own_freeze,
    default_first,
    default_in_base,
    default_before_field,
    field_without_type,
]


@pytest.mark.parametrize("mistake", MISTAKES, ids=lambda mistake: mistake.__name__)
def test_a_mistake_in_a_class_raises_the_error_of_dataclasses(mistake: Callable[..., None]) -> None:
    with pytest.raises(TypeError) as expected:
        mistake(dataclasses.dataclass)
    with pytest.raises(TypeError) as raised:
        mistake(dataclass)
    # Newer versions of Python describe some of these mistakes in other words.
    assert raised.type is expected.type


def test_a_mistake_in_a_class_leaves_its_frozen_base_frozen() -> None:
    with pytest.raises(ValueError, match="mutable default"):
        mutable_default(dataclass)
    with pytest.raises(TypeError, match="frozen"):

        @dataclasses.dataclass
        class Open(LazyBase):  # type: ignore[misc]
            second: int = 2


def test_a_field_that_takes_no_attribute_is_refused() -> None:
    with pytest.raises(TypeError, match="first is not supported"):

        @dataclass()
        class Initialised:
            first: dataclasses.InitVar[int]
