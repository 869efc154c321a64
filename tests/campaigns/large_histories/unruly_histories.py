"""Random histories with mistakes of all kinds, most of them small."""

from collections import defaultdict
from random import Random
from typing import Any

from tests.properties.correct_log import History

PRODUCERS = 4
CONSUMERS = (10, 11, 12)
Records = list[tuple[int, str]]


class UnrulyHistory:
    """Plays clients of a log that sometimes errs. A seed determines how often, and in what."""

    def __init__(self, seed: int) -> None:
        self._random = random = Random(seed)
        self._partitions = [f"t-{number}" for number in range(random.randrange(1, 4))]
        self._wildness = random.choice([0, 0.02, 0.1, 0.4])
        self.transactions = random.choice([0, 0, 0, 0.05])
        self.assignments = random.choice([0, 0, 0.02, 0.1])
        self._unnamed_offsets = random.choice([0, 0, 0.5, 1])
        self._gaps = random.choice([0, 0, 0.1])
        self._logs: dict[str, Records] = {name: [] for name in self._partitions}
        self._ends = dict.fromkeys(self._partitions, 0)
        self._places: defaultdict[tuple[int, str], int] = defaultdict(int)
        self._open: defaultdict[int, list[tuple[str, str]]] = defaultdict(list)
        self._assigned: dict[int, list[str]] = {}
        self._values = 0
        self.lines: History = []

    def _errs(self, share: float) -> bool:
        return self._random.random() < self._wildness * share

    def _add(self, process: int, type_: str, f: str, value: list[Any], **more: Any) -> None:
        number = len(self.lines)
        line = {"process": process, "type": type_, "f": f, "value": value, "time": 1_000 * number}
        self.lines.append({"index": number, **line, **more})

    def _store(self, partition: str, value: str) -> int:
        if self._random.random() < self._gaps:
            self._ends[partition] += self._random.randrange(1, 3)
        offset = self._ends[partition]
        self._ends[partition] += 1
        self._logs[partition].append((offset, value))
        return offset

    def _new_value(self) -> str:
        self._values += 1
        return f"m{self._values}"

    def _old_value(self) -> str:
        return f"m{self._random.randrange(self._values + 1)}"

    def invoke(self) -> None:
        process, partition = self._random.randrange(PRODUCERS), self._random.choice(self._partitions)
        value = self._old_value() if self._errs(0.3) else self._new_value()
        self._add(process, "invoke", "send", [["send", partition, value]])
        self._open[process].append((partition, value))
        if self._random.random() < 0.6:
            self.complete(process)

    def complete(self, process: int) -> None:
        if not self._open[process]:
            return
        at = 0 if self._random.random() < 0.8 else self._random.randrange(len(self._open[process]))
        partition, value = self._open[process].pop(at)
        if self._errs(0.5):
            if self._random.random() < 0.4:
                self._store(partition, value)
            offset = self._random.randrange(self._ends[partition] + 1)
            named = self._errs(0.2)
            type_ = "info" if named else self._random.choice(["fail", "info"])
            self._add(process, type_, "send", [["send", partition, [offset, value] if named else value]])
        elif not self._errs(0.1):  # otherwise it remains open
            offset = self._store(partition, value)
            if self._errs(0.2):
                self._store(partition, value)
            if self._errs(0.1):
                self._logs[partition].pop()
            if self._errs(0.1):
                offset = self._random.randrange(offset + 2)
            sender = 3 - process if self._errs(0.05) else process
            has_offset = self._random.random() >= self._unnamed_offsets
            self._add(sender, "ok", "send", [["send", partition, [offset, value] if has_offset else value]])

    def transact(self) -> None:
        random, process = self._random, self._random.randrange(PRODUCERS)
        sends = [(random.choice(self._partitions), self._new_value()) for _ in range(random.randrange(1, 3))]
        f = random.choice(["txn", "send"]) if len(sends) > 1 else "txn"
        plain = [["send", *send] for send in sends]
        self._add(process, "invoke", f, plain)
        type_ = random.choice(["ok", "ok", "fail", "info"])
        if type_ == "ok":
            ended = [
                ["send", partition, [self._store(partition, value), value]] for partition, value in sends
            ]
            self._add(process, type_, f, ended)
            return
        if random.random() < 0.3:
            for partition, value in sends:
                self._store(partition, value)
        self._add(process, type_, f, plain)

    def _records(self, consumer: int, partition: str) -> Records:
        random, place = self._random, self._places[consumer, partition]
        if self._errs(0.3):
            place = max(0, place + random.randrange(-2, 3))
        records = self._logs[partition][place : place + random.randrange(4)]
        self._places[consumer, partition] = place + len(records)
        if self._errs(0.2):
            records = records[::-1]
        if self._errs(0.1):
            records = records[1:]
        if self._errs(0.1):
            records = [*records, (random.randrange(self._ends[partition] + 1), self._old_value())]
        return records

    def poll(self) -> None:
        consumer = self._random.choice(CONSUMERS)
        if self._random.random() < 0.95:
            self._add(consumer, "invoke", "poll", [["poll"]])
        read: dict[str, list[list[Any]]] = {}
        for partition in self._partitions:
            is_assigned = partition in self._assigned.get(consumer, self._partitions)
            if self._random.random() < (0.5 if is_assigned else 0.02):
                records = self._records(consumer, partition)
                if records or self._random.random() < 0.1:
                    read[partition] = [list(record) for record in records]
        more = (
            {"rebalance-log": [{"keys": [self._random.choice(self._partitions)]}]} if self._errs(0.1) else {}
        )
        type_ = self._random.choice(["info", "fail"]) if self._errs(0.03) else "ok"
        self._add(consumer, type_, "poll", [["poll", read]], **more)

    def assign(self) -> None:
        random, consumer = self._random, self._random.choice(CONSUMERS)
        names = random.sample(self._partitions, random.randrange(len(self._partitions) + 1))
        type_, f = random.choice(["ok", "ok", "fail", "info"]), random.choice(["assign", "subscribe"])
        self._add(consumer, "invoke", f, names)
        self._add(consumer, type_, f, names)
        if type_ != "fail":
            self._assigned[consumer] = names

    def read_to_end(self) -> None:
        for consumer in CONSUMERS:
            for partition in self._partitions:
                rest = self._logs[partition][self._places[consumer, partition] :]
                if rest:
                    self._add(
                        consumer, "ok", "poll", [["poll", {partition: [list(record) for record in rest]}]]
                    )
            if self._random.random() < 0.6:
                self._add(consumer, "invoke", "poll", [["poll"]])
                self._add(consumer, "ok", "poll", [["poll", {}]])


def unruly_history(seed: int, size: int) -> History:
    """Return a history of about *size* lines."""
    history, random = UnrulyHistory(seed), Random(seed)
    while len(history.lines) < size:
        chosen = random.random()
        if chosen < 0.45:
            history.invoke()
        elif chosen < 0.6:
            history.complete(random.randrange(PRODUCERS))
        elif chosen < 0.6 + history.transactions:
            history.transact()
        elif chosen < 0.97:
            history.poll()
        elif random.random() < 10 * history.assignments:
            history.assign()
    if random.random() < 0.5:
        history.read_to_end()
    return history.lines
