"""Histories recorded against a log without flaws, driven by random numbers.

It is not a model of Kafka: a partition is a list, a transaction is appended to all of its
partitions at once, and a consumer continues from its position. For a judge the difficulties are in
the clients: unknown outcomes, records that arrive after their producer has died, aborted
transactions, consumers that start over, operations that overlap.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

Line = dict[str, Any]
History = list[Line]
Key = str | int
Value = str | int

HUGE_GAP = 10**12
SLOTS = 5

PRODUCER, PIPELINE, CONSUMER, BOTH, TRANSACTIONAL = range(5)
ROLES = (TRANSACTIONAL, PRODUCER, CONSUMER, BOTH, PIPELINE)
"""What a client does. A producer has one send in flight, a pipeline several. A consumer polls. A
client with the role ``BOTH`` sends or polls, and a transactional one does both in a transaction."""

OPERATE, ASSIGN, REBALANCE, COMMIT, NEMESIS = range(5)
ACTIONS = (*(OPERATE,) * 10, ASSIGN, ASSIGN, REBALANCE, REBALANCE, COMMIT, NEMESIS)

OUTCOMES = (*("ok",) * 7, "fail", "fail", "info", "info", "info, not done")


@dataclass(frozen=True)
class Micro:
    """The choices for a micro-operation: a send to one key, or a poll from some assigned keys."""

    polls: bool
    keys: int
    records: int


@dataclass(frozen=True)
class Step:
    """A client's next action.

    ``waits`` says how many steps pass before the operation polls, then before it appends, and then
    before it returns.
    """

    slot: int
    action: int
    micros: tuple[Micro, ...]
    outcome: str
    waits: tuple[int, int, int]
    crashes: bool
    number: int

    @property
    def type(self) -> str:
        """The type of the completion."""
        return self.outcome.split(",")[0]


@dataclass(frozen=True)
class Setup:
    """The clients, the keys, and how the final reads go.

    A ``plain`` history has only sends and polls, like the histories of `harrow run`.
    """

    plain: bool
    roles: tuple[int, ...]
    subscribes: tuple[bool, ...]
    keys: tuple[Key, ...]
    numbers_as_values: bool
    reads_unacked_tail: bool
    final_chunk: int
    final_cut: int


@dataclass
class Log:
    """The readable records of one key, and the next offset.

    ``places`` has the index of each value in ``records``. The final reads have to include the
    first ``acked`` records and the first ``read`` records.
    """

    key: Key
    records: list[tuple[int, Value]] = field(default_factory=list)
    next_offset: int = 0
    places: dict[Value, int] = field(default_factory=dict)
    values: int = 0
    acked: int = 0
    read: int = 0

    def append(self, value: Value) -> int:
        offset = self.next_offset
        self.places[value] = len(self.records)
        self.records.append((offset, value))
        self.next_offset += 1
        return offset

    def new_value(self, *, as_number: bool) -> Value:
        """Return a value that is unique for this key, but not for others."""
        self.values += 1
        return self.values if as_number else f"m{self.values}"


@dataclass
class Pending:
    """An operation between its invocation and its completion."""

    client: "Client"
    step: Step
    f: str
    invoked: list[list[Any]]
    waits: list[int]
    polled: list[dict[str, list[list[Any]]] | None] = field(default_factory=list)
    positions: dict[Key, int] = field(default_factory=dict)
    rebalanced: set[Key] = field(default_factory=set)
    offsets: dict[tuple[Key, Value], int] = field(default_factory=dict)
    appended: bool = False

    @property
    def is_late(self) -> bool:
        """Whether the records of the operation arrive long after its client has crashed."""
        return self.step.outcome == "info" and self.crashes

    @property
    def crashes(self) -> bool:
        """Whether the client crashes during the operation. A pipeline of sends never crashes."""
        return self.step.type == "info" and self.step.crashes and self.client.role != PIPELINE

    def sent(self) -> dict[Key, list[Value]]:
        values: dict[Key, list[Value]] = {}
        for micro in self.invoked:
            if micro[0] == "send":
                values.setdefault(micro[1], []).append(micro[2])
        return values


@dataclass
class Client:
    """The client in a slot. After a crash it continues as another process without state."""

    process: int
    role: int
    subscribes: bool
    assigned: list[Key] = field(default_factory=list)
    positions: dict[Key, int] = field(default_factory=dict)
    pending: list[Pending] = field(default_factory=list)

    @property
    def polls(self) -> bool:
        return self.role in (CONSUMER, BOTH, TRANSACTIONAL)


class CorrectLog:
    """The logs of all keys, the clients, and their history."""

    def __init__(self, setup: Setup) -> None:
        self.setup = setup
        self.history: History = []
        self.logs = {key: Log(key) for key in setup.keys}
        self.clients = [
            Client(slot, role, subscribes)
            for slot, (role, subscribes) in enumerate(zip(setup.roles, setup.subscribes, strict=True))
        ]
        self.late: list[Pending] = []
        self.written: list[Pending] = []
        self.next_process = SLOTS

    def record(self, process: int | str, type_: str, f: str, value: Any, **more: Any) -> None:
        line = {"index": len(self.history), "process": process, "type": type_, "f": f, "value": value}
        self.history.append({**line, "time": 1_000 * len(self.history), **more})

    # Steps

    def run(self, step: Step) -> None:
        client = self.clients[step.slot]
        self.pass_time()
        if step.action == NEMESIS and not self.setup.plain:
            self.disturb(step)
            return
        while client.pending and (
            client.role != PIPELINE or step.action != OPERATE or len(client.pending) > 2
        ):
            self.finish(client.pending[step.number % len(client.pending)])
        if self.setup.plain:
            client.assigned = list(self.setup.keys)
            self.invoke(client, step)
            return
        if client.polls and not client.assigned:
            self.assign(client, step, "ok")
        if client.polls and step.action == ASSIGN:
            self.assign(client, step, step.type)
        elif client.polls and step.action == COMMIT:
            self.record(client.process, "invoke", "commit", None)
            self.record(client.process, step.type, "commit", None)
        else:
            self.invoke(client, step)

    def disturb(self, step: Step) -> None:
        values = (
            None,
            "majority",
            {"n1": ["n2"]},
            [["send", "t-0", [0, "m1"]]],
            [["poll", {"t-0": [[0, "x"]]}]],
        )
        f = ("start-partition", "kill", "send", "poll", "assign")[step.number % 5]
        self.record("nemesis", "info", f, values[step.number % 7 % 5])

    def assign(self, client: Client, step: Step, outcome: str) -> None:
        """Assign other keys.

        Keys that stay assigned keep their positions. Newly assigned keys start anywhere.
        """
        f = "subscribe" if client.subscribes else "assign"
        keys = self.some(self.setup.keys, step.micros[0].keys)
        if client.assigned and step.number % 3 == 0:
            keys = []
        self.record(client.process, "invoke", f, keys)
        self.record(client.process, outcome, f, keys)
        if outcome == "ok":
            client.assigned = keys
            client.positions = {key: at for key, at in client.positions.items() if key in keys}

    def invoke(self, client: Client, step: Step) -> None:
        micros = [
            micro
            for micro in step.micros
            if client.role == TRANSACTIONAL or micro.polls == self.reads(client, step)
        ]
        micros = micros or [Micro(self.reads(client, step), step.number % 8, 1)]
        invoked = [["poll"] if micro.polls else self.new_send(micro) for micro in micros]
        f = "txn" if client.role == TRANSACTIONAL else "poll" if micros[0].polls else "send"
        pending = Pending(
            client, Step(**{**vars(step), "micros": tuple(micros)}), f, invoked, list(step.waits)
        )
        client.pending.append(pending)
        self.record(client.process, "invoke", f, invoked)

    @staticmethod
    def reads(client: Client, step: Step) -> bool:
        return client.role == CONSUMER or (client.role == BOTH and step.micros[0].polls)

    def new_send(self, micro: Micro) -> list[Any]:
        key = self.setup.keys[micro.keys % len(self.setup.keys)]
        return ["send", key, self.logs[key].new_value(as_number=self.setup.numbers_as_values)]

    @staticmethod
    def some(keys: Sequence[Key], mask: int) -> list[Key]:
        return [key for at, key in enumerate(keys) if mask >> at & 1] or list(keys[mask % len(keys) :])

    # The course of an operation

    def pass_time(self) -> None:
        for pending in [pending for client in self.clients for pending in client.pending]:
            if pending not in pending.client.pending:
                continue
            if not any(pending.waits):
                self.finish(pending)
                continue
            stage = next(at for at, wait in enumerate(pending.waits) if wait)
            pending.waits[stage] -= 1
            self.advance(pending)
        for pending in list(self.late):
            pending.waits[0] -= 1
            if pending.waits[0] < 0:
                self.arrive(pending)

    def advance(self, pending: Pending) -> None:
        """Poll when the first wait is over, and append when the second is over too."""
        if not pending.waits[0] and not pending.polled:
            self.poll(pending)
        if not pending.waits[0] and not pending.waits[1]:
            self.append(pending)

    def poll(self, pending: Pending) -> None:
        client, step = pending.client, pending.step
        pending.positions = dict(client.positions)
        polled_keys: set[Key] = set()
        for micro in step.micros:
            if not micro.polls:
                pending.polled.append(None)
                continue
            keys = self.some(client.assigned, micro.keys) if client.assigned else []
            if step.action == REBALANCE and client.subscribes and micro.records and not self.setup.plain:
                for key in polled_keys.intersection(keys):
                    pending.rebalanced.add(key)
                    pending.positions[key] = step.number % len(self.logs[key].records)
            read = {key: self.fetch(pending, key, micro.records) for key in keys}
            pending.polled.append({str(key): pairs for key, pairs in read.items()})
            polled_keys.update(key for key, pairs in read.items() if pairs)

    def fetch(self, pending: Pending, key: Key, count: int) -> list[list[Any]]:
        records = self.logs[key].records
        start = pending.positions.get(key, pending.step.number % (len(records) + 1))
        read = records[start : start + count]
        if read:
            pending.positions[key] = start + len(read)
        return [list(pair) for pair in read]

    def append(self, pending: Pending) -> None:
        """Append the records of an operation, after all earlier ones of its client."""
        for earlier in pending.client.pending:
            if earlier.appended or earlier.is_late:
                continue
            earlier.appended = True
            if earlier.step.outcome in ("ok", "info"):
                self.write(earlier)
            else:
                self.imagine(earlier)
            if earlier is pending:
                break

    def arrive(self, pending: Pending) -> None:
        self.late.remove(pending)
        pending.appended = True
        self.write(pending)

    def write(self, pending: Pending) -> None:
        self.written.append(pending)
        for key, values in pending.sent().items():
            log = self.logs[key]
            log.next_offset += {5: 3, 6: HUGE_GAP}.get(pending.step.number % 16, 0)
            for value in values:
                pending.offsets[key, value] = log.append(value)
            if pending.f == "txn":
                log.next_offset += 1

    def imagine(self, pending: Pending) -> None:
        """Give offsets to records that nobody can read.

        Aborted records occupy their offsets in the log. The offsets of other records are reused.
        """
        for key, values in pending.sent().items():
            log = self.logs[key]
            pending.offsets.update(((key, value), log.next_offset + at) for at, value in enumerate(values))
            if pending.f == "txn" and pending.step.outcome == "fail":
                log.next_offset += len(values) + 1

    def finish(self, pending: Pending) -> None:
        client, step = pending.client, pending.step
        if not pending.polled:
            self.poll(pending)
        self.append(pending)
        client.pending.remove(pending)
        outcome = step.type
        more: dict[str, Any] = {} if outcome == "ok" else {"error": ["timeout", "unknown"]}
        if pending.rebalanced:
            more["rebalance-log"] = [{"keys": [key]} for key in sorted(pending.rebalanced, key=str)]
        self.record(client.process, outcome, pending.f, self.completed(pending, outcome), **more)
        if outcome == "ok":
            client.positions = pending.positions
            self.note(pending)
        elif pending.crashes:
            self.crash(client)
            if pending.is_late:
                pending.waits[0] = step.number % 11
                self.late.append(pending)

    @staticmethod
    def completed(pending: Pending, outcome: str) -> list[list[Any]]:
        """Return the micro-operations with their known results."""
        number = pending.step.number
        has_results = outcome == "ok" or (pending.f == "txn" and number % 2 == 0)
        micros: list[list[Any]] = []
        for at, (micro, polled) in enumerate(zip(pending.invoked, pending.polled, strict=True)):
            if micro[0] == "poll":
                micros.append(["poll", polled] if has_results else ["poll"])
                continue
            _, key, value = micro
            offset = pending.offsets.get((key, value))
            hidden = number % 16 == 9 if outcome == "ok" else number >> (at + 4) & 1
            micros.append(["send", key, value if offset is None or hidden else [offset, value]])
        return micros

    def note(self, pending: Pending) -> None:
        """Remember which records the final reads have to include."""
        for key, values in pending.sent().items():
            log = self.logs[key]
            log.acked = max(log.acked, *(log.places[value] + 1 for value in values))
        for polled in pending.polled:
            for log in self.logs.values():
                for _, value in (polled or {}).get(str(log.key), ()):
                    log.read = max(log.read, log.places[value] + 1)

    def crash(self, client: Client) -> None:
        if not self.setup.plain:
            self.record(client.process, "invoke", "crash", None)
            self.record(client.process, "info", "crash", None)
        client.process, self.next_process = self.next_process, self.next_process + 1
        client.assigned, client.positions = [], {}

    # The final reads

    def read_back(self) -> None:
        """Let late records arrive, then read all records that were acked or read before."""
        for client in self.clients:
            while client.pending:
                self.hang_or_finish(client.pending[0])
        for pending in list(self.late):
            self.arrive(pending)
        if not self.setup.plain:
            self.record("nemesis", "info", "heal", "all")
        parts: list[list[tuple[Log, int, int]]] = [[], []]
        ends = self.ends()
        for log in self.logs.values():
            end = ends[log.key]
            cut = self.setup.final_cut % (end + 1)
            parts[0].append((log, 0, cut))
            parts[1].append((log, cut, end))
        for process, part in enumerate(parts, self.next_process):
            self.read_part(process, part)

    def ends(self) -> dict[Key, int]:
        """Return where the final reads of each log end. They never end inside a transaction."""
        if self.setup.reads_unacked_tail:
            return {key: len(log.records) for key, log in self.logs.items()}
        ends = {key: max(log.acked, log.read) for key, log in self.logs.items()}
        previous: dict[Key, int] = {}
        while previous != ends:
            previous = dict(ends)
            for pending in self.written:
                places = [
                    (key, self.logs[key].places[value])
                    for key, values in pending.sent().items()
                    for value in values
                ]
                if len(places) > 1 and any(place < ends[key] for key, place in places):
                    ends = {
                        key: max(ends[key], *(place + 1 for at, place in places if at == key), 0)
                        for key in ends
                    }
        return ends

    def hang_or_finish(self, pending: Pending) -> None:
        """Complete an operation, or leave it without a completion."""
        if pending.step.type == "ok":
            self.finish(pending)
        else:
            self.append(pending)
            pending.client.pending.remove(pending)

    def read_part(self, process: int, part: list[tuple[Log, int, int]]) -> None:
        keys = [log.key for log, _, _ in part]
        for type_ in () if self.setup.plain else ("invoke", "ok"):
            self.record(process, type_, "assign", keys, **{"seek-to-beginning?": True})
        chunk = self.setup.final_chunk
        for at in range(0, max(end - start for _, start, end in part), chunk):
            polled = {
                str(log.key): [list(pair) for pair in log.records[start:end][at : at + chunk]]
                for log, start, end in part
            }
            self.record(process, "invoke", "poll", [["poll"]])
            self.record(process, "ok", "poll", [["poll", polled]])
