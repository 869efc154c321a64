"""The core imports only the standard library, and modules do not import each other in cycles."""

import ast
import subprocess
import sys
from graphlib import TopologicalSorter
from pathlib import Path

import pytest

from harrow.cluster_model.settings import SETTINGS

ROOT = Path(__file__).parents[1]
ROOMS = ("cluster_model", "faults", "checks", "campaigns", "live_cluster", "cli", "pytest_harrow")
IMPORTABLE_ROOMS = {
    "cluster_model": set[str](),
    "faults": {"harrow.cluster_model"},
    "checks": {"harrow.cluster_model"},
}


def imported(path: Path) -> set[str]:
    names: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}: imports are absolute"
            names.add(node.module or "")
    return {
        ".".join(name.split(".")[:2]) if name.startswith("harrow.") else name.split(".")[0] for name in names
    }


@pytest.mark.parametrize("room", IMPORTABLE_ROOMS)
def test_the_core_imports_the_standard_library_and_the_rooms_below_it(room: str) -> None:
    allowed = sys.stdlib_module_names | IMPORTABLE_ROOMS[room] | {f"harrow.{room}"}
    for path in sorted((ROOT / room).rglob("*.py")):
        # Only mypy reads mypy_extensions, so it is needed to compile but not to run.
        for_mypy = {"mypy_extensions"} if path.name == "compiling.py" else set[str]()
        assert imported(path) <= allowed | for_mypy, path


def test_a_machine_with_only_python_runs_plans() -> None:
    """Python runs in isolated mode, without the packages of this environment."""
    script = f"import sys; sys.path.insert(0, {str(ROOT / 'src')!r}); import harrow.campaigns.run.runner, harrow.campaigns.record.report"
    subprocess.run([sys.executable, "-I", "-S", "-c", script], check=True)


def modules() -> dict[str, Path]:
    return {
        ".".join(("harrow", *path.relative_to(ROOT).with_suffix("").parts)).removesuffix(".__init__"): path
        for room in ROOMS
        for path in sorted((ROOT / room).rglob("*.py"))
    }


def import_graph() -> dict[str, set[str]]:
    """Return the imports of each module, including those in functions and for types."""
    all_modules = modules()
    graph: dict[str, set[str]] = {}
    for name, path in all_modules.items():
        imports: set[str] = set()
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Import):
                imports |= {alias.name for alias in node.names}
            elif isinstance(node, ast.ImportFrom):
                imports |= {f"{node.module}.{alias.name}" for alias in node.names} | {str(node.module)}
        graph[name] = {other for other in imports & all_modules.keys() if not name.startswith(f"{other}.")}
    return graph


def test_imports_have_no_cycles() -> None:
    """Imports inside functions count too, because they only postpone a cycle."""
    TopologicalSorter(import_graph()).prepare()


def test_at_most_three_pairs_of_rooms_in_the_model_import_each_other() -> None:
    """A room is a folder or a top-level file of `cluster_model`."""

    def room(module: str) -> str:
        return ".".join(module.split(".")[:3])

    imports_between_rooms = {
        (room(name), room(other))
        for name, others in import_graph().items()
        for other in others
        if name.startswith("harrow.cluster_model.") and other.startswith("harrow.cluster_model.")
    }
    assert (
        len(
            {
                frozenset(pair)
                for pair in imports_between_rooms
                if pair[0] != pair[1] and pair[::-1] in imports_between_rooms
            }
        )
        <= 3
    )


def test_class_names_are_unique() -> None:
    places: dict[str, list[str]] = {}
    for name, path in modules().items():
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.ClassDef):
                places.setdefault(node.name, []).append(name)
    assert {name: where for name, where in places.items() if len(where) > 1} == {}


def test_the_name_of_a_setting_is_a_constant_of_one_module() -> None:
    places: dict[str, list[str]] = {}
    names = {name for _, name in SETTINGS}
    for module, path in modules().items():
        for node in ast.parse(path.read_text(encoding="utf-8")).body:
            value = node.value if isinstance(node, ast.Assign | ast.AnnAssign) else None
            if isinstance(value, ast.Constant) and value.value in names:
                places.setdefault(str(value.value), []).append(module)
    assert {name: where for name, where in places.items() if len(where) > 1} == {}


def test_the_code_map_lists_every_folder() -> None:
    text = (ROOT / "docs" / "reference" / "code-map.md").read_text(encoding="utf-8")
    folders = {path.parent.relative_to(ROOT) for path in modules().values()} - {Path("campaigns")}
    assert [folder for folder in sorted(folders) if f"`{folder}/`" not in text] == []
