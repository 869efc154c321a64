"""Cycles of transactions: G0 (of writes alone), G1c (of writes and reads).

An operation depends on another one if it wrote what stands right behind the other's write
(write-write), or if it polled what the other wrote (write-read). One that only polls never
comes before another, and single sends alone are in the order of their partition; so there is
no cycle without an operation of several micro-operations, and nothing to do where there is
none. After Adya, Weak Consistency (1999), as in Jepsen's Elle.
"""

from collections import defaultdict, deque
from collections.abc import Iterator, Sequence
from collections.abc import Set as AbstractSet
from functools import partial
from itertools import chain
from typing import Final, NamedTuple

from harrow.checks.finding import Finding
from harrow.checks.history.records import Transaction, Value
from harrow.checks.history.sighting import Sighting
from harrow.checks.history.version_order import VersionOrders
from harrow.checks.history.witness import OperationId, ended, numbers, operation, operation_text, shown
from harrow.checks.link import FROM_LOGS, IN_HISTORY, Link, RecordValue, cause, link
from harrow.checks.promise import WRITES_INTERLEAVE
from harrow.cluster_model.events import PartitionName
from harrow.cluster_model.history import OK

_WW: Final = "ww"
_WR: Final = "wr"
_SHARED: Final = "dependencies"
_EDGES_TRIED: Final = 16
"""A knot can have many cycles; one of the shortest through these is reported."""


@cause(
    "writes-interleaved",
    free_because=FROM_LOGS,
    no_remedy="Kafka isolates what consumers read of transactions, and not what transactions write",
)
def writes_interleaved() -> str:
    """Transactions that were open at the same time wrote to the same partitions, each in its own order."""
    return "Kafka does not keep the writes of open transactions apart"


@link("write-write", event="ww", impersonal=True, free_because=IN_HISTORY)
def write_write(
    *,
    earlier: OperationId,
    later: OperationId,
    partition: PartitionName,
    value: RecordValue,
    then: RecordValue,
) -> str:
    """What one operation sent stands right before what another one sent."""
    sent = f"sent {shown(value)} to {shown(partition)}"
    before = f"right before {shown(then)}, which came from {operation_text(later)}"
    return f"{operation_text(earlier)} {sent} {before}"


@link("write-read", event="wr", impersonal=True, free_because=IN_HISTORY)
def write_read(
    *, earlier: OperationId, later: OperationId, partition: PartitionName, value: RecordValue
) -> str:
    """What one operation sent another one polled."""
    sent = f"sent {shown(value)} to {shown(partition)}"
    return f"{operation_text(earlier)} {sent}, which was polled by {operation_text(later)}"


class Dependency(NamedTuple):
    """One operation comes after another: ``kind`` is ``ww`` or ``wr``.

    ``value`` is what the earlier one sent to ``partition``; ``then`` is what the later one sent
    right behind it (write-write), None if it polled the value itself (write-read).
    """

    kind: str
    earlier: int
    later: int
    partition: str
    value: Value
    then: Value | None


Graph = dict[int, dict[int, Dependency]]
"""Dependencies by the earlier and the later node."""


def write_cycles(orders: VersionOrders) -> Iterator[Sighting]:
    """Find cycles of write-write dependencies (G0), one for each knot of transactions."""
    graphs = _graphs(orders)
    for cycle in _cycles(graphs.writes, graphs.writes):
        yield _sighting(orders, graphs, cycle)


def read_cycles(orders: VersionOrders) -> Iterator[Sighting]:
    """Find cycles with at least one write-read dependency (G1c), one for each knot of transactions.

    Where reads alone make a cycle that one is reported: with writes in it Kafka permits it,
    for it does not isolate the writes of transactions from each other.
    """
    graphs = _graphs(orders)
    if not graphs.reads:
        return
    reported: set[int] = set()
    for cycle in _cycles(graphs.reads, graphs.reads):
        reported.update(edge.earlier for edge in cycle)
        yield _sighting(orders, graphs, cycle)
    for cycle in _cycles(graphs.both(), graphs.reads):
        if not any(edge.earlier in reported for edge in cycle):
            yield _sighting(orders, graphs, cycle)


def _graphs(orders: VersionOrders) -> "_Graphs":
    if _SHARED not in orders.shared:
        orders.shared[_SHARED] = _Graphs(orders)
    graphs: _Graphs = orders.shared[_SHARED]
    return graphs


class _Graphs:
    """The dependencies of the committed transactions of a history.

    Nodes are numbers: the transactions, and behind them the runs of single sends that stand
    between the records of transactions. The members of a run depend on nothing else than what
    stands before them, so that the whole run is one node.
    """

    def __init__(self, orders: VersionOrders) -> None:
        self.transactions = [
            transaction
            for transaction in orders.history.transactions
            if transaction.outcome == OK or orders.has_committed(*transaction.sends[0])
        ]
        self.writes: Graph = {}
        self.reads: Graph = {}
        self._orders = orders
        self._nodes = len(self.transactions)
        self._writer_of: dict[tuple[str, Value], int] = {}
        concerned: dict[str, None] = {}
        values = orders.history.records.values
        for node, transaction in enumerate(self.transactions):
            concerned.update(dict.fromkeys(transaction.reads))
            for partition, row in transaction.sends:
                concerned[partition] = None
                self._writer_of[partition, values[row]] = node
        for partition in concerned:
            self._add_writes(partition)
        for node, transaction in enumerate(self.transactions):
            self._add_reads(node, transaction)

    def both(self) -> Graph:
        """Return all dependencies together; between two operations a read counts first."""
        together: Graph = {}
        for graph in (self.writes, self.reads):
            for earlier, edges in graph.items():
                together.setdefault(earlier, {}).update(edges)
        return together

    def position(self, node: int, partition: str, value: Value) -> int:
        """Return the position of the operation that a node stands for, as the sender of a record."""
        if node < len(self.transactions):
            return self.transactions[node].position
        history = self._orders.history
        return ended(history, history.partitions[partition].rows[value])

    def _add_writes(self, partition: str) -> None:
        """Connect the operations that wrote to a partition one right behind the other.

        A record whose sender is not known, and an offset at which several stand, say nothing
        about what came before and after them; of a value that stands twice the first counts.
        """
        if partition not in self._orders.history.partitions:
            return
        order = self._orders.of(partition)
        values_of = self._orders.history.records.values
        # A send that failed orders nothing, even where a poll returned its record.
        possible = {values_of[row] for row in chain(order.partition.acked, order.partition.unsure)}
        before: tuple[int, Value] | None = None
        for offset, values in order.standing():
            value = values[0]
            node = self._node(partition, value, before, possible)
            if len(values) > 1 or node is None or order.first_offset(value) != offset:
                before = None
                continue
            if before is not None and before[0] != node:
                _add(self.writes, Dependency(_WW, before[0], node, partition, before[1], value))
            before = (node, value)

    def _node(
        self, partition: str, value: Value, before: tuple[int, Value] | None, possible: AbstractSet[Value]
    ) -> int | None:
        """Return who sent a record; a single send joins the run of those before it."""
        node = self._writer_of.get((partition, value))
        if node is None and value in possible:
            if before is not None and before[0] >= len(self.transactions):
                node = before[0]
            else:
                node = self._nodes
                self._nodes += 1
            self._writer_of[partition, value] = node
        return node

    def _add_reads(self, later: int, transaction: Transaction) -> None:
        for partition, pairs in transaction.reads.items():
            for _, value in pairs:
                writer = self._writer_of.get((partition, value))
                if writer is not None and writer != later:
                    _add(self.reads, Dependency(_WR, writer, later, partition, value, None))


def _add(graph: Graph, edge: Dependency) -> None:
    graph.setdefault(edge.earlier, {}).setdefault(edge.later, edge)


def _cycles(graph: Graph, required: Graph) -> Iterator[list[Dependency]]:
    """Yield a short cycle with an edge of the *required* graph for each knot that has one."""
    for knot in _knots(graph):
        best: list[Dependency] | None = None
        edges = [
            edge for node in sorted(knot) for edge in required.get(node, {}).values() if edge.later in knot
        ]
        for edge in edges[:_EDGES_TRIED]:
            back = _shortest_path(graph, knot, edge.later, edge.earlier)
            if back is not None and (best is None or len(back) + 1 < len(best)):
                best = [edge, *back]
        if best is not None:
            yield best


def _knots(graph: Graph) -> Iterator[frozenset[int]]:
    """Return the strongly connected components of more than one transaction (Kosaraju, without recursion)."""
    before: defaultdict[int, list[int]] = defaultdict(list)
    for node, successors in graph.items():
        for successor in successors:
            before[successor].append(node)
    knots: list[frozenset[int]] = []
    seen: set[int] = set()
    for root in reversed(_postorder(graph)):
        knot: set[int] = set()
        work = [root]
        while work:
            node = work.pop()
            if node not in seen:
                seen.add(node)
                knot.add(node)
                work += before[node]
        if len(knot) > 1:
            knots.append(frozenset(knot))
    return reversed(knots)


def _postorder(graph: Graph) -> list[int]:
    """Return the nodes, each after all that can be reached from it, but for what leads to it."""
    order: list[int] = []
    seen: set[int] = set()
    for root in graph:
        work = [(root, iter(graph[root]))] if root not in seen else []
        seen.add(root)
        while work:
            node, successors = work[-1]
            following = next((successor for successor in successors if successor not in seen), None)
            if following is None:
                order.append(node)
                work.pop()
            else:
                seen.add(following)
                work.append((following, iter(graph.get(following, ()))))
    return order


def _shortest_path(graph: Graph, knot: frozenset[int], start: int, end: int) -> list[Dependency] | None:
    """Return the dependencies from one transaction to another within a component."""
    came: dict[int, Dependency] = {}
    queue = deque([start])
    while queue and end not in came:
        for successor, edge in graph.get(queue.popleft(), {}).items():
            if successor in knot and successor != start and successor not in came:
                came[successor] = edge
                queue.append(successor)
    if end not in came:
        return None
    path: list[Dependency] = []
    place = end
    while place != start:
        path.append(came[place])
        place = came[place].earlier
    return path[::-1]


def _sighting(orders: VersionOrders, graphs: _Graphs, cycle: Sequence[Dependency]) -> Sighting:
    permitted_by = WRITES_INTERLEAVE if any(edge.kind == _WW for edge in cycle) else None
    return Sighting(partial(_finding, orders, graphs, cycle, permitted_by), permitted_by=permitted_by)


def _finding(
    orders: VersionOrders, graphs: _Graphs, cycle: Sequence[Dependency], permitted_by: str | None
) -> Finding:
    history = orders.history
    # Where a run of single sends is entered by one record and left by another, both are named.
    positions = [graphs.position(edge.earlier, edge.partition, edge.value) for edge in cycle]
    first = cycle[0]
    return Finding(
        partition=first.partition,
        value=first.value,
        chain=(
            *(_link(orders, graphs, edge) for edge in cycle),
            *([writes_interleaved.conclude()] if permitted_by else ()),
        ),
        permitted_by=permitted_by,
        details=(
            ("operations", numbers(history, *dict.fromkeys(positions))),
            ("cycle", [[edge.kind, edge.partition, edge.value, edge.then] for edge in cycle]),
        ),
    )


def _link(orders: VersionOrders, graphs: _Graphs, edge: Dependency) -> Link:
    history = orders.history
    position = graphs.position(edge.earlier, edge.partition, edge.value)
    at_us, earlier = history.times_us[position], operation(history, position)
    if edge.then is None:
        later = operation(history, graphs.position(edge.later, edge.partition, edge.value))
        return write_read(
            at_us, None, earlier=earlier, later=later, partition=edge.partition, value=edge.value
        )
    later = operation(history, graphs.position(edge.later, edge.partition, edge.then))
    return write_write(
        at_us,
        None,
        earlier=earlier,
        later=later,
        partition=edge.partition,
        value=edge.value,
        then=edge.then,
    )
