"""The core needs nothing but Python, and imports go one way."""

import ast
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
BELOW = {
    "cluster_model": set[str](),
    "faults": {"cluster_model"},
    "checks": {"cluster_model"},
}


def imported(path: Path) -> set[str]:
    names: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}: imports are absolute"
            names.add(node.module or "")
    return {name.partition(".")[0] for name in names}


@pytest.mark.parametrize("room", BELOW)
def test_the_core_imports_the_standard_library_and_the_rooms_below_it(room: str) -> None:
    allowed = sys.stdlib_module_names | BELOW[room] | {room}
    for path in sorted((ROOT / room).rglob("*.py")):
        assert imported(path) <= allowed, path


def test_a_machine_with_nothing_but_python_runs_plans() -> None:
    """Isolated, and without the packages of this environment."""
    script = f"import sys; sys.path.insert(0, {str(ROOT)!r}); import campaigns.runner, campaigns.report"
    subprocess.run([sys.executable, "-I", "-S", "-c", script], check=True)
