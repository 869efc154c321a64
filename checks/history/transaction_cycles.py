"""Finds cycles of transactions: G0 (only writes) and G1c (writes and reads).

An operation depends on another one if one of its records directly follows a record of the other in
a partition (write-write), or if it polled a record of the other (write-read). No operation depends
on an operation that only polls, and single sends are in the order of their partition. So every
cycle has an operation with several micro-operations; a history without such operations needs no
search. The definitions are those of Adya, Weak Consistency (1999), as in Jepsen's Elle.
"""

from collections import defaultdict, deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from functools import partial
from itertools import chain
from typing import Final, NamedTuple

from harrow.checks.finding import Finding
from harrow.checks.history.records import Transaction, Value
from harrow.checks.history.sighting import Sighting
from harrow.checks.history.version_order import VersionOrder, VersionOrders
from harrow.checks.history.witness import (
    OperationId,
    end_of_send,
    numbers,
    operation,
    operation_text,
    partition_text,
    record_text,
)
from harrow.checks.link import FROM_LOGS, IN_HISTORY, Link, RecordValue, cause, link
from harrow.checks.promise import WRITES_INTERLEAVE
from harrow.cluster_model.events import PartitionName
from harrow.cluster_model.history import OK

_WW: Final = "ww"
_WR: Final = "wr"
_SHARED: Final = "dependencies"
_EDGES_TRIED: Final = 16
"""How many edges of a component are tried. A component can have many cycles, of which the shortest
one through one of these edges is reported."""


@cause(
    "writes-interleaved",
    needs_nothing_because=FROM_LOGS,
    no_remedy="Kafka isolates what consumers read of transactions, but not what transactions write",
)
def writes_interleaved() -> str:
    """Open transactions wrote to the same partitions, each in its own order."""
    return "Kafka does not keep the writes of open transactions apart"


@link("write-write", event="ww", impersonal=True, needs_nothing_because=IN_HISTORY)
def write_write(
    *,
    earlier: OperationId,
    later: OperationId,
    partition: PartitionName,
    value: RecordValue,
    then: RecordValue,
) -> str:
    """A record of one operation is right before a record of another operation."""
    sent = f"sent {record_text(value)} to {partition_text(partition)}"
    before = f"right before {record_text(then)}, which came from {operation_text(later)}"
    return f"{operation_text(earlier)} {sent} {before}"


@link("write-read", event="wr", impersonal=True, needs_nothing_because=IN_HISTORY)
def write_read(
    *, earlier: OperationId, later: OperationId, partition: PartitionName, value: RecordValue
) -> str:
    """One operation polled a record that another operation sent."""
    sent = f"sent {record_text(value)} to {partition_text(partition)}"
    return f"{operation_text(earlier)} {sent}, which was polled by {operation_text(later)}"


class Dependency(NamedTuple):
    """An operation depends on an earlier one: ``kind`` is ``ww`` or ``wr``.

    The earlier operation sent ``value`` to ``partition``. The later one sent ``then`` directly
    behind it (write-write), or polled the value itself (write-read, ``then`` is None).
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
    """Find cycles of write-write dependencies (G0), one for each component of transactions."""
    graphs = _graphs(orders)
    for cycle in _cycles(graphs.writes, graphs.writes):
        yield _sighting(orders, graphs, cycle)


def read_cycles(orders: VersionOrders) -> Iterator[Sighting]:
    """Find cycles with at least one write-read dependency (G1c), one for each component.

    A cycle of reads alone is preferred. Kafka permits a cycle with writes, because it does not
    isolate the writes of transactions from each other.
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

    Nodes are numbers: the transactions, followed by the runs of single sends between the records of
    transactions. The members of a run depend only on what precedes the run, so the whole run is one
    node.
    """

    def __init__(self, orders: VersionOrders) -> None:
        self.transactions = [
            transaction
            for transaction in orders.history.transactions
            if transaction.outcome == OK or orders.has_committed(*transaction.sends[0])
        ]
        self.writes: Graph = {}
        self.reads: Graph = {}
        self._history = orders.history
        self._nodes = len(self.transactions)
        self._writer_of: dict[tuple[str, Value], int] = {}
        partitions: set[str] = set()
        values = orders.history.records.values
        for node, transaction in enumerate(self.transactions):
            partitions.update(transaction.reads)
            for partition, row in transaction.sends:
                partitions.add(partition)
                self._writer_of[partition, values[row]] = node
        # This order does not depend on transactions that are on no cycle.
        for partition in orders.history.partitions:
            if partition in partitions:
                self._add_writes(orders.of(partition))
        for node, transaction in enumerate(self.transactions):
            self._add_reads(node, transaction)

    def both(self) -> Graph:
        """Return all dependencies; a read replaces a write between the same two operations."""
        union: Graph = {}
        for graph in (self.writes, self.reads):
            for earlier, edges in graph.items():
                union.setdefault(earlier, {}).update(edges)
        return union

    def position(self, node: int, partition: str, value: Value) -> int:
        """Return the position of a node's operation that sent a record."""
        if node < len(self.transactions):
            return self.transactions[node].position
        history = self._history
        return end_of_send(history, history.partitions[partition].rows[value])

    def _add_writes(self, order: VersionOrder) -> None:
        """Connect operations whose records in a partition are adjacent.

        A record whose sender is unknown connects nothing, and neither does an offset with several
        records. If a value is at two offsets, the first one counts.
        """
        partition = order.partition.name
        values_of = self._history.records.values
        # A failed send orders nothing, even if a poll returned its record.
        possible = {values_of[row] for row in chain(order.partition.acked, order.partition.unsure)}
        before: tuple[int, Value] | None = None
        for offset, values in order.values_by_offset():
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
        """Return the node that sent a record; a single send joins the run before it."""
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
    """Yield a short cycle of each component, with at least one edge of *required*."""
    # In this order, components do not change places if operations without cycles are left out.
    for component in sorted(components(graph), key=min):
        best: list[Dependency] | None = None
        edges = [
            edge
            for node in sorted(component)
            for edge in required.get(node, {}).values()
            if edge.later in component
        ]
        for edge in edges[:_EDGES_TRIED]:
            back = _shortest_path(graph, component, edge.later, edge.earlier)
            if back is not None and (best is None or len(back) + 1 < len(best)):
                best = [edge, *back]
        if best is not None:
            yield best


def components(graph: Mapping[int, Iterable[int]]) -> list[frozenset[int]]:
    """Return the strongly connected components with several nodes (Kosaraju, not recursive)."""
    predecessors: defaultdict[int, list[int]] = defaultdict(list)
    for node, successors in graph.items():
        for successor in successors:
            predecessors[successor].append(node)
    found: list[frozenset[int]] = []
    visited: set[int] = set()
    for root in reversed(_postorder(graph)):
        component: set[int] = set()
        work = [root]
        while work:
            node = work.pop()
            if node not in visited:
                visited.add(node)
                component.add(node)
                work += predecessors[node]
        if len(component) > 1:
            found.append(frozenset(component))
    return found


def _postorder(graph: Mapping[int, Iterable[int]]) -> list[int]:
    """Return the nodes in postorder of a depth-first search."""
    order: list[int] = []
    visited: set[int] = set()
    for root in graph:
        work = [(root, iter(graph[root]))] if root not in visited else []
        visited.add(root)
        while work:
            node, successors = work[-1]
            following = next((successor for successor in successors if successor not in visited), None)
            if following is None:
                order.append(node)
                work.pop()
            else:
                visited.add(following)
                work.append((following, iter(graph.get(following, ()))))
    return order


def _shortest_path(graph: Graph, component: frozenset[int], start: int, end: int) -> list[Dependency] | None:
    edges: dict[int, Dependency] = {}
    queue = deque([start])
    while queue and end not in edges:
        for successor, edge in graph.get(queue.popleft(), {}).items():
            if successor in component and successor != start and successor not in edges:
                edges[successor] = edge
                queue.append(successor)
    if end not in edges:
        return None
    path: list[Dependency] = []
    node = end
    while node != start:
        path.append(edges[node])
        node = edges[node].earlier
    return path[::-1]


def _sighting(orders: VersionOrders, graphs: _Graphs, cycle: Sequence[Dependency]) -> Sighting:
    permitted_by = WRITES_INTERLEAVE if any(edge.kind == _WW for edge in cycle) else None
    return Sighting(partial(_finding, orders, graphs, cycle, permitted_by), permitted_by=permitted_by)


def _finding(
    orders: VersionOrders, graphs: _Graphs, cycle: Sequence[Dependency], permitted_by: str | None
) -> Finding:
    history = orders.history
    # A cycle may enter a run of single sends at one record and leave it at another.
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
