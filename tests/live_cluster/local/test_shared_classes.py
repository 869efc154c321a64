"""Programs of a release share the classes that its first run loaded."""

import sys
from pathlib import Path

import pytest

from harrow.live_cluster.local.java_program import JavaPrograms
from harrow.live_cluster.local.shared_classes import SharedClasses
from harrow.live_cluster.processes.child_processes import ChildProcesses
from tests.patience import PATIENCE_S

# As a killed program, it lists two classes and half of a third. As the archiver, it writes its
# input into the archive.
JAVA = """\
#!{python}
import sys
options = dict(argument.split("=", 1) for argument in sys.argv if argument.startswith("-XX:Shared") or "ClassList" in argument)
if "-Xshare:dump" in sys.argv:
    if {fails}:
        sys.exit(1)
    classes = open(options["-XX:SharedClassListFile"]).read()
    open(options["-XX:SharedArchiveFile"], "w").write(classes + sys.argv[sys.argv.index("-cp") + 1])
elif "-XX:DumpLoadedClassList" in options:
    open(options["-XX:DumpLoadedClassList"], "w").write("@lambda-proxy b/B\\nb/B id: 1\\na/A\\nhalf")
print(*sys.argv[1:])
"""


@pytest.fixture
def jars(tmp_path: Path) -> Path:
    folder = tmp_path / "jars"
    folder.mkdir()
    for name in ("kafka-2.jar", "a-1.jar"):
        (folder / name).touch()
    return folder


def java(folder: Path, *, fails: bool = False) -> Path:
    file = folder / "java"
    file.write_text(JAVA.format(python=sys.executable, fails=fails))
    file.chmod(0o755)
    return file


def run(java: Path, jars: Path, folder: Path) -> str:
    """Run a program in a folder, share its loaded classes, and return its arguments."""
    folder.mkdir()
    with ChildProcesses() as children:
        programs = JavaPrograms(java, jars, children, SharedClasses(jars, java, "kraft"))
        process = programs.start("kafka.Kafka", [], folder)
        assert process.wait(PATIENCE_S)
    programs.share_classes(folder)
    return process.log.read_text()


def test_the_second_run_loads_the_classes_of_the_first_from_an_archive(jars: Path, tmp_path: Path) -> None:
    program = java(tmp_path)
    assert "-XX:DumpLoadedClassList=" in run(program, jars, tmp_path / "first")
    archive = SharedClasses(jars, program, "kraft").archive
    # A class precedes its lambdas, and an incomplete name is dropped.
    assert archive.read_text() == f"a/A\nb/B id: 1\n@lambda-proxy b/B\n{jars}/a-1.jar:{jars}/kafka-2.jar"
    assert f"-XX:SharedArchiveFile={archive} " in run(program, jars, tmp_path / "second")
    remaining = {path.name for path in (tmp_path / "first").iterdir()}
    assert remaining == {"log", "log4j.properties", "log4j2.properties"}
    assert {path.name for path in jars.iterdir() if path.suffix != ".jar"} == {
        archive.name,
        f".{archive.name}.lock",
    }


def test_a_failed_class_archive_is_not_tried_again(jars: Path, tmp_path: Path) -> None:
    program = java(tmp_path, fails=True)
    run(program, jars, tmp_path / "first")
    assert "-XX:" not in run(program, jars, tmp_path / "second").replace("-XX:+UseSerialGC", "").replace(
        "-XX:TieredStopAtLevel", ""
    )


def test_each_java_and_control_plane_has_its_own_archive(jars: Path, tmp_path: Path) -> None:
    one, other = tmp_path / "one" / "bin" / "java", tmp_path / "other" / "bin" / "java"
    archives = {
        SharedClasses(jars, java, mode).archive for java in (one, other) for mode in ("kraft", "zookeeper")
    }
    one.parents[1].mkdir()
    (one.parents[1] / "release").write_text('JAVA_VERSION="17.0.16"')
    archives.add(SharedClasses(jars, one, "kraft").archive)
    assert len(archives) == 5


def test_programs_run_with_an_unwritable_cache(tmp_path: Path) -> None:
    program = java(tmp_path)
    no_folder = tmp_path / "file"
    no_folder.touch()
    assert "kafka.Kafka" in run(program, no_folder, tmp_path / "first")
