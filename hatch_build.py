"""Compiles the core with mypyc, for ``make compiled`` and for wheels where there is a C compiler.

All modules go into one library, which has for each module a function that `harrow.compilation`
calls. mypyc by itself would make an extension for each module, which takes longer to build.
"""

import argparse
import ast
import contextlib
import itertools
import json
import os
import re
import shutil
import sys
import sysconfig
import tempfile
from collections.abc import Collection, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, Final, TypeGuard

from hatchling.builders.hooks.plugin.interface import BuildHookInterface
from hatchling.metadata.plugin.interface import MetadataHookInterface

ROOT: Final = Path(__file__).parent
sys.path.insert(0, str(ROOT / "src"))

from harrow import compilation  # noqa: E402 - harrow is built before it is installed

ROOMS: Final = ("cluster_model", "faults", "checks", "campaigns")

CORE: Final = (
    *(
        "cluster_model/**/*.py",
        *("checks/causes/compaction.py", "checks/causes/fates.py"),
        *("checks/causes/resumed_epoch.py", "checks/causes/retention.py"),
        "checks/group_work.py",
        "checks/history/*.py",
    ),
    *("checks/judge.py", "checks/replay/*.py", "checks/rules/*.py", "checks/service/*.py"),
    *("checks/last_logs.py", "checks/trace_index.py", "checks/transaction_fates.py"),
    "campaigns/clients/model_clients.py",
    *("campaigns/run/core_recovery.py", "campaigns/run/script.py", "campaigns/run/swarm.py"),
    *("campaigns/run/injection/broker_references.py", "campaigns/run/injection/fault_injector.py"),
    "campaigns/run/targets/model_observer.py",
    *("campaigns/probes/probe_counter.py", "campaigns/probes/probe_memory.py"),
)
"""The modules to compile: those where runs spend their time.

Faults, plans and evidence stay plain, because they are data that is pickled. Most code that reports
findings stays plain, because it seldom runs.
"""

_PLAIN: Final = re.compile(r"^# Plain Python: \S", re.MULTILINE)
"""Marks a file that mypyc cannot compile, or that gains nothing, with the reason.

In an ``__init__.py`` it marks the folder.
"""


def stays_plain(path: Path) -> bool:
    """Return whether a file of the core stays plain, because it or its folder is marked."""
    folder = path.with_name("__init__.py")
    return path == folder or any(_PLAIN.search(text.read_text(encoding="utf-8")) for text in (path, folder))


def _phrases_of_links(module: ast.Module) -> list[ast.FunctionDef]:
    """Return the functions with a decorator of `harrow.checks.link`, under any name."""
    decorators = {
        alias.asname or alias.name
        for node in module.body
        if isinstance(node, ast.ImportFrom) and node.module == "harrow.checks.link"
        for alias in node.names
    }
    return [
        node
        for node in module.body
        if isinstance(node, ast.FunctionDef)
        and any(
            isinstance(decorator, ast.Call) and ast.unparse(decorator.func) in decorators
            for decorator in node.decorator_list
        )
    ]


WITHOUT_PASSES: Final = (
    *("-fno-gcse", "-fno-ree", "-fno-schedule-insns2", "-fno-tree-dominator-opts"),
    *("-fno-tree-loop-optimize", "-fno-tree-pre", "-fno-tree-pta", "-fno-tree-reassoc"),
    *("-fno-tree-slp-vectorize", "-fno-tree-vrp"),
)
"""Options that turn off passes of gcc. These take a quarter of its time, and make no run faster."""

MYPY_OPTIONS: Final = (
    *("--namespace-packages", "--explicit-package-bases"),
    # Modules that stay plain do not fit the rewritten classes from which they derive.
    "--follow-imports=silent",
)


def compiled_modules() -> dict[str, str]:
    """Return the paths of the files to compile, with the names of their modules."""
    paths = [file.relative_to(ROOT).as_posix() for pattern in CORE for file in sorted(ROOT.glob(pattern))]
    return {path: _module(path) for path in paths if not stays_plain(ROOT / path)}


def copy_sources(compiled: Collection[str], folder: Path) -> list[str]:
    """Copy harrow into *folder*, rewrite the files to compile, and return their paths there."""
    for room in ROOMS:
        shutil.copytree(ROOT / room, folder / "harrow" / room, ignore=shutil.ignore_patterns("__pycache__"))
    for path in compiled:
        source = folder / "harrow" / path
        text = with_initialisers(with_operands(with_rows(source.read_text(encoding="utf-8"))))
        source.write_text(text, encoding="utf-8")
    return [f"harrow/{path}" for path in compiled]


def compile_core(optimisation: str) -> None:
    """Build the library and the list of its sources in the checkout."""
    from mypyc.build import mypycify  # noqa: PLC0415 - only compiling needs it
    from setuptools import Distribution  # noqa: PLC0415 - see above

    compiled = compiled_modules()
    # Record the sources first: if one changes during the build, it must not count as compiled.
    lines = [
        compilation.source_line(ROOT, path, compiled.get(path, "")) for path in _with_imports(set(compiled))
    ]
    compilation.SOURCES.unlink(missing_ok=True)
    with tempfile.TemporaryDirectory() as folder, contextlib.chdir(folder):
        (library, *_) = mypycify(
            [*MYPY_OPTIONS, *copy_sources(compiled, Path(folder))],
            opt_level=optimisation,
            debug_level="0",
            multi_file=True,
            group_name="harrow",
            target_dir=folder,
        )
        entries = Path(folder) / "entries.c"
        names = "".join(f"MODULE({compilation.mangled(module)})\n" for module in compiled.values())
        entries.write_text(_ENTRY + names, encoding="utf-8")
        library.sources.append(str(entries))
        # Many Pythons ask for -Wall, which would take four fifths of gcc's time for code like this.
        # Hidden symbols let gcc inline functions of a module, and call those of other modules
        # directly. Only the initialisers of modules are looked up from outside.
        library.extra_compile_args += ["-Wno-all", "-fvisibility=hidden", "-fno-plt"]
        builder: Any = Distribution({"ext_modules": [library]}).get_command_obj("build_ext")
        builder.build_lib = builder.build_temp = folder
        builder.ensure_finalized()
        build_extensions = builder.build_extensions

        def build() -> None:
            # The builder creates its compiler only before this call.
            library.extra_compile_args.extend(accepted_options(builder.compiler))
            _compile_side_by_side(builder)
            build_extensions()

        builder.build_extensions = build
        builder.run()
        # A process that runs the old library keeps its file.
        compilation.LIBRARY.unlink(missing_ok=True)
        shutil.copyfile(Path(folder) / compilation.LIBRARY.name, compilation.LIBRARY)
    compilation.SOURCES.write_text("\n".join(lines) + "\n", encoding="utf-8")


def accepted_options(compiler: Any) -> tuple[str, ...]:
    """Return `WITHOUT_PASSES`, or nothing if a compiler refuses them, which it then prints.

    It compiles an empty file in the current folder.
    """
    from setuptools.errors import CompileError  # noqa: PLC0415 - only compiling needs it

    Path("empty.c").touch()
    try:
        compiler.compile(["empty.c"], extra_postargs=[*WITHOUT_PASSES])
    except CompileError:
        return ()
    return WITHOUT_PASSES


def _compile_side_by_side(builder: Any) -> None:
    """Make *builder* compile as many files at once as there are cores, not one at a time."""
    compile_in_sequence = builder.compiler.compile

    def compile_all(sources: Sequence[str], *args: Any, **kwargs: Any) -> list[str]:
        with ThreadPoolExecutor(os.cpu_count()) as pool:
            objects = pool.map(lambda source: compile_in_sequence([source], *args, **kwargs), sources)
            return [file for files in objects for file in files]

    builder.compiler.compile = compile_all


def with_operands(source: str) -> str:
    """Return a module whose kinds of links have the annotations of their functions as data.

    harrow reads the operands of a link from these annotations, and compiled functions have none.
    """
    lines = source.splitlines(keepends=True)
    phrases = _phrases_of_links(ast.parse(source))
    for node in reversed(phrases):
        operands = zip(node.args.kwonlyargs, node.args.kw_defaults, strict=True)
        types, defaults = [], []
        for operand, default in operands:
            assert operand.annotation is not None
            types.append(f"{operand.arg!r}: {ast.unparse(operand.annotation)}")
            if default is not None:
                defaults.append(f"{operand.arg!r}: {ast.unparse(default)}")
        about = f"__name__, {ast.get_docstring(node)!r}, {{{', '.join(types)}}}, {{{', '.join(defaults)}}}"
        lines.insert(node.lineno - 1, f"@described({about})\n")
    if phrases:
        place = next(line for line, text in enumerate(lines) if text.startswith("from harrow.checks.link "))
        lines.insert(place, "from harrow.checks.link import described\n")
    return "".join(lines)


def with_rows(source: str) -> str:
    """Return a module that makes the rows of a trace where it emits events.

    ``host.emit(HighWatermarkSet, broker, partition, hw)`` packs its arguments into a tuple, looks
    up the name of the kind, and makes a second tuple for the row. That would take a twentieth of a
    compiled run. Instead, the names and numbers of kinds become constants of the module.
    """
    module, text = ast.parse(source), source.encode()
    begins = [0, *itertools.accumulate(map(len, text.splitlines(keepends=True)))]
    constants: dict[str, None] = {}
    for call in sorted(_emissions(module), key=lambda call: -call.lineno):
        assert isinstance(call.func, ast.Attribute)
        emitter, kind = ast.unparse(call.func.value), ast.unparse(call.args[0])
        trace = emitter if emitter.endswith("trace") else f"{emitter}.trace"
        constant = f"_{kind.replace('.', '_')}"
        constants[f"{constant}_number: Final[int] = {kind}.number\n"] = None
        constants[f"{constant}_name: Final[str] = {kind}.name\n"] = None
        begin, kind_end, end = (
            begins[line - 1] + column
            for line, column in (
                (call.lineno, call.col_offset),
                (call.args[0].end_lineno or 0, call.args[0].end_col_offset or 0),
                (call.end_lineno or 0, call.end_col_offset or 0),
            )
        )
        row = f"{trace}.clock.now_us, {constant}_name{text[kind_end : end - 1].decode()}"
        text = text[:begin] + f"{trace}.add({constant}_number, ({row}))".encode() + text[end:]
    if constants:
        imports = [node for node in module.body if isinstance(node, ast.Import | ast.ImportFrom)]
        end = begins[imports[-1].end_lineno or 0]
        text = text[:end] + "".join(["from typing import Final\n", *constants]).encode() + text[end:]
    return text.decode()


def _emissions(module: ast.Module) -> Iterator[ast.Call]:
    """Yield the calls of ``emit`` of a host or a trace that name the kind of event."""
    kinds = {
        alias.asname or alias.name
        for node in module.body
        if isinstance(node, ast.ImportFrom)
        for alias in node.names
        if f"{node.module}.{alias.name}".startswith("harrow.cluster_model.events")
    }
    for node in ast.walk(module):
        match node:
            case ast.Call(func=ast.Attribute(value=emitter, attr="emit"), args=[kind, *fields], keywords=[]):
                is_recorded = ast.unparse(emitter).endswith(("host", "trace"))
                is_named = ast.unparse(kind).partition(".")[0] in kinds
                if is_recorded and is_named and not any(isinstance(field, ast.Starred) for field in fields):
                    yield node


def with_initialisers(source: str) -> str:
    """Return a module with the ``__init__`` of its dataclasses written out.

    Otherwise ``dataclasses`` would generate it when the class is created, and it would be
    interpreted: creating an object of a compiled class would be slower than in plain Python. A
    class variable becomes the default of an attribute, because mypyc presents both to
    ``dataclasses`` as fields; a statement after the class sets it on the class again. At run time,
    a frozen class is hashable but not frozen: mypy has checked that nothing is assigned to its
    fields.
    """
    classes = {node.name: node for node in ast.parse(source).body if isinstance(node, ast.ClassDef)}
    lines = source.splitlines(keepends=True)
    for node in reversed(classes.values()):
        decorator = _dataclass_decorator(node)
        fields = _fields(node, classes)
        if decorator is None:
            # If every subclass gives a class variable a value, it becomes an attribute of objects.
            for item in filter(_is_class_variable, node.body):
                if item.value is None:
                    lines[item.lineno - 1] = re.sub(r"ClassVar\[(.*?)\]", r"\1", lines[item.lineno - 1])
        if decorator is None:
            continue
        assert decorator.lineno == decorator.end_lineno
        options = {keyword.arg: ast.unparse(keyword.value) for keyword in decorator.keywords}
        # mypyc gives the class its slots. `dataclasses` would create a second class for nothing.
        options.pop("slots", None)
        if fields is None or any(
            isinstance(item, ast.FunctionDef) and item.name == "__init__" for item in node.body
        ):
            lines[decorator.lineno - 1] = _decorator_line(options)
            continue
        class_variables = [
            f"setattr({node.name}, '{name}', {value})\n" for name, value in _class_variables(node).items()
        ]
        lines.insert(node.end_lineno or 0, _initialiser(node, fields) + "".join(class_variables))
        for item in filter(_is_class_variable, node.body):
            line = item.lineno - 1
            lines[line] = re.sub(
                r"ClassVar\[(.*?)\] = (.*)", r"\1 = field(default=\2, init=False, repr=False)", lines[line]
            )
        if options.pop("frozen", None) and options.get("eq") != "False":
            options["unsafe_hash"] = "True"
        lines[decorator.lineno - 1] = _decorator_line(options)
    return "".join(lines).replace(_DATACLASS, f"from dataclasses import field\n{_DATACLASS}", 1)


_DATACLASS: Final = "from harrow.cluster_model.lazy_dataclass import dataclass"


def _decorator_line(options: Mapping[str | None, str]) -> str:
    return f"@dataclass({', '.join(f'{name}={value}' for name, value in options.items())})\n"


def _dataclass_decorator(node: ast.ClassDef) -> ast.Call | None:
    for decorator in node.decorator_list:
        if isinstance(decorator, ast.Call) and ast.unparse(decorator.func) == "dataclass":
            return decorator
    return None


def _is_class_variable(item: ast.stmt) -> TypeGuard[ast.AnnAssign]:
    return isinstance(item, ast.AnnAssign) and ast.unparse(item.annotation).startswith("ClassVar")


def _class_variables(node: ast.ClassDef) -> dict[str, str]:
    """Return the class variables that have a value, with the source of the value."""
    return {
        ast.unparse(item.target): ast.unparse(item.value)
        for item in node.body
        if _is_class_variable(item) and item.value is not None
    }


def _fields(
    node: ast.ClassDef, classes: Mapping[str, ast.ClassDef]
) -> list[tuple[ast.AnnAssign, bool]] | None:
    """Return a dataclass's fields with those of its bases, and whether each is keyword-only.

    Return None if a base is unknown.
    """
    fields: list[tuple[ast.AnnAssign, bool]] = []
    for base in map(ast.unparse, node.bases):
        name = base.partition("[")[0]
        if name in classes:
            inherited = _fields(classes[name], classes)
            if inherited is None:
                return None
            fields += inherited
        elif name not in {"Protocol", "Generic", "Request", "ClientEndpoint"}:  # These have no fields.
            return None
    decorator = _dataclass_decorator(node)
    if decorator is None:
        return fields
    keyword_only = any(keyword.arg == "kw_only" for keyword in decorator.keywords)
    for item in node.body:
        if isinstance(item, ast.AnnAssign) and not _is_class_variable(item):
            fields = [field for field in fields if ast.unparse(field[0].target) != ast.unparse(item.target)]
            fields.append((item, keyword_only or "kw_only" in _field_options(item)))
    return fields


def _field_options(item: ast.AnnAssign) -> dict[str, str]:
    """Return the arguments of a field's ``field(...)``, or else its default, if it has one."""
    if isinstance(item.value, ast.Call) and ast.unparse(item.value.func) == "field":
        return {str(keyword.arg): ast.unparse(keyword.value) for keyword in item.value.keywords}
    return {} if item.value is None else {"default": ast.unparse(item.value)}


def _initialiser(node: ast.ClassDef, fields: Sequence[tuple[ast.AnnAssign, bool]]) -> str:
    positional, keyword_only_parameters = ["self"], ["*"]
    body = [f"        self.{name} = {value}\n" for name, value in _class_variables(node).items()]
    for item, is_keyword_only in fields:
        name, kind, options = ast.unparse(item.target), ast.unparse(item.annotation), _field_options(item)
        value, factory = name, options.get("default_factory")
        if options.get("init") == "False":
            if factory is None and "default" not in options:
                continue  # ``__post_init__`` sets it.
            value = f"({factory})()" if factory else options["default"]
        elif factory:
            assert not kind.endswith("| None"), f"{node.name}.{name}: None would mean that no value was given"
            value = f"({factory})() if {name} is None else {name}"
            (keyword_only_parameters if is_keyword_only else positional).append(
                f"{name}: {kind} | None = None"
            )
        else:
            default = f" = {options['default']}" if "default" in options else ""
            (keyword_only_parameters if is_keyword_only else positional).append(f"{name}: {kind}{default}")
        body.append(f"        self.{name} = {value}\n")
    if any(isinstance(item, ast.FunctionDef) and item.name == "__post_init__" for item in node.body):
        body.append("        self.__post_init__()\n")
    parameters = ", ".join(positional + (keyword_only_parameters if len(keyword_only_parameters) > 1 else []))
    return f"\n    def __init__({parameters}) -> None:\n{''.join(body) or '        pass'}\n"


_ENTRY: Final = """#include <Python.h>
#define MODULE(name) PyMODINIT_FUNC PyInit_##name(void) { \\
    PyObject *(*make)(void) = (PyObject *(*)(void))PyCapsule_Import("harrow__mypyc.init_" #name, 0); \\
    return make ? make() : NULL; }
"""


def _module(path: str) -> str:
    return f"harrow/{path}".removesuffix(".py").replace("/", ".")


def _with_imports(paths: set[str]) -> list[str]:
    """Return sources and all modules that they import: compiled code contains their constants."""
    sources: set[str] = set()
    while paths := paths - sources:
        sources |= paths
        paths = {imported for path in paths for imported in _imports((ROOT / path).read_bytes())}
    return sorted(sources)


def _imports(source: bytes) -> list[str]:
    nodes = [node for node in ast.walk(ast.parse(source)) if isinstance(node, ast.ImportFrom) and node.module]
    names = [
        name for node in nodes for name in (node.module, *(f"{node.module}.{n.name}" for n in node.names))
    ]
    paths = [f"{name.removeprefix('harrow.').replace('.', '/')}.py" for name in names if name]
    return [path for path in paths if (ROOT / path).is_file()]


def with_absolute_links(page: str, repository: str, ref: str) -> str:
    """Return a Markdown page whose relative links and images lead to *ref* of the repository.

    GitHub and package indexes show README.md, but only GitHub has the files beside it. Brackets in
    code are left alone.
    """
    raw = repository.replace("//github.com/", "//raw.githubusercontent.com/")
    code, relative = r"^```.*?^```$|`[^`\n]*`", r"(?![a-z]+:|#)"
    for link, base in ((r"!\[[^\]]*\]\(", f"{raw}/{ref}/"), (r"\]\(", f"{repository}/blob/{ref}/")):
        parts = re.split(rf"({code}|{link}{relative})", page, flags=re.DOTALL | re.MULTILINE)
        page = "".join(part + base if re.fullmatch(link, part) else part for part in parts)
    return page


def missing_compiler() -> str | None:
    """Return why this machine cannot compile C for this Python, None if it can."""
    if os.name != "nt":  # On Windows setuptools finds the compiler.
        compiler = (sysconfig.get_config_var("CC") or "cc").split()[0]
        if shutil.which(compiler) is None:
            return f"there is no C compiler {compiler}"
    if not Path(sysconfig.get_path("include"), "Python.h").is_file():
        return "Python's header files are not installed"
    return None


class PackageReadme(MetadataHookInterface):
    """Makes the links of the package's README.md absolute: to a release's tag, or else to main."""

    PLUGIN_NAME = "custom"

    def update(self, metadata: dict[str, Any]) -> None:
        version = str(metadata["version"])
        ref = "main" if "dev" in version else f"v{version}"
        page = (ROOT / "README.md").read_text(encoding="utf-8")
        text = with_absolute_links(page, metadata["urls"]["Repository"], ref)
        metadata["readme"] = {"content-type": "text/markdown", "text": text}


class BuiltHarrow(BuildHookInterface[Any]):
    """Writes the version into a distribution, and compiles the core of a wheel.

    A distribution has no repository to read its version from. A compiled wheel is for one version
    of Python and one platform. The wheel stays plain Python with HARROW_PURE=1, and on a machine
    that cannot compile. With HARROW_COMPILE=1 the build fails if it cannot compile.
    """

    PLUGIN_NAME = "custom"

    def dependencies(self) -> list[str]:
        """Return the requirements that the build frontend installs for this build."""
        return ["mypy[mypyc]>=2.4,<3", "setuptools>=65"] if self._why_plain() is None else []

    def _why_plain(self) -> str | None:
        """Return why this build does not try to compile, None if it does."""
        if self.target_name != "wheel":
            return "only wheels are compiled"
        if os.environ.get("HARROW_PURE"):
            return "HARROW_PURE is set"
        return None if os.environ.get("HARROW_COMPILE") else missing_compiler()

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        self.has_compiled = False
        self.folder: tempfile.TemporaryDirectory[str] | None = None
        if version != "standard":
            return  # An editable installation; `make compiled` compiles the checkout.
        self._include_version(build_data)
        if self.target_name != "wheel":
            return
        why = self._why_plain() or self._why_not_compiled()
        if why is not None:
            self.app.display_info(f"harrow: the core of this wheel stays plain Python: {why}")
            return
        self.app.display_info("harrow: the core of this wheel is compiled")
        build_data.update(pure_python=False, infer_tag=True)
        for file in (compilation.LIBRARY, compilation.SOURCES):
            build_data["force_include"][str(file)] = f"harrow/{file.name}"

    def _why_not_compiled(self) -> str | None:
        """Compile the core if it is not compiled; return why that failed, None if it succeeded."""
        if compilation.compilation()[0] == compilation.COMPILED:
            return None
        self.app.display_info(
            "harrow: compiling the core with mypyc, in minutes; HARROW_PURE=1 builds without that"
        )
        try:
            compile_core("2")
        except (Exception, SystemExit) as error:  # mypyc exits, and setuptools raises many kinds of errors
            if os.environ.get("HARROW_COMPILE"):
                raise
            return f"it could not be compiled: {str(error) or type(error).__name__}"
        self.has_compiled = True
        return None

    def _include_version(self, build_data: dict[str, Any]) -> None:
        name = "campaigns/built.json"
        if (ROOT / name).exists():
            return  # A source distribution already has it.
        self.folder = tempfile.TemporaryDirectory()
        file = Path(self.folder.name) / "built.json"
        file.write_text(json.dumps({"version": self.metadata.version}) + "\n", encoding="utf-8")
        build_data["force_include"][str(file)] = name if self.target_name == "sdist" else f"harrow/{name}"

    def finalize(self, *_: object) -> None:
        """Remove the files that the build has made in the checkout."""
        if self.folder is not None:
            self.folder.cleanup()
        if self.has_compiled:
            for file in (compilation.SOURCES, compilation.LIBRARY):
                file.unlink()


def main() -> None:
    """Compile the core if its sources or this file have changed since the last time."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--optimisation", choices=["0", "1", "2", "3"], default="2", help="gcc's -O")
    optimisation = parser.parse_args().optimisation
    os.environ.pop("HARROW_PURE", None)
    is_compiled = compilation.compilation()[0] == compilation.COMPILED
    if not is_compiled or compilation.LIBRARY.stat().st_mtime < Path(__file__).stat().st_mtime:
        compile_core(optimisation)


if __name__ == "__main__":
    main()
