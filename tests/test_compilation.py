"""Which core runs, the compiled one or plain Python, and that both give the same results.

Without a compiled core the comparison is skipped. CI compiles the core, and runs the comparison.
"""

import pickle
import re
import shutil
import subprocess
import sys
from dataclasses import fields
from pathlib import Path
from types import ModuleType
from typing import Any

import mypy.api
import pytest

from harrow import compilation
from harrow.campaigns.run.runner import run_plan
from harrow.checks import judge  # noqa: F401 - importing it registers the link kinds of all rules
from harrow.checks.link import KINDS, operand_kinds
from harrow.cluster_model import protocol
from harrow.cluster_model.coordinators import protocol as coordinators_protocol
from harrow.cluster_model.events import BrokerStarted, FieldKind, HighWatermarkSet
from harrow.cluster_model.kraft import protocol as kraft_protocol
from harrow.cluster_model.sim.host import Host
from harrow.cluster_model.trace import Clock, Trace
from harrow.cluster_model.zookeeper.service.protocol import ZooKeeperRequest
from hatch_build import (
    MYPY_OPTIONS,
    compiled_modules,
    copy_sources,
    stays_plain,
    with_initialisers,
    with_operands,
    with_rows,
)
from tests.library_swarm import library_swarm
from tests.patience import PATIENCE_S
from tests.plain_environment import ROOT, plain_environment

DATACLASSES = """
from dataclasses import field
from typing import ClassVar

from harrow.cluster_model.lazy_dataclass import dataclass

@dataclass(slots=True)
class Request:
    api: ClassVar[str] = "Fetch"
    replica: int
    forgotten: tuple[str, ...] = ()

@dataclass(frozen=True, slots=True)
class Base:
    one: int

@dataclass(frozen=True, slots=True)
class Derived(Base):
    two: int = 2
    names: list[str] = field(default_factory=list, hash=False)
    three: int = field(init=False, default=3)
    four: int = field(kw_only=True, default=4)

@dataclass(slots=True, kw_only=True, eq=False)
class Batch:
    values: tuple[str, ...]
    size: int = field(init=False)

    def __post_init__(self) -> None:
        self.size = len(self.values)
"""

LINKS = """
from harrow.checks.link import OWN_ACTION
from harrow.checks.link import link as kind_of_link
from harrow.cluster_model import events

@kind_of_link("NAME", needs_nothing_because=OWN_ACTION)
def stated(*, offset: events.Offset, state: events.Text | None = "open") -> str:
    \"\"\"State an offset.\"\"\"
    return f"{offset} is {state}"
"""

PRINT_COMPILATION = "from harrow.compilation import compilation; import harrow.core; print(compilation()[0], harrow.core.__spec__.loader)"


def run_python(*arguments: str, **environment: str) -> str:
    completed = subprocess.run(
        [sys.executable, *arguments],
        cwd=ROOT,
        env={**plain_environment(), "HARROW_PURE": "", **environment},
        capture_output=True,
        text=True,
        timeout=PATIENCE_S,
        check=False,
    )
    assert completed.returncode == 0, completed.stdout + completed.stderr
    return completed.stdout


EMITTER = """
from harrow.cluster_model import events
from harrow.cluster_model.events import (
    BrokerStarted,
    HighWatermarkSet,
)

def act(host, kind):
    host.emit(BrokerStarted, 1)
    host.trace.emit(events.HighWatermarkSet, 1, "t-0é", 5)
    host.emit(
        HighWatermarkSet,
        *(2, "t-0"),
        7,
    )
    host.emit(HighWatermarkSet, 3, "t-0", len([each for each in (
        1,  # one
        2,
    )]))
    host.emit(kind, 4)
"""


class FakeHost(Host):
    def __init__(self) -> None:
        clock = Clock()
        clock.now_us = 8
        self.trace = Trace(clock)


def classes(source: str) -> dict[str, Any]:
    namespace: dict[str, Any] = {"__name__": __name__}
    exec(source, namespace)  # noqa: S102 - source text of this file
    return namespace


@pytest.mark.parametrize("imported", ["dataclass", "dataclass, replace"])
def test_a_class_variable_becomes_a_field_whatever_else_its_module_imports(imported: str) -> None:
    source = f"""
from typing import ClassVar

from harrow.cluster_model.lazy_dataclass import {imported}

@dataclass(slots=True)
class Request:
    api: ClassVar[str] = "Fetch"
"""
    request = classes(with_initialisers(source))["Request"]
    assert ([field.name for field in fields(request)], request().api) == (["api"], "Fetch")


def test_a_written_out_initialiser_behaves_like_that_of_the_dataclass() -> None:
    rewritten = with_initialisers(DATACLASSES)
    assert rewritten.count("def __init__(self, ") == 4
    # In plain Python a class cannot have both the attribute and the slot. Instances of compiled
    # classes have their own attribute.
    class_attribute_line = "setattr(Request, 'api', 'Fetch')\n"
    assert rewritten.count(class_attribute_line) == 1
    plain, other = classes(DATACLASSES), classes(rewritten.replace(class_attribute_line, ""))
    calls: tuple[tuple[str, tuple[Any, ...], dict[str, Any]], ...] = (
        ("Request", (1,), {}),
        ("Request", (1,), {"forgotten": ("t-0",)}),
        ("Derived", (1,), {}),
        ("Derived", (1, 3, ["t"]), {"four": 5}),
        ("Batch", (), {"values": ("m0", "m1")}),
    )
    for name, values, named in calls:
        actual, expected = other[name](*values, **named), plain[name](*values, **named)
        for item in fields(expected):
            assert getattr(actual, item.name) == getattr(expected, item.name), item.name
    assert other["Request"](1).api == plain["Request"].api
    assert other["Derived"](1).names is not other["Derived"](1).names
    assert hash(other["Derived"](1)) == hash(other["Derived"](1))
    for namespace in (plain, other):
        with pytest.raises(TypeError):
            namespace["Batch"](("m0",))
        with pytest.raises(TypeError):
            namespace["Derived"](1, 2, [], 5)


def test_compiled_code_makes_the_same_rows_of_a_trace() -> None:
    rewritten = with_rows(EMITTER)
    assert rewritten.count(".emit(") == 2
    assert rewritten.count("_number: Final[int] = ") == 3
    plain, other = FakeHost(), FakeHost()
    subscribed: list[list[tuple[object, ...]]] = []
    for host, source in ((plain, EMITTER), (other, rewritten)):
        seen: list[tuple[object, ...]] = []
        host.trace.subscribe(HighWatermarkSet, lambda *fields, seen=seen: seen.append(fields))
        classes(source)["act"](host, BrokerStarted)
        subscribed.append(seen)
    assert list(other.trace.events) == list(plain.trace.events)
    assert len(plain.trace.events) == 5
    assert subscribed[0] == subscribed[1] == [(1, "t-0é", 5), (2, "t-0", 7), (3, "t-0", 2)]


@pytest.mark.parametrize(
    ("source", "folder", "plain"),
    [
        ("RULE = 1\n", "", False),
        ('"""Settings."""\n\n# Plain Python: a table.\n', "", True),
        ("RULE = 1\n", "# Plain Python: tables.\n", True),
        ("# Plain Python:\n", "", False),  # without a reason
    ],
)
def test_a_file_can_declare_that_it_is_not_compiled(
    source: str, folder: str, plain: bool, tmp_path: Path
) -> None:
    (tmp_path / "__init__.py").write_text(folder, encoding="utf-8")
    (tmp_path / "file.py").write_text(source, encoding="utf-8")
    assert stays_plain(tmp_path / "file.py") == plain


def test_a_compiled_kind_of_link_has_the_operands_of_its_source(monkeypatch: pytest.MonkeyPatch) -> None:
    described = []
    for name, text in (("plain", LINKS), ("copy", with_operands(LINKS))):
        module = ModuleType(f"links_of_{name}")
        monkeypatch.setitem(sys.modules, module.__name__, module)
        exec(text.replace("NAME", name), vars(module))  # noqa: S102 - source text of this file
        kind = KINDS.pop(name)
        monkeypatch.setitem(KINDS, name, kind)
        phrase = kind.phrase
        described.append((operand_kinds(name), phrase.__kwdefaults__, phrase.__doc__, phrase(offset=3)))
    assert described[0] == described[1]
    assert described[0][0] == {"offset": FieldKind.OFFSET, "state": FieldKind.TEXT}


def test_the_core_compiles_where_harrow_is_not_installed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """pip builds a wheel in an environment of its own, which contains no harrow."""
    monkeypatch.chdir(tmp_path)
    sources = copy_sources(compiled_modules(), tmp_path)
    report, errors, status = mypy.api.run([*MYPY_OPTIONS, "--no-site-packages", *sources])
    assert status == 0, report + errors


def test_no_compiled_file_reads_annotations_which_compiled_functions_lack() -> None:
    reading = [
        path
        for path in compiled_modules()
        if re.search(r"\b(__annotations__|get_type_hints)\b", (ROOT / path).read_text("utf-8"))
    ]
    assert reading == []


@pytest.fixture
def package(tmp_path: Path) -> Path:
    """Return a package that looks compiled, but whose shared library is invalid."""
    home = tmp_path / "harrow"
    home.mkdir()
    for name in ("__init__.py", "compilation.py"):
        shutil.copy(ROOT / "src" / "harrow" / name, home)
    (home / "core.py").write_text("", encoding="utf-8")
    (home / compilation.LIBRARY.name).write_text("", encoding="utf-8")
    line = compilation.source_line(home, "core.py", "harrow.core")
    (home / compilation.SOURCES.name).write_text(f"{line}\n", encoding="utf-8")
    return home


def test_the_compiled_core_is_imported_unless_plain_python_is_requested(package: Path) -> None:
    place = str(package.parent)
    with pytest.raises(AssertionError, match="ImportError"):
        run_python("-c", PRINT_COMPILATION, PYTHONPATH=place)
    assert run_python("-c", PRINT_COMPILATION, PYTHONPATH=place, HARROW_PURE="1").startswith(compilation.PURE)


@pytest.mark.parametrize("change", ["changed", "deleted"])
def test_a_core_compiled_from_other_sources_is_never_imported(package: Path, change: str) -> None:
    if change == "changed":
        (package / "core.py").write_text("CHANGED = True\n", encoding="utf-8")
    else:
        (package / "other.py").write_text("", encoding="utf-8")
        line = compilation.source_line(package, "other.py", "")
        (package / "other.py").unlink()
        with (package / compilation.SOURCES.name).open("a", encoding="utf-8") as sources:
            sources.write(f"{line}\n")
    assert run_python("-c", PRINT_COMPILATION, PYTHONPATH=str(package.parent)).startswith(compilation.STALE)


@pytest.mark.skipif(compilation.compilation()[0] != compilation.COMPILED, reason="nothing is compiled")
def test_compiled_or_not_a_seed_gives_the_same_digests_verdicts_and_findings() -> None:
    printed = run_python("-m", "benchmarks.compiled", "10")
    assert printed.count(" 10 seeds, 0 of them different") == printed.count(" seeds, ") > 0


def test_class_variables_belong_to_the_class_in_compiled_code_too() -> None:
    """Compiled code could return a descriptor, which cannot be used as a key and equals nothing."""
    requests = (
        protocol.ProduceRequest,
        protocol.FetchRequest,
        ZooKeeperRequest,
        coordinators_protocol.JoinGroupRequest,
        kraft_protocol.VoteRequest,
    )
    assert [request.api for request in requests] == ["Produce", "Fetch", "ZooKeeper", "JoinGroup", "Vote"]
    assert protocol.MetadataRequest().api == protocol.MetadataRequest.api


def test_the_result_of_a_run_can_be_pickled() -> None:
    result = run_plan(library_swarm(), 1)
    sent = pickle.loads(pickle.dumps(result))
    assert [operation.as_mapping() for operation in sent.evidence.operations] == [
        operation.as_mapping() for operation in result.evidence.operations
    ]
    assert sent.verdict == result.verdict
    assert {
        name: {broker: log.values() for broker, log in logs.items()}
        for name, logs in sent.evidence.replicas.items()
    } == {
        name: {broker: log.values() for broker, log in logs.items()}
        for name, logs in result.evidence.replicas.items()
    }


def test_the_version_reports_requested_plain_python() -> None:
    assert run_python("-m", "harrow", "--version", HARROW_PURE="1", PYTHONPATH="src").endswith(
        "(pure Python)\n"
    )


def test_ci_runs_tests_that_need_plain_python() -> None:
    """CI runs all other tests with the compiled core, which skips these."""
    run = (ROOT / ".ci" / "run").read_text(encoding="utf-8")
    named = [
        ROOT / word for word in run.split("make pure")[1].split("make regress")[0].replace('"', " ").split()
    ]
    for file in (ROOT / "tests").rglob("test_*.py"):
        if "import patches_the_model" in file.read_text(encoding="utf-8"):
            assert any(file.is_relative_to(path) for path in named), file
