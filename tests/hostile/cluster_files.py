"""Hostile files for all commands that read a cluster: ``python -m tests.hostile.cluster_files``.

Each command runs in a fork of a process that has imported harrow. A hostile file must be refused
with exit code 2 and a short reason, and an unusual one must cause no failure. In each round every
file is for another command, so that a few rounds try all.
"""

import argparse
import shutil
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping
from importlib import import_module
from itertools import product
from pathlib import Path
from typing import Final

from tests.hostile.campaign import warm_up
from tests.hostile.texts import COMMAND
from tests.hostile.trial import CPU_MAX_S, RSS_MAX_KIB, run_in_fork
from tests.plain_environment import PYTHONPATH, plain_environment

LINES_MAX: Final = 4
"""How many lines a refusal may have: a summary, and a few mistakes in the file."""
LINE_MAX: Final = 700
COMMANDS: Final[Mapping[str, tuple[str, ...]]] = {
    "import": ("import", "{}", "-o", "out.yaml"),
    "validate": ("validate", "{}"),
    "run --cluster": ("run", "ack-lost", "--cluster", "{}", "--no-results"),
    "assess": ("assess", "{}", "--runs", "1", "--jobs", "1"),
    "advise": ("advise", "{}", "--survive", "broker-dies", "--runs", "1", "--jobs", "1"),
    "new --from": ("new", "ours", "--from", "{}"),
}
_PROPERTIES: Final = "node.id=1\nprocess.roles=broker,controller\nmin.insync.replicas=2\n"
_CLUSTER: Final = "kafka: '4.3'\nbrokers: 3\nsettings: {min.insync.replicas: 2}\n"
_STRIMZI: Final = "apiVersion: kafka.strimzi.io/v1\nkind: Kafka\nmetadata: {name: k}\nspec: "
_COMPOSE: Final = "services:\n  broker:\n    image: apache/kafka:4.3.0\n    environment: "
_DEEP: Final = 5_000
_GIGABYTES: Final = 3 << 30

TEXTS: Final[Mapping[str, bytes | str]] = {
    # Not text
    "nothing": "",
    "spaces": " \n\t\n",
    "NUL bytes": b"\0" * 4_096,
    "a NUL in a key": "brokers\0: 3\n",
    "a NUL in a value": "node.id=1\0\nprocess.roles=broker\0\n" + "\0=\0\n" * 50,
    "bytes": bytes(range(256)) * 64,
    "an image": b"\x89PNG\r\n\x1a\n" + bytes(range(256)),
    "gzip": b"\x1f\x8b\x08\0\0\0\0\0\0\3" + bytes(range(256)),
    "UTF-16": _CLUSTER.encode("utf-16"),
    "UTF-16 without a mark": _CLUSTER.encode("utf-16-le"),
    "broken UTF-8": _CLUSTER.encode() + b"# caf\xe9 \xff\xfe\n: [\n",
    # YAML that attacks
    "a Python object": "brokers: !!python/object/apply:os.system ['touch planted']\n",
    "a Python object in Strimzi": f"{_STRIMZI}!!python/object/apply:os.system ['touch planted']\n",
    "a Python object in compose": f"{_COMPOSE}!!python/object/new:os.system ['touch planted']\n",
    "another tag": "brokers: !include /etc/passwd\n",
    "deep lists": f"brokers: {'[' * _DEEP}{']' * _DEEP}\n",
    "deep mappings": f"brokers: {'{a: ' * _DEEP}{'}' * _DEEP}\n",
    "deep lists in Strimzi": f"{_STRIMZI}{'[' * _DEEP}{']' * _DEEP}\n",
    "deep mappings in compose": f"{_COMPOSE}{'{a: ' * _DEEP}{'}' * _DEEP}\n",
    "a billion laughs": "a: &a [x, x, x, x, x, x, x, x, x]\n"
    + "".join(
        f"{new}: &{new} [{', '.join([f'*{old}'] * 9)}]\n"
        for old, new in zip("abcdefgh", "bcdefghi", strict=True)
    )
    + "brokers: *i\n",
    "an anchor that contains itself": "brokers: &a [*a]\n",
    "merged keys": "x: &x {brokers: 3}\n<<: *x\n",
    "many documents": _CLUSTER + "---\n" * 5_000,
    "a directive": "%YAML 9.9\n---\nbrokers: 3\n",
    "equal keys": "brokers: 3\nbrokers: 4\n",
    "tabs": "brokers:\n\t- 1\n",
    "an open quotation": 'brokers: "3\n',
    # Wrong types and sizes
    "a list": "- brokers: 3\n",
    "a number": "3\n",
    "brokers as a text": "brokers: many\nkafka: '4.3'\n",
    "settings as a list": "brokers: 3\nsettings: [a, b]\n",
    "topics as a mapping": "brokers: 3\ntopics: {a: {b: {c: d}}}\n",
    "a million brokers": "brokers: 1000000\n",
    "many partitions": "brokers: 3\ntopics: [{name: t, partitions: 999999999}]\n",
    "a huge number": f"brokers: {'9' * 5_000}\n",
    "negative ids": "brokers: [{id: -1}, {id: -2}]\n",
    "a number that is none": "brokers: .nan\ndisk: {flush: .inf}\n",
    "nulls": "brokers: ~\ntopics: ~\nsettings: {acks: ~}\n",
    "replicas of Strimzi": f"{_STRIMZI}{{kafka: {{replicas: 99999999999999999999}}}}\n",
    "a list as Strimzi's section": f"{_STRIMZI}{{kafka: {{replicas: [1, [2]], config: [x]}}}}\n",
    "ids of properties": "node.id=99999999999999999999\nprocess.roles=broker\n",
    "a wrong escape": "node.id=\\uZZZZ\nprocess.roles=broker\n",
    # Names that pretend
    "a command to CI": f"{COMMAND}: 3\nbrokers: 3\n",
    "a command to CI in properties": f"node.id=x\\n{COMMAND}\nprocess.roles=broker\n",
    "escape sequences": 'brokers: 3\n"\\e[31mred\\e[2J": 1\n',
    "a path as a name": "brokers: 3\ntopics: [{name: ../../../etc/passwd}]\n",
    "a cluster of a cluster": "cluster: file.yaml\nbrokers: 3\n",
    "a campaign": "name: x\nworkload: {duration: 1s}\nfaults: []\nbrokers: 3\n",
}
"""Texts that every command must refuse."""
UNUSUAL: Final[Mapping[str, bytes | str]] = {
    "a mark and CRLF": b"\xef\xbb\xbf" + _CLUSTER.replace("\n", "\r\n").encode(),
    "properties with a mark": b"\xef\xbb\xbf" + _PROPERTIES.encode(),
    "properties with CR": _PROPERTIES.replace("\n", "\r"),
    "properties in Latin-1": _PROPERTIES.encode() + b"broker.rack=caf\xe9\n",
    "a line of a megabyte": _PROPERTIES + f"listeners={'x' * (1 << 20)}\n",
    "a hundred thousand lines": _PROPERTIES + "".join(f"a.{number}={number}\n" for number in range(20_000)),
    "hidden commands": _PROPERTIES + f"broker.rack=a\\n{COMMAND}\n\u202eevil=1\n",
}
"""Texts that some commands accept."""


def _link(folder: Path, to: str) -> None:
    (folder / "file.yaml").symlink_to(to)


def _cycle(folder: Path) -> None:
    _link(folder, "other")
    (folder / "other").symlink_to("file.yaml")


def _sparse(folder: Path) -> None:
    with (folder / "file.yaml").open("wb") as file:
        file.truncate(_GIGABYTES)


FILES: Final[Mapping[str, Callable[[Path], None]]] = {
    "a link to itself": lambda folder: _link(folder, "file.yaml"),
    "links in a circle": _cycle,
    "a link to nothing": lambda folder: _link(folder, "nothing"),
    "a link to a device": lambda folder: _link(folder, "/dev/zero"),
    "a link to a folder of the system": lambda folder: _link(folder, "/proc/self/fd"),
    "gigabytes": _sparse,
    "an empty folder": lambda folder: (folder / "file.yaml").mkdir(),
}
"""Files, links and folders that every command must refuse."""


def main() -> int:
    """Run a command with each file, print the failed ones, and return 1 if there are any."""
    parser = argparse.ArgumentParser(prog="python -m tests.hostile.cluster_files", description=__doc__)
    parser.add_argument("--rounds", type=int, default=len(COMMANDS))
    parser.add_argument("--first", type=int, default=0, help="the number of the first round")
    options = parser.parse_args()
    warm_up()
    for name in ("import", "assess", "advise"):
        import_module(f"harrow.cli.commands.{name}")
    failed = 0
    files = list(_files())
    with tempfile.TemporaryDirectory(prefix="cluster-files-") as place:
        for round_number, (number, (name, create, is_hostile)) in product(
            range(options.first, options.first + options.rounds), enumerate(files)
        ):
            command, words = list(COMMANDS.items())[(number + round_number) % len(COMMANDS)]
            for fault in _faults(Path(place) / "case", words, create, is_hostile=is_hostile):
                sys.stdout.write(f"{name}, {command}: {fault}\n")
                failed += 1
    sys.stdout.write(f"{len(files)} files: {failed} faults\n")
    return int(failed > 0)


def _files() -> Iterator[tuple[str, Callable[[Path], None], bool]]:
    yield from ((name, create, True) for name, create in FILES.items())
    yield from ((name, _writer(text), True) for name, text in TEXTS.items())
    yield from ((name, _writer(text), False) for name, text in UNUSUAL.items())


def _writer(text: bytes | str) -> Callable[[Path], None]:
    content = text if isinstance(text, bytes) else text.encode("utf-8")

    def write(folder: Path) -> None:
        (folder / "file.yaml").write_bytes(content)

    return write


def _faults(
    folder: Path, words: tuple[str, ...], create: Callable[[Path], None], *, is_hostile: bool
) -> Iterator[str]:
    streams = folder.with_name(f"{folder.name}.streams")
    for path in (folder, streams):
        shutil.rmtree(path, ignore_errors=True)
    folder.mkdir()
    create(folder)
    environment = {**plain_environment(), "PYTHONPATH": PYTHONPATH, "HARROW_STATE": str(folder / "state")}
    outcome = run_in_fork([word.format("file.yaml") for word in words], folder, environment)
    yield from outcome.faults
    if outcome.cpu_s > CPU_MAX_S or outcome.rss_kib > RSS_MAX_KIB:
        yield f"took {outcome.cpu_s:.1f} CPU s, {outcome.rss_kib >> 10} MiB"
    lines = "".join(
        (streams / name).read_text("utf-8", "replace") for name in ("stdout", "stderr")
    ).splitlines()
    if is_hostile and outcome.code != 2:
        yield f"exit code {outcome.code}: {lines[-1:]!a}"
    if outcome.code == 2 and not 1 <= len(lines) <= LINES_MAX:
        yield f"{len(lines)} lines: {lines[:LINES_MAX]!a}"
    if any(len(line) > LINE_MAX for line in lines):
        yield f"a long line: {max(lines, key=len)[:200]!a}"


if __name__ == "__main__":
    sys.exit(main())
