r"""Values reported by a cluster never run as commands, neither on this machine nor behind `ssh`.

`ssh` is a stub that, like sshd, joins its arguments with spaces and gives them to a shell.
"""

import json
import random
import re
import stat
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

import pytest

from harrow.live_cluster.releases.kafka_release import KRAFT, release_of
from harrow.live_cluster.users import users_brokers
from harrow.live_cluster.users.command import Command, CommandName
from harrow.live_cluster.users.command_word import (
    BROKER_PLACEHOLDERS,
    PEER_PLACEHOLDERS,
    CommandWord,
    UnsafeWordError,
)
from harrow.live_cluster.users.journal import Journal
from harrow.live_cluster.users.target_file import ALLOWED, HEALED_BY, TargetFile, load_target_file
from harrow.live_cluster.users.user_broker import FaultCommands
from harrow.live_cluster.users.users_brokers import survey_of
from harrow.live_cluster.wire.survey import BrokerNode, Survey
from tests.live_cluster.users.target_files import write_target_file

PAGE: Final = Path(__file__).parents[3] / "docs" / "how-to" / "your-cluster.md"
SSH: Final = r"""#!/bin/sh
while [ "${1#-}" != "$1" ]; do
    case $1 in -oProxyCommand=*) sh -c "${1#-oProxyCommand=}" ;; esac
    shift
done
shift
exec sh -c "$*"
"""
NOTE: Final = r"""#!/bin/sh
{ for word; do printf '<%s>' "$word"; done; echo; } >>"$NOTES"
"""
ATTACKS: Final = (
    *("$(touch pwned)", "`touch pwned`", "; touch pwned", "a && touch pwned #", "| touch pwned"),
    *("& touch pwned", "' ; touch pwned '", '" ; touch pwned "', "'$(touch pwned)'", "\\$(touch pwned)"),
    *("a\ntouch pwned\n", "-oProxyCommand=touch pwned", "-oProxyCommand=touch${IFS}pwned", "--", "-1"),
    *("", "a b", "*", "~", ">pwned", "$HOME", "a\0b", "\ud800", "\u202epwned", "\uff10", "a\n"),
)
TEMPLATES: Final[tuple[str | list[str], ...]] = (
    'echo "{0}"',
    "echo {0}",
    "echo '{0}'",
    "echo `echo {0}`",
    "ssh {0} true",
    "ssh host iptables -s {0}",
    'ssh host "note \\"{0}\\""',
    "ssh host 'note \"{0}\"'",
    "eval echo {0}",
    ["ssh", "{0}", "true"],
    ["ssh", "host", "note {0}"],
    ["ssh", "host", "note", "{0}"],
    ["sh", "-c", 'note "{0}"'],
    ["docker", "kill", "{0}"],
)
NODES: Final = tuple(
    BrokerNode(id=broker, host=f"kafka-{broker}.example", port=9092, rack=f"rack-{broker}")
    for broker in (1, 2)
)
TEXTS: Final = ("host", "rack")
NUMBERS: Final = ("id", "port")
FIELDS: Final = {
    **{name: name.removeprefix("peer_") for name in (*BROKER_PLACEHOLDERS, *PEER_PLACEHOLDERS)},
    **dict.fromkeys(("broker", "peer"), "id"),
}
WORD_LETTERS: Final = "abcXYZ019._:-"


@pytest.fixture
def machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return a folder for commands to run in, where programs record their arguments."""
    programs = tmp_path / "bin"
    programs.mkdir()
    for name in ("ssh", "docker", "iptables", "systemctl", "note"):
        program = programs / name
        program.write_text(SSH if name == "ssh" else NOTE, encoding="utf-8")
        program.chmod(stat.S_IRWXU)
    monkeypatch.setenv("PATH", f"{programs}:/usr/bin:/bin")
    monkeypatch.setenv("NOTES", str(tmp_path / "notes"))
    return tmp_path


def examples() -> list[str]:
    """Return the target files of the page; partial examples are completed."""
    blocks = re.findall(r"^```yaml\n(.*?)^```$", PAGE.read_text(encoding="utf-8"), re.DOTALL | re.MULTILINE)
    return [
        text if "bootstrap:" in text else f"bootstrap: a:1\n{text}" for text in blocks if "commands:" in text
    ]


def cluster_file(folder: Path, text: str) -> TargetFile:
    return load_target_file(write_target_file(folder, text), {"KAFKA_PASSWORD": "secret"})


def with_command(run: str | list[str], placeholder: str) -> str:
    """Return a target file whose command for a cut has a placeholder where *run* has ``{0}``."""
    command = json.dumps(run).replace("{0}", f"{{{placeholder}}}")
    return f'bootstrap: a:1\ncommands: {{cut: {command}, restore: "true"}}'


def do_everything(
    file: TargetFile, folder: Path, nodes: tuple[BrokerNode, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Survey the cluster, then do and undo every fault with commands in the file, like a run.

    Raises:
        UnsafeWordError: harrow refuses the cluster.

    """
    seen = look_at(file, nodes, monkeypatch)
    there = {each.id: each for each in seen.brokers}
    broker, peer = there
    with Journal.of(folder / "state", "c", file.path) as journal:
        commands = FaultCommands(file, there, journal, folder / "log", frozenset(map(str, ALLOWED)))
        for name in HEALED_BY:
            if file.command(name, broker) is not None:
                other = peer if name is CommandName.CUT else None
                commands.begin(name, broker, other).wait()
                commands.undo(name, broker, other)


def look_at(file: TargetFile, nodes: tuple[BrokerNode, ...], monkeypatch: pytest.MonkeyPatch) -> Survey:
    survey = Survey(
        cluster_id="c",
        release=release_of("3.9.2"),
        metadata=KRAFT,
        brokers=nodes,
        controller=1,
        assignments={},
    )
    monkeypatch.setattr(users_brokers, "survey_cluster", lambda *_: survey)
    return survey_of(file)


def attacked(field: str) -> Iterator[tuple[BrokerNode, ...]]:
    """Yield pairs of brokers in which one has a hostile value of a *field*."""
    values: tuple[Any, ...] = ATTACKS if field in TEXTS else (-1, -(2**31))
    for value in values:
        for place in range(len(NODES)):
            nodes = list(NODES)
            nodes[place] = replace(nodes[place], **{field: value})
            yield tuple(nodes)


@pytest.mark.parametrize("text", examples())
@pytest.mark.parametrize("field", [*TEXTS, *NUMBERS])
def test_no_example_of_the_documentation_runs_a_value_of_the_cluster(
    machine: Path, monkeypatch: pytest.MonkeyPatch, text: str, field: str
) -> None:
    file = cluster_file(machine, text)
    for nodes in attacked(field):
        is_needed = any(
            FIELDS.get(name) == field
            for node, standard in zip(nodes, NODES, strict=True)
            if node != standard and node.id in (file.brokers or {node.id})
            for name in file.placeholders(node.id)
        )
        if is_needed:
            with pytest.raises(UnsafeWordError, match=f"^{field} of the cluster's broker -?[0-9]+: "):
                do_everything(file, machine, nodes, monkeypatch)
        else:
            look_at(file, nodes, monkeypatch)
    assert not (machine / "pwned").exists()


@pytest.mark.parametrize("name", [*BROKER_PLACEHOLDERS, *PEER_PLACEHOLDERS])
@pytest.mark.parametrize("run", TEMPLATES, ids=str)
def test_no_form_of_a_command_runs_a_value_of_the_cluster(
    machine: Path, monkeypatch: pytest.MonkeyPatch, run: str | list[str], name: str
) -> None:
    file = cluster_file(machine, with_command(run, name))
    for nodes in attacked(FIELDS[name]):
        with pytest.raises(UnsafeWordError):
            do_everything(file, machine, nodes, monkeypatch)
    assert not (machine / "pwned").exists()


@pytest.mark.parametrize("run", TEMPLATES, ids=str)
def test_each_form_of_a_command_would_run_or_misread_an_unchecked_attack(
    machine: Path, run: str | list[str]
) -> None:
    """This proves that the check of words is the only barrier between a cluster and a shell."""

    def unchecked(text: str) -> CommandWord:
        return str.__new__(CommandWord, text)

    parts = [run] if isinstance(run, str) else run
    filled = [part.replace("{0}", "{host}") for part in parts]
    command = Command(filled[0] if isinstance(run, str) else tuple(filled), 60)
    log = machine / "log"
    for value in ATTACKS:
        if "\0" in value or "\ud800" in value:
            continue
        running = command.filled({"host": unchecked(value)}).begin(machine, log)
        running._process.wait(60)
        running.end()
        if (machine / "pwned").exists():
            return
    # No shell reads the value, but the program takes it for an option.
    assert run == ["docker", "kill", "{0}"]
    assert "<kill><-1>" in (machine / "notes").read_text(encoding="utf-8").splitlines()


@pytest.mark.parametrize(
    "run", [run for run in TEMPLATES if "note" in str(run) or "iptables" in str(run)], ids=str
)
def test_a_safe_word_passes_every_shell_unchanged(machine: Path, run: str | list[str]) -> None:
    draws = random.Random(0)
    parts = [run] if isinstance(run, str) else run
    filled = [part.replace("{0}", "{host}") for part in parts]
    command = Command(filled[0] if isinstance(run, str) else tuple(filled), 60)
    for _ in range(5):
        word = "a" + "".join(draws.choices(WORD_LETTERS, k=12))
        command.filled({"host": CommandWord(word)}).run(machine, machine / "log")
        assert (machine / "notes").read_text(encoding="utf-8").splitlines()[-1].endswith(f"<{word}>")


def test_a_refusal_names_the_broker_and_the_value_on_one_line(
    machine: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = cluster_file(machine, with_command("echo {rack}", "rack"))
    with pytest.raises(UnsafeWordError) as refused:
        look_at(file, (NODES[0], replace(NODES[1], rack="\x1b[2J\n::error::")), monkeypatch)
    assert str(refused.value) == (
        r"rack of the cluster's broker 2: `\x1b[2J\n::error::` is not safe in a command: "
        "only letters, digits and ._:- are safe, and it must not begin with -"
    )


def test_a_hostile_value_that_no_command_uses_is_accepted(
    machine: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = cluster_file(machine, with_command("echo {host}", "host"))
    for nodes in attacked("rack"):
        assert look_at(file, nodes, monkeypatch).brokers == nodes


def test_a_hostile_peer_is_refused_if_a_command_of_another_broker_uses_it(
    machine: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = """\
bootstrap: a:1
brokers: [{id: 1, commands: {cut: "echo {peer_host}", restore: "true"}}, {id: 2}]
"""
    with pytest.raises(UnsafeWordError, match="broker 2"):
        look_at(cluster_file(machine, text), (NODES[0], replace(NODES[1], host="$(id)")), monkeypatch)
