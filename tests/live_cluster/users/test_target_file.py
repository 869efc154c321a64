"""The file of a user's cluster is read, and its mistakes are reported."""

from pathlib import Path

import jsonschema
import pytest
import yaml

from harrow.campaigns.language.problem import FileError
from harrow.live_cluster.users.command import CommandName
from harrow.live_cluster.users.command_word import CommandWord
from harrow.live_cluster.users.target_file import (
    TargetFile,
    load_target_file,
    target_file_schema,
)
from tests.live_cluster.users.target_files import TEXT, write_target_file

FULL = """\
bootstrap: [kafka-1:9092, "[::1]:9093"]
kafka: 3.9.2
security: {security.protocol: SASL_SSL, sasl.mechanism: PLAIN, sasl.username: me, sasl.password: "${SECRET}"}
brokers:
  - {id: 7, vars: {unit: kafka-a}, commands: {start: [systemctl, start, "{unit}"]}}
  - {id: 4, vars: {unit: kafka-b}}
commands:
  kill: {run: [ssh, "{host}", systemctl, kill, "{unit}"], timeout: 5s}
  start: ssh {host} start {unit}
allow: [topics, kill]
timeout: 20s
"""


def load(folder: Path, text: str) -> TargetFile:
    return load_target_file(write_target_file(folder, text), {"SECRET": "hidden"})


def test_a_cluster_file_has_addresses_and_commands(tmp_path: Path) -> None:
    cluster = load(tmp_path, FULL)
    assert cluster.bootstrap == (("kafka-1", 9092), ("::1", 9093))
    assert cluster.release is not None
    assert cluster.release.name == "3.9.2"
    assert list(cluster.brokers) == [7, 4]
    assert cluster.allowed == {"topics", "kill"}
    kill, start = cluster.command(CommandName.KILL, 7), cluster.command(CommandName.START, 7)
    assert kill is not None
    assert start is not None
    assert (kill.limit_s, start.limit_s) == (5, 20)
    values = {"host": CommandWord("h"), "unit": CommandWord("kafka-a")}
    assert kill.filled(values).argv == ("ssh", "h", "systemctl", "kill", "kafka-a")
    shared = cluster.command(CommandName.START, 4)
    assert shared is not None
    assert shared.filled(values).argv == ("/bin/sh", "-c", "ssh h start kafka-a")
    assert cluster.command(CommandName.PAUSE, 7) is None


def test_secrets_are_never_shown(tmp_path: Path) -> None:
    cluster = load(tmp_path, FULL)
    assert cluster.security.settings["sasl.password"] == "hidden"
    assert "hidden" not in repr(cluster)


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("bootstrap: here", "1:12: bootstrap: expected host:port, not `here`"),
        ("bootstrap: a:1\nkafka: 2.4", "2:8: kafka: `2.4` is not a release of Kafka; did you mean `2.4.1`?"),
        ("bootstrap: a:1\nbootstrp: b", "2:1: unknown key `bootstrp`; did you mean `bootstrap`?"),
        ("kafka: 2.4.1", "1:1: `bootstrap` is missing"),
        ("bootstrap: a:1\ncommands: {start: x, puse: x}", "2:22: unknown key `puse`; did you mean `pause`?"),
        (
            'bootstrap: a:1\ncommands: {start: x, kill: [a, "{brokr}"]}',
            "2:28: kill: unknown placeholder {brokr}; did you mean `broker`?",
        ),
        (
            "bootstrap: a:1\ncommands:\n  start: x\n  kill: x {peer}",
            "4:9: kill: unknown placeholder {peer}; known: broker, host, port, rack",
        ),
        ("bootstrap: a:1\ncommands: {kill: x}", "2:12: kill needs `start`, which undoes it"),
        ("bootstrap: a:1\ncommands: {start: []}", "2:19: run: the list is empty"),
        ("bootstrap: a:1\ncommands: {start: ' '}", "2:19: run: the command is empty"),
        ("bootstrap: a:1\nallow: kill", "2:8: allow: there is no command kill"),
        (
            "bootstrap: a:1\nallow: fly",
            "2:8: allow: `fly` is not one of topics, kill, stop, pause, cut",
        ),
        ("bootstrap: a:1\nbrokers: [{id: 1}, {id: 1}]", "2:25: broker 1 is listed twice"),
        (
            "bootstrap: a:1\nbrokers: [{id: 1, vars: {host: x}}]",
            "2:26: host is a placeholder of harrow's own",
        ),
        (
            "bootstrap: a:1\nbrokers: [{id: 1, vars: {unit: '$(id)'}}]",
            "2:32: unit: `$(id)` is not safe in a command: only letters, digits and ._:/@- are safe, and it must not begin with -",
        ),
        (
            "bootstrap: a:1\nbrokers: [{id: 1, vars: {unit: -v}}]",
            "2:32: unit: `-v` is not safe in a command: only letters, digits and ._:/@- are safe, and it must not begin with -",
        ),
        ("bootstrap: a:1\nsecurity: {acks: all}", "2:12: `acks` is not a security setting"),
        (
            "bootstrap: a:1\nsecurity: {ssl.key.password: '${NOPE}'}",
            "2:30: ${NOPE} is not in the environment",
        ),
        (
            "bootstrap: a:1\nsecurity: {security.protocol: SASL_SSL, sasl.mechanism: GSSAPI}",
            "2:1: harrow authenticates with PLAIN, SCRAM-SHA-256, SCRAM-SHA-512: set sasl.mechanism to one of them",
        ),
        ("[a]", "1:1: a cluster is a mapping (`key: value`)"),
        ("bootstrap: a:1\ntimeout: 0s", "2:10: timeout: 0s is too short: it must be more than 0"),
    ],
)
def test_each_mistake_is_reported_with_its_position(tmp_path: Path, text: str, problem: str) -> None:
    with pytest.raises(FileError) as refused:
        load(tmp_path, text)
    assert str(refused.value) == f"{tmp_path / 'cluster.yaml'}:{problem}"


def test_braces_of_the_shell_are_not_placeholders(tmp_path: Path) -> None:
    text = "bootstrap: a:1\ncommands: {start: 'echo ${HOME} {{broker}} {broker} {print $1} {{.State}}'}"
    start = load(tmp_path, text).command(CommandName.START, 3)
    assert start is not None
    line = start.filled({"broker": CommandWord("3")}).argv[-1]
    assert line == "echo ${HOME} {broker} 3 {print $1} {{.State}}"


@pytest.mark.parametrize("text", [FULL, TEXT])
def test_the_schema_accepts_a_valid_cluster_file(text: str) -> None:
    schema = target_file_schema()
    jsonschema.Draft202012Validator.check_schema(schema)
    jsonschema.validate(yaml.safe_load(text), schema)


def test_the_schema_refuses_an_unknown_command() -> None:
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate({"bootstrap": "a:1", "commands": {"puse": "x"}}, target_file_schema())


def test_a_cluster_file_for_the_model_is_no_target_file(tmp_path: Path) -> None:
    with pytest.raises(FileError) as refused:
        load(tmp_path, f"{TEXT}topics: [{{name: orders}}]\n")
    assert "`topics` belongs to a cluster file" in str(refused.value)
