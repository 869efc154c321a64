"""Which wheels get a compiled core, and what the build prints. These tests compile nothing."""

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from setuptools.errors import CompileError

import hatch_build
from harrow import compilation
from hatch_build import WITHOUT_PASSES, BuiltHarrow, accepted_options


@pytest.fixture(autouse=True)
def plain_checkout(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Let each test begin with a plain checkout, a compiler and an empty environment."""
    for name in ("HARROW_PURE", "HARROW_COMPILE"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(compilation, "LIBRARY", tmp_path / compilation.LIBRARY.name)
    monkeypatch.setattr(compilation, "SOURCES", tmp_path / compilation.SOURCES.name)
    monkeypatch.setattr(compilation, "compilation", lambda: (compilation.PURE, frozenset()))
    monkeypatch.setattr(hatch_build, "missing_compiler", lambda: None)
    monkeypatch.setattr(hatch_build, "compile_core", compile_at_once)


def compile_at_once(optimisation: str) -> None:
    for file in (compilation.LIBRARY, compilation.SOURCES):
        file.write_text(optimisation, encoding="utf-8")


def run_build_hook(target: str = "wheel", version: str = "standard") -> tuple[list[str], dict[str, Any], str]:
    """Run only the build hook. Return what it requires, its build data, and what it prints."""
    messages: list[str] = []
    options: Any = {
        "root": str(hatch_build.ROOT),
        "config": {},
        "build_config": None,
        "metadata": SimpleNamespace(version="1.0"),
        "directory": "",
        "target_name": target,
        "app": SimpleNamespace(display_info=messages.append),
    }
    hook = BuiltHarrow(**options)
    needs, data = hook.dependencies(), {"force_include": dict[str, str]()}
    try:
        hook.initialize(version, data)
    finally:
        hook.finalize()
    return needs, data, "\n".join(messages)


def is_compiled(data: dict[str, Any]) -> bool:
    packed = [name for name in data["force_include"].values() if "mypyc" in name]
    assert bool(packed) == bool(data.get("infer_tag"))
    return bool(packed)


def test_a_wheel_is_compiled_where_there_is_a_compiler() -> None:
    needs, data, messages = run_build_hook()
    assert [need.partition(">")[0] for need in needs] == ["mypy[mypyc]", "setuptools"]
    assert is_compiled(data)
    assert messages.endswith("the core of this wheel is compiled")
    assert not compilation.LIBRARY.exists()  # The checkout is as plain as it was.


def test_a_wheel_stays_plain_without_a_compiler_and_says_why(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(hatch_build, "missing_compiler", lambda: "there is no C compiler cc")
    needs, data, messages = run_build_hook()
    assert needs == []
    assert not is_compiled(data)
    assert messages == "harrow: the core of this wheel stays plain Python: there is no C compiler cc"


def test_a_wheel_stays_plain_when_the_builder_asks_for_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HARROW_PURE", "1")
    needs, data, messages = run_build_hook()
    assert needs == []
    assert not is_compiled(data)
    assert "HARROW_PURE is set" in messages


def test_a_wheel_stays_plain_when_compiling_fails_unless_it_must_be_compiled(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def fail(_optimisation: str) -> None:
        raise ImportError("there is no mypyc")

    monkeypatch.setattr(hatch_build, "compile_core", fail)
    _, data, messages = run_build_hook()
    assert not is_compiled(data)
    assert messages.endswith("plain Python: it could not be compiled: there is no mypyc")
    monkeypatch.setenv("HARROW_COMPILE", "1")
    with pytest.raises(ImportError):
        run_build_hook()


@pytest.mark.parametrize(("target", "version"), [("sdist", "standard"), ("wheel", "editable")])
def test_source_distributions_and_editable_wheels_are_not_compiled(target: str, version: str) -> None:
    _, data, messages = run_build_hook(target, version)
    assert not is_compiled(data)
    assert messages == ""


def test_without_a_compiler_or_header_files_the_hook_says_which_is_missing(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.undo()
    monkeypatch.setattr("sysconfig.get_config_var", lambda _name: "no-such-compiler -pthread")
    assert hatch_build.missing_compiler() == "there is no C compiler no-such-compiler"
    monkeypatch.setattr("sysconfig.get_config_var", lambda _name: "/bin/sh")
    monkeypatch.setattr("sysconfig.get_path", lambda _name: str(tmp_path))
    assert hatch_build.missing_compiler() == "Python's header files are not installed"


class FakeCompiler:
    """A compiler that refuses options with a certain word."""

    def __init__(self, refused: str) -> None:
        self._refused = refused

    def compile(self, sources: list[str], extra_postargs: list[str]) -> None:
        assert [Path(source).read_text() for source in sources] == [""]
        if any(self._refused in option for option in extra_postargs):
            raise CompileError("unknown option")


@pytest.mark.parametrize(("refused", "options"), [("none", WITHOUT_PASSES), ("tree", ())])
def test_passes_are_turned_off_only_where_the_compiler_knows_the_options(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, refused: str, options: tuple[str, ...]
) -> None:
    monkeypatch.chdir(tmp_path)
    assert accepted_options(FakeCompiler(refused)) == options
