"""The time and memory that a large history takes, and whether all planted anomalies are found.

Run ``python -m benchmarks.large_histories [OPERATIONS] [--engine spark] [--master URL]``. Each
operation is one line. The history has 8 producers, 4 consumers and some partitions with a correct
log, and every million operations it has one anomaly of each kind. The anomalies are planted in
partitions of their own, except for a duplicate and a repeated poll in the busy ones. Transactions
send to two of 4 other partitions, and some overlap; ``--plain`` leaves them out. With ``--form``,
acks name no offsets, the lines are EDN, the file is compressed, each client has a file of its own,
or files have the lines in turn. ``harrow check`` judges the history in its own process, and must
find each anomaly and nothing else; otherwise the benchmark exits with 1. On Spark, figures come
from its event log too.
"""

import argparse
import gzip
import json
import os
import resource
import shutil
import subprocess
import sys
import tempfile
import time
from collections import Counter, deque
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any, Final, TextIO

from benchmarks.spark_log import read_log, write_settings
from harrow.campaigns.record.history_file import read_history
from harrow.checks.history.judge import judge_history

PRODUCERS: Final = 8
CONSUMERS: Final = 4
SENDS_PER_ROUND: Final = 10
LINES_PER_ROUND: Final = 2 * SENDS_PER_ROUND + 2
OPERATIONS_PER_SET: Final = 1_000_000
ROUNDS_PER_TRANSACTIONS: Final = 8
TRANSACTIONAL_PARTITIONS: Final = 4
FIRST_TRANSACTIONAL: Final = PRODUCERS + CONSUMERS

FORMS: Final = ("lines", "no-offsets", "edn", "gzip", "clients", "turns")
CLIENT_FILES: Final = 4
TURN_FILES: Final = 20
OPERATION_KEYS: Final = ("index", "process", "type", "f", "value", "time")

Line = tuple[int, str, str, list[Any]]


class Recording:
    """Writes the lines of a history."""

    def __init__(self, file: TextIO) -> None:
        self._write = file.write
        self.lines = 0

    def add(self, process: int, type_: str, f: str, value: str) -> None:
        index = self.lines
        self._write(
            f'{{"index": {index}, "process": {process}, "type": "{type_}", "f": "{f}", "value": {value}, '
            f'"time": {1_000 * index}}}\n'
        )
        self.lines = index + 1


class Planter:
    """Makes the operations of set *number* of anomalies, in partitions of its own."""

    def __init__(self, number: int) -> None:
        self._number = number
        self._first = 1_000 + 100 * number

    def _sent(
        self, process: int, partition: str, value: str, offset: int, type_: str = "ok"
    ) -> Iterator[Line]:
        process += self._first
        place = f"{partition}-{self._number}"
        yield process, "invoke", "send", [["send", place, f"{value}-{place}"]]
        record: Any = [offset, f"{value}-{place}"] if type_ == "ok" else f"{value}-{place}"
        yield process, type_, "send", [["send", place, record]]

    def _read(self, process: int, partition: str, *records: tuple[int, str]) -> Iterator[Line]:
        process += self._first
        place = f"{partition}-{self._number}"
        pairs = [[offset, f"{value}-{place}"] for offset, value in records]
        yield process, "invoke", "poll", [["poll"]]
        yield process, "ok", "poll", [["poll", {place: pairs} if pairs else {}]]

    def _transaction(self, process: int, type_: str, *parts: tuple[Any, ...]) -> Iterator[Line]:
        """Yield a transaction that sends (partition, value, offset), or polls it given a fourth."""
        process += self._first
        begun: list[Any] = []
        ended: list[Any] = []
        for partition, value, offset, *polled in parts:
            place = f"{partition}-{self._number}"
            named = f"{value}-{place}"
            begun.append(["poll"] if polled else ["send", place, named])
            record: Any = [offset, named] if type_ == "ok" else named
            ended.append(["poll", {place: [[offset, named]]}] if polled else ["send", place, record])
        yield process, "invoke", "txn", begun
        yield process, type_, "txn", ended

    def of_sends(self) -> Iterator[Line]:
        yield from self._sent(0, "unseen", "a", 0)
        yield from self._read(1, "unseen", (0, "a"))
        yield from self._sent(0, "unseen", "b", 1)
        yield from self._read(1, "unseen")
        yield from self._sent(43, "lost", "a", 0)
        yield from self._sent(44, "lost", "b", 1)
        yield from self._sent(45, "lost", "c", 2)
        yield from self._read(46, "lost", (0, "a"))
        yield from self._read(46, "lost", (2, "c"))
        yield from self._sent(2, "conflict", "a", 0)
        yield from self._sent(3, "conflict", "b", 0)
        yield from self._read(4, "conflict", (0, "a"))
        yield from self._read(5, "conflict", (0, "b"))
        yield from self._sent(6, "order", "a", 1)
        yield from self._sent(6, "order", "b", 0)
        yield from self._read(7, "order", (0, "b"), (1, "a"))
        for offset, value in enumerate("abcdef"):
            yield from self._sent(8 + offset, "skip", value, offset)

    def of_polls(self) -> Iterator[Line]:
        yield from self._read(20, "skip", *enumerate("abcdef"))
        yield from self._read(21, "skip", (0, "a"))
        yield from self._read(21, "skip", (4, "e"))
        yield from self._read(22, "skip", (2, "c"))
        yield from self._read(22, "skip", (1, "b"))
        yield from self._read(23, "skip", (0, "a"), (2, "c"))
        yield from self._read(24, "skip", (3, "d"), (2, "c"))
        yield from self._sent(25, "aborted", "a", 0, "fail")
        yield from self._read(26, "aborted", (0, "a"))
        yield from self._transaction(27, "ok", ("early", "a", 0), ("early", "a", 0, True))
        yield from self._sent(28, "misrouted", "a", 0)
        yield from self._read(29, "misrouted", (0, "a"))
        yield from self._sent(28, "other", "b", 0)
        yield (
            29,
            "ok",
            "poll",
            [
                [
                    "poll",
                    {
                        f"other-{self._number}": [
                            [0, f"b-other-{self._number}"],
                            [1, f"a-misrouted-{self._number}"],
                        ]
                    },
                ]
            ],
        )

    def of_transactions(self) -> Iterator[Line]:
        yield from self._transaction(30, "info", ("torn", "a", 0), ("half", "b", 0))
        yield from self._sent(31, "half", "c", 1)
        yield from self._read(32, "torn", (0, "a"))
        yield from self._read(32, "half", (1, "c"))
        yield from self._read(32, "half")
        yield (
            self._first + 33,
            "invoke",
            "txn",
            [
                ["send", f"g-{self._number}", f"a-g-{self._number}"],
                ["send", f"h-{self._number}", f"d-g-{self._number}"],
            ],
        )
        yield (
            self._first + 34,
            "invoke",
            "txn",
            [
                ["send", f"g-{self._number}", f"b-g-{self._number}"],
                ["send", f"h-{self._number}", f"c-g-{self._number}"],
            ],
        )
        yield (
            self._first + 33,
            "ok",
            "txn",
            [
                ["send", f"g-{self._number}", [0, f"a-g-{self._number}"]],
                ["send", f"h-{self._number}", [1, f"d-g-{self._number}"]],
            ],
        )
        yield (
            self._first + 34,
            "ok",
            "txn",
            [
                ["send", f"g-{self._number}", [1, f"b-g-{self._number}"]],
                ["send", f"h-{self._number}", [0, f"c-g-{self._number}"]],
            ],
        )
        yield (
            35,
            "ok",
            "poll",
            [
                [
                    "poll",
                    {
                        f"g-{self._number}": [[0, f"a-g-{self._number}"], [1, f"b-g-{self._number}"]],
                        f"h-{self._number}": [[0, f"c-g-{self._number}"], [1, f"d-g-{self._number}"]],
                    },
                ]
            ],
        )
        yield from self._transaction(36, "ok", ("i", "a", 0), ("j", "b", 0, True))
        yield from self._transaction(37, "ok", ("j", "b", 0), ("i", "a", 0, True))
        yield from self._sent(38, "between", "c", 1)
        yield from self._transaction(39, "ok", ("between", "a", 0), ("between", "b", 2))
        yield from self._read(40, "between", (0, "a"), (1, "c"), (2, "b"))
        yield from self._transaction(41, "ok", ("inside", "a", 1), ("inside", "b", 0))
        yield from self._read(42, "inside", (0, "b"), (1, "a"))

    def all(self) -> Iterator[Line]:
        yield from self.of_sends()
        yield from self.of_polls()
        yield from self.of_transactions()


def write_history(path: Path, operations: int, partitions: int, *, has_transactions: bool = True) -> int:
    """Write a history, and return how many sets of anomalies it has."""
    ends = [0] * partitions
    unread: list[deque[tuple[int, int]]] = [deque() for _ in range(partitions)]
    transactions = Transactions()
    sets = value = rounds = 0
    with path.open("w", encoding="utf-8") as file:
        recording = Recording(file)
        while recording.lines < operations or any(unread):
            is_over = recording.lines >= operations
            rounds += 1
            if has_transactions and not is_over and rounds % ROUNDS_PER_TRANSACTIONS == 0:
                transactions.add(recording)
            plants = not is_over and recording.lines >= OPERATIONS_PER_SET * sets + OPERATIONS_PER_SET // 2
            for number in range(0 if is_over else SENDS_PER_ROUND):
                partition, process = value % partitions, value % PRODUCERS
                name, offset = f"t-{partition}", ends[partition]
                recording.add(process, "invoke", "send", f'[["send", "{name}", "m{value}"]]')
                recording.add(process, "ok", "send", f'[["send", "{name}", [{offset}, "m{value}"]]]')
                unread[partition].append((offset, value))
                ends[partition] += 1
                if plants and number == 1:  # the second one is stored twice
                    unread[partition].append((offset + 1, value))
                    ends[partition] += 1
                value += 1
            consumer = value // SENDS_PER_ROUND % CONSUMERS
            if is_over:
                consumer = next(at % CONSUMERS for at, records in enumerate(unread) if records)
            _poll(recording, PRODUCERS + consumer, unread, consumer, reads_again=plants)
            if plants:
                sets += 1
                for process, type_, f, micros in Planter(sets).all():
                    recording.add(process, type_, f, json.dumps(micros))
        for consumer in (*range(CONSUMERS), CONSUMERS + 2):  # each reads to the end
            recording.add(PRODUCERS + consumer, "invoke", "poll", '[["poll"]]')
            recording.add(PRODUCERS + consumer, "ok", "poll", '[["poll", {}]]')
    return sets


class Transactions:
    """Makes pairs of correct transactions that overlap, and a poll that reads both.

    Each commit leaves an offset to its marker.
    """

    def __init__(self) -> None:
        self._ends = [0] * TRANSACTIONAL_PARTITIONS
        self._count = 0

    def add(self, recording: Recording) -> None:
        first = self._count % TRANSACTIONAL_PARTITIONS
        places = first, (first + 1) % TRANSACTIONAL_PARTITIONS
        processes = (FIRST_TRANSACTIONAL, FIRST_TRANSACTIONAL + 1)
        numbers = (self._count, self._count + 1)
        self._count += 2
        for process, number in zip(processes, numbers, strict=True):
            sends = ", ".join(f'["send", "x-{place}", "x{number}-{place}"]' for place in places)
            recording.add(process, "invoke", "txn", f"[{sends}]")
        read: dict[int, list[str]] = {place: [] for place in places}
        for process, number in zip(processes, numbers, strict=True):
            completed: list[str] = []
            for place in places:
                record = f'[{self._ends[place]}, "x{number}-{place}"]'
                completed.append(f'["send", "x-{place}", {record}]')
                read[place].append(record)
                self._ends[place] += 2
            recording.add(process, "ok", "txn", f"[{', '.join(completed)}]")
        polled = ", ".join(f'"x-{place}": [{", ".join(records)}]' for place, records in read.items())
        recording.add(FIRST_TRANSACTIONAL + 2, "invoke", "poll", '[["poll"]]')
        recording.add(FIRST_TRANSACTIONAL + 2, "ok", "poll", f'[["poll", {{{polled}}}]]')


def _poll(
    recording: Recording,
    process: int,
    unread: list[deque[tuple[int, int]]],
    consumer: int,
    *,
    reads_again: bool,
) -> None:
    """Let a consumer read all its partitions to the end, and perhaps its last record again."""
    names = [at for at in range(len(unread)) if at % CONSUMERS == consumer and unread[at]]
    read = ", ".join(
        f'"t-{at}": [' + ", ".join(f'[{offset}, "m{record}"]' for offset, record in unread[at]) + "]"
        for at in names
    )
    recording.add(process, "invoke", "poll", '[["poll"]]')
    recording.add(process, "ok", "poll", f'[["poll", {{{read}}}]]')
    if reads_again and names:
        offset, record = unread[names[0]][-1]
        again = f'"t-{names[0]}": [[{offset}, "m{record}"]]'
        recording.add(process, "ok", "poll", f'[["poll", {{{again}}}]]')
    for at in names:
        unread[at].clear()


def in_form(path: Path, form: str) -> list[Path]:
    """Write the lines of a history in another form, and return the files."""
    if form == "lines":
        return [path]
    if form == "gzip":
        packed = path.with_suffix(".jsonl.gz")
        with path.open("rb") as lines, gzip.open(packed, "wb", compresslevel=1) as file:
            shutil.copyfileobj(lines, file)
        return [packed]
    with ExitStack() as stack:
        files: dict[str, TextIO] = {}
        for line in stack.enter_context(path.open(encoding="utf-8")):
            operation = json.loads(line)
            name = form
            if form == "clients":
                name = f"{form}-{operation['process'] % CLIENT_FILES}"
            elif form == "turns":
                name = f"{form}-{operation['index'] % TURN_FILES}"
            if name not in files:
                files[name] = stack.enter_context((path.parent / name).open("w", encoding="utf-8"))
            if form == "no-offsets":
                _forget_offsets(operation)
            text = edn(operation) if form == "edn" else json.dumps(operation)
            files[name].write(f"{text}\n")
    return [path.parent / name for name in files]


def _forget_offsets(operation: dict[str, Any]) -> None:
    """Remove the offset of the ack of a single send."""
    if operation["f"] == "send" and operation["type"] == "ok":
        ((send, partition, (_, value)),) = operation["value"]
        operation["value"] = [[send, partition, value]]


def edn(value: Any, *, is_word: bool = False) -> str:
    """Write an operation as Jepsen does: names are keywords, others are strings."""
    if isinstance(value, dict):
        named = all(key in OPERATION_KEYS for key in value)
        pairs = (
            f"{edn(key, is_word=named)} {edn(each, is_word=named and key in ('type', 'f'))}"
            for key, each in value.items()
        )
        return f"{{{', '.join(pairs)}}}"
    if isinstance(value, list):
        return f"[{' '.join(edn(each, is_word=each in ('send', 'poll')) for each in value)}]"
    return f":{value}" if is_word else json.dumps(value)


def anomalies_of_a_set(folder: Path, form: str, partitions: int, *, has_transactions: bool) -> Counter[str]:
    """Return how many anomalies of each kind a set has, judged without any reduction."""
    path = folder / "one.jsonl"
    sets = write_history(path, OPERATIONS_PER_SET // 2 + 1_000, partitions, has_transactions=has_transactions)
    (path,) = in_form(path, form if form == "no-offsets" else "lines")
    with path.open("rb") as lines:
        verdict = judge_history(read_history(lines, path.name))
    path.unlink()
    return Counter({name: result.count // sets for name, result in verdict.rules.items() if result.count})


def measure(
    operations: int, partitions: int, form: str, options: list[str], *, has_transactions: bool
) -> bool:
    """Judge a history, and return whether all planted anomalies were found, and nothing else."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        of_a_set = anomalies_of_a_set(folder, form, partitions, has_transactions=has_transactions)
        path = folder / "history.jsonl"
        sets = write_history(path, operations, partitions, has_transactions=has_transactions)
        files = in_form(path, form)
        command = [
            sys.executable,
            "-m",
            "harrow",
            "check",
            *map(str, files),
            "--format",
            "json",
            "--max-findings",
            "10",
        ]
        settings = write_settings(folder) if "spark" in options else {}
        began, before = time.perf_counter(), resource.getrusage(resource.RUSAGE_CHILDREN)
        ended = subprocess.run(  # noqa: S603 - harrow itself
            [*command, *options], capture_output=True, text=True, check=False, env={**os.environ, **settings}
        )
        wall_s, after = time.perf_counter() - began, resource.getrusage(resource.RUSAGE_CHILDREN)
        if not ended.stdout:
            raise SystemExit(ended.stderr)
        rules = json.loads(ended.stdout)["rules"]
        found = Counter({rule: result["count"] for rule, result in rules.items() if result["count"]})
        expected = Counter({rule: count * sets for rule, count in of_a_set.items()})
        cpu_s = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
        print(
            f"{operations:.0e} operations, {sum(each.stat().st_size for each in files) >> 20} MiB of {form}: "
            f"{wall_s:.0f} s, {cpu_s:.0f} CPU s, "
            f"{after.ru_maxrss >> 10} MiB in the largest process{' without executors' * bool(settings)}; "
            f"{found.total()} anomalies of {len(found)} kinds, {'as planted' if found == expected else 'NOT as planted'}"
        )
        if settings:
            print(f"  {read_log(folder)}")
        for rule in sorted(found.keys() | expected.keys()):
            if found[rule] != expected[rule]:
                print(f"  {rule}: {found[rule]} found, {expected[rule]} planted")
    return found == expected


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("operations", type=float, nargs="*", default=[1e6, 1e7])
    parser.add_argument("--partitions", type=int, default=16)
    parser.add_argument("--plain", action="store_true", help="only the planted transactions")
    parser.add_argument("--form", choices=FORMS, default=FORMS[0])
    parser.add_argument("--engine", choices=["process", "spark"], default="process")
    parser.add_argument("--master", default=f"local[{os.cpu_count()}]")
    arguments = parser.parse_args()
    options = ["--engine", arguments.engine]
    if arguments.engine == "spark":
        options += ["--master", arguments.master]
    are_as_planted = [
        measure(
            int(operations),
            arguments.partitions,
            arguments.form,
            options,
            has_transactions=not arguments.plain,
        )
        for operations in arguments.operations
    ]
    return 0 if all(are_as_planted) else 1


if __name__ == "__main__":
    sys.exit(main())
