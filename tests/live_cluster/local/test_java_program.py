"""harrow starts a Java program with a properties file and a command line."""

import sys
from pathlib import Path

from harrow.live_cluster.local.java_program import JavaPrograms, properties
from harrow.live_cluster.processes.child_processes import ChildProcesses
from tests.patience import PATIENCE_S


def test_settings_are_written_as_java_reads_them() -> None:
    values = {
        "broker.id": 3,
        "auto.create.topics.enable": False,
        "log.dirs": Path("/with space"),
        "x": "a\\b\nc=é",
    }
    assert properties(values) == (
        "broker.id=3\n"
        "auto.create.topics.enable=false\n"
        "log.dirs=/with\\u0020space\n"
        "x=a\\u005cb\\u000ac=\\u00e9\n"
    )


def test_a_program_gets_its_folder_jars_and_logging(tmp_path: Path) -> None:
    java = tmp_path / "java"
    java.write_text(
        f"#!{sys.executable}\nimport os, sys\nprint(os.getcwd())\nprint(*sys.argv[1:], sep=chr(10))\n"
    )
    java.chmod(0o755)
    folder = tmp_path / "broker-0"
    folder.mkdir()
    jars = tmp_path / "jars"
    jars.mkdir()
    (jars / "kafka.jar").touch()
    with ChildProcesses() as children:
        process = JavaPrograms(java, jars, children).start("kafka.Kafka", ["a", Path("b")], folder)
        assert process.wait(PATIENCE_S)
    cwd, *arguments = process.log.read_text().splitlines()
    assert cwd == str(folder)
    assert arguments[-5:] == ["-cp", f"{jars}/kafka.jar", "kafka.Kafka", "a", "b"]
    for file in ("log4j.properties", "log4j2.properties"):
        assert (folder / file).is_file()
        assert any(argument.endswith(f"=file://{folder}/{file}") for argument in arguments)
