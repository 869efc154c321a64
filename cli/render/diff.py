"""Renders the diff of a run for people: logs, findings, and the moments that decided them."""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import Final

from rich.console import Console, RenderableType
from rich.measure import Measurement
from rich.table import Table

from harrow.campaigns.language.spelling import counted, printable, shortlist
from harrow.campaigns.language.units import fields_text
from harrow.campaigns.record.report import in_short_by
from harrow.campaigns.record.run_events import named_fields
from harrow.campaigns.story.run_diff import PartitionDiff, RunDiff, run_title
from harrow.campaigns.story.run_state import RunState
from harrow.campaigns.story.stages import ReplicaEnds
from harrow.checks.causes.story import seconds
from harrow.checks.finding import VIOLATED
from harrow.checks.replay.coordination_state import GroupState
from harrow.checks.replay.partition_state import FOLLOWER, NO_EPOCH, PartitionState, ReplicaState
from harrow.checks.rule import LOST
from harrow.cli.console import is_unicode, show, unbroken
from harrow.cli.render import diff_rows
from harrow.cli.render.layout import DIM, STYLES, columns, hidden_items, indented, terms
from harrow.cli.render.story import chain_table
from harrow.cli.text import Text, lines
from harrow.cluster_model.events import POWER_LOSS, SHUT_DOWN
from harrow.cluster_model.lazy_dataclass import dataclass
from harrow.cluster_model.protocol import NO_LEADER
from harrow.cluster_model.topology import node_text

_NOTES_SHOWN: Final = 5
_MOMENTS_SHOWN: Final = 6
_VALUES_SHOWN: Final = 6
_TRANSACTIONS_SHOWN: Final = 6
_LINE_WIDTH: Final = 8
"""The length of the line that marks a high watermark."""


@dataclass(frozen=True, slots=True)
class Layout:
    """The details for which a table has room.

    Without whole cells, a row shows its record once, and the cells only say what differs.
    """

    has_whole_cells: bool
    has_ids: bool
    has_times: bool
    has_names: bool


_LAYOUTS: Final = (
    Layout(has_whole_cells=True, has_ids=True, has_times=True, has_names=True),
    Layout(has_whole_cells=True, has_ids=True, has_times=False, has_names=True),
    Layout(has_whole_cells=False, has_ids=True, has_times=False, has_names=True),
    Layout(has_whole_cells=False, has_ids=False, has_times=False, has_names=False),
)
"""The layouts from the widest to the narrowest. The first one that fits is used."""


def show_run_diff(console: Console, run: RunDiff, argument: str, *, only_different: bool) -> None:
    show(console, *_heading(run))
    for diff in run.partitions:
        if diff.stages:
            show(console, Text(), *_stages(diff, run))
            continue
        show(console, Text(), *_partition(console, diff, run, only_different=only_different))
        show(console, *_moments(diff, argument, run.state.number))
    if not any(diff.stages for diff in run.partitions):
        show(console, *_coordination(run.state))
    if run.hidden:
        count, names = counted(len(run.hidden), "partition"), shortlist(run.hidden, _VALUES_SHOWN)
        show(console, Text(), Text(f"{count} without a finding: {names}; --partition shows one", DIM))


def _heading(run: RunDiff) -> Iterator[RenderableType]:
    recorded, state = run.recorded, run.state
    verdict = recorded.verdict
    yield Text.assemble(
        (run_title(recorded, run.run), "bold"), ": ", (verdict, STYLES.get(verdict, STYLES[VIOLATED]))
    )
    if anomalies := in_short_by(recorded.rules):
        yield indented(anomalies, 2)
    event_us = state.at_us if run.event is None or run.at.number is None else run.event[0]
    at_us = event_us if run.at.at_us is None else run.at.at_us
    where = f"at the end, {seconds(at_us)}" if run.at.is_end else f"at {seconds(at_us)}"
    line = Text.assemble((where, "bold"), f", after event {state.number} of {run.run.last_number}")
    if not run.at.is_end and run.event is not None:
        fields = tuple((name, value) for name, value in named_fields(run.event).items())
        line.append(f": {run.event[1]} {fields_text(fields)}".rstrip())
    yield indented(line, 2)
    if disturbances := "; ".join(_disturbances(state)):
        yield indented(f"with {disturbances}", 2)


_DOWN: Final = {POWER_LOSS: "down without power", SHUT_DOWN: "stopped"}


def _disturbances(state: RunState) -> Iterator[str]:
    """Yield texts for the brokers that are not up, and for the other faults in force."""
    for node, process in state.brokers.items():
        if not process.is_live:
            yield f"{node_text(node)} {_DOWN.get(process.stopped_by, 'down')}"
        elif process.is_paused:
            yield f"{node_text(node)} paused"
        elif process.is_stopping:
            yield f"{node_text(node)} stopping"
    for fault in state.faults:
        if fault.fault not in {"broker_crash", "broker_pause", "broker_stop"}:
            details = fields_text(fault.details)
            yield f"{fault.fault} {details} since {seconds(fault.at_us)}".replace("  ", " ")


def _partition(
    console: Console, diff: PartitionDiff, run: RunDiff, *, only_different: bool
) -> Iterator[RenderableType]:
    """Yield the findings of a partition, then its logs."""
    partition, state = diff.partition, run.state
    yield _state(partition, run.control_plane)
    yield from _notes(diff)
    signs = diff_rows.CellSigns(is_unicode=is_unicode(console))
    unfolded_offsets = {place for note in diff.notes[:_NOTES_SHOWN] for place in note.places}
    marks = {replica.known_high_watermark for replica in partition.replicas.values()}
    rows = list(
        diff_rows.fold_rows(
            diff.rows, only_different=only_different, unfolded_offsets=unfolded_offsets, fold_limits=marks
        )
    )
    layout, table = _widest_fitting(console, partition, rows, state, signs)
    yield indented(table, 2)
    yield indented("; ".join([*signs.legend(), *_notation_legend(diff, layout)]), 2, DIM)
    yield from _transactions(partition)


def _state(partition: PartitionState, control_plane: str) -> Text:
    """Return the state of a partition in the control plane."""
    leader = "no leader" if partition.leader == NO_LEADER else f"leader {partition.leader}"
    isr = ", ".join(map(str, partition.isr)) or "-"
    epoch = "" if partition.leader_epoch == NO_EPOCH else f", epoch {partition.leader_epoch}"
    return Text.assemble(
        (partition.name, "bold"), f"  {leader}{epoch}, ISR {isr}", (f"  ({control_plane})", DIM)
    )


def _stages(diff: PartitionDiff, run: RunDiff) -> Iterator[RenderableType]:
    """Yield a table for each moment at which a LEO, remote LEO or HW moved, with these marked."""
    yield _state(diff.partition, run.control_plane)
    before: Mapping[int, ReplicaEnds] = {}
    for stage in diff.stages:
        yield Text()
        when = Text.assemble((seconds(stage.at_us), "bold"), (f"  --at {stage.number}", DIM))
        yield indented(when, 2)
        for text in stage.texts:
            yield indented(text, 4)
        heads = ((f"broker {broker}", _ends_role(ends)) for broker, ends in stage.ends.items())
        table = columns("", *map(lines, heads))
        for label, field in (("LEO", "leo"), ("remote LEO", "remote_leo"), ("HW", "hw")):
            cells = [
                _end_text(getattr(before.get(broker), field, None), getattr(ends, field), is_first=not before)
                for broker, ends in stage.ends.items()
            ]
            table.add_row(Text(label, DIM), *cells)
        yield indented(table, 4)
        before = stage.ends


def _ends_role(ends: ReplicaEnds) -> str:
    return f"{ends.role} e{ends.leader_epoch}" if ends.role else "not open" if ends.hw is None else "no role"


def _end_text(before: int | None, now: int | None, *, is_first: bool) -> Text:
    text = "-" if now is None else str(now)
    return Text(text) if is_first or before == now else Text(f"{text} <", "bold")


def _notation_legend(diff: PartitionDiff, layout: Layout) -> list[str]:
    replicas = diff.partition.replicas.values()
    notes = (
        []
        if any(_has_open_transaction(replica) for replica in replicas)
        else ["LSO = HW: no open transaction"]
    )
    closed = [replica for replica in replicas if not replica.is_open]
    if closed:
        notes.insert(0, f"({closed[0].checkpointed_high_watermark}) HW checkpoint of a log that is not open")
    entries = (fate.entry for row in diff.rows for fate in row.fates)
    with_id = next((entry for entry in entries if entry.producer_id >= 0), None)
    if not layout.has_whole_cells:
        notes.insert(0, "= the same record")
        if any(replica.role == FOLLOWER for replica in replicas):
            notes.append("replicas without a role are followers")
    if not layout.has_names:
        readers = {name for row in diff.rows for fate in row.fates for name in fate.readers}
        if readers:
            notes.append(f"read: the number of readers among {', '.join(map(printable, sorted(readers)))}")
    if with_id is not None and layout.has_ids:
        notes.insert(0, f"#{with_id.producer_id}:{with_id.sequence} producer id:sequence")
    return ["e0 leader epoch 0", *notes] if diff.rows else notes


def _widest_fitting(
    console: Console,
    partition: PartitionState,
    rows: Sequence[diff_rows.FoldedRows],
    state: RunState,
    signs: diff_rows.CellSigns,
) -> tuple[Layout, Table]:
    """Return the widest layout that fits, and its table. The narrowest layout wraps its cells."""
    endless = console.options.update(width=100_000)
    line = "─" if is_unicode(console) else "-"
    for layout in _LAYOUTS[:-1]:
        table = _table(partition, rows, state, signs, layout, line=line, fold=False)
        if Measurement.get(console, endless, table).maximum + 2 <= console.width:
            return layout, table
    return _LAYOUTS[-1], _table(partition, rows, state, signs, _LAYOUTS[-1], line=line, fold=True)


def _readers_min(rows: Sequence[diff_rows.FoldedRows]) -> int:
    """Return the least width of the column of readers: a wrapped name could not be copied."""
    names = (name for row in rows for fate in row.first.fates for name in fate.readers)
    return max((len(printable(name)) + 1 for name in names), default=len("read by"))


def _table(
    partition: PartitionState,
    rows: Sequence[diff_rows.FoldedRows],
    state: RunState,
    signs: diff_rows.CellSigns,
    layout: Layout,
    *,
    line: str,
    fold: bool,
) -> Table:
    table = columns(header_style="bold")
    table.show_header = True
    table.add_column("offset", justify="right", no_wrap=True)
    if not layout.has_whole_cells:
        table.add_column("record", no_wrap=not fold, overflow="fold")
    replicas = dict(sorted(partition.replicas.items()))
    for broker, replica in replicas.items():
        role = role_text(replica, state)
        head = (f"  broker {broker}", f"  {role}") if layout.has_whole_cells else short_head(broker, role)
        table.add_column(lines(head), no_wrap=not fold, overflow="fold")
    table.add_column("acked", no_wrap=not fold, overflow="fold")
    table.add_column(
        "read by" if layout.has_names else "read",
        overflow="fold",
        min_width=_readers_min(rows) if layout.has_names else 4,
    )
    marks = sorted({replica.known_high_watermark for replica in replicas.values()} if rows else ())
    for row in rows:
        while marks and marks[0] <= row.first.offset:
            table.add_row(*_high_watermarks(marks.pop(0), replicas.values(), layout, line))
        table.add_row(*_row(row, replicas, signs, layout), style=DIM if row.first.is_past else None)
    for mark in marks:
        table.add_row(*_high_watermarks(mark, replicas.values(), layout, line))
    for label, cells in _end_rows(partition, replicas.values()):
        padded = [f"  {cell}" if layout.has_whole_cells else cell for cell in cells]
        table.add_row(Text(label, DIM), *([] if layout.has_whole_cells else [""]), *padded)
    return table


def _high_watermarks(
    mark: int, replicas: Iterable[ReplicaState], layout: Layout, line: str
) -> Iterator[RenderableType]:
    """Yield the cells of a row for a high watermark: a line in the column of each such replica."""
    yield Text("HW", DIM)
    if not layout.has_whole_cells:
        yield ""
    for replica in replicas:
        drawn = line * (_LINE_WIDTH if layout.has_whole_cells else 2)
        text = drawn if replica.is_open else f"({drawn})"
        yield (
            Text(f"  {text}" if layout.has_whole_cells else text, DIM)
            if replica.known_high_watermark == mark
            else Text()
        )


def _row(
    row: diff_rows.FoldedRows, replicas: Iterable[int], signs: diff_rows.CellSigns, layout: Layout
) -> Iterator[RenderableType]:
    lost = any(fate.is_lost for fate in row.first.fates)
    yield Text(row.offsets(), "bold red" if lost else "")
    if not layout.has_whole_cells:
        yield diff_rows.row_record(row, with_ids=layout.has_ids)
    of_replica = diff_rows.cell_text if layout.has_whole_cells else diff_rows.short_cell
    for broker in replicas:
        yield of_replica(row, broker, signs, with_ids=layout.has_ids)
    yield diff_rows.acked_text(row, with_times=layout.has_times)
    yield diff_rows.readers_text(row, with_names=layout.has_names)


def role_text(replica: ReplicaState, state: RunState) -> str:
    """Return a replica's state: it is down or starting, or it has a role and a leader epoch."""
    broker = state.brokers.get(replica.broker)
    if broker is None or not broker.is_live:
        return "down"
    paused = "paused " if broker.is_paused else ""
    if not replica.is_open:
        return f"{paused}starting"
    return f"{paused}{replica.role} e{replica.leader_epoch}" if replica.role else f"{paused}no role"


def short_head(broker: int, role: str) -> tuple[str, str]:
    """Return a heading of two lines: the broker and its role, but not "follower"; and the epoch."""
    if role.startswith("paused "):
        return f"{broker} paused", role.removeprefix("paused ")
    name, _, epoch = role.rpartition(" e")
    if not name:
        return f"{broker} {role}", ""
    return (f"{broker}" if name == FOLLOWER else f"{broker} {name}"), f"e{epoch}"


def _end_rows(
    partition: PartitionState, replicas: Collection[ReplicaState]
) -> Iterator[tuple[str, list[str]]]:
    yield "LEO", [str(replica.leo) for replica in replicas]
    remote = [partition.remote_leo(replica.broker) for replica in replicas]
    if any(leo is not None for leo in remote):
        yield "remote LEO", ["" if leo is None else str(leo) for leo in remote]
    yield "HW, LSO", [_readable_ends(replica) for replica in replicas]
    yield "flushed", [str(replica.flushed) for replica in replicas]
    yield "in ISR", ["yes" if replica.broker in partition.isr else "no" for replica in replicas]


def high_watermark_text(replica: ReplicaState) -> str:
    """Return the high watermark, or, for a log that is not open, its checkpoint in parentheses."""
    return str(replica.known_high_watermark) if replica.is_open else f"({replica.known_high_watermark})"


def _readable_ends(replica: ReplicaState) -> str:
    """Return the high watermark, and also the last stable offset (LSO) if it is lower."""
    text = high_watermark_text(replica)
    return f"{text}, {replica.lso}" if _has_open_transaction(replica) else text


def _has_open_transaction(replica: ReplicaState) -> bool:
    return replica.is_open and replica.lso < replica.high_watermark


def _transactions(partition: PartitionState) -> Iterator[RenderableType]:
    """Yield the latest transactions in the leader's log, each with its offsets and outcome."""
    replica = partition.replicas.get(partition.leader)
    transactions = [] if replica is None else replica.transactions
    if not transactions:
        return
    yield Text()
    yield indented(Text("transactions in the leader's log", DIM), 2)
    table = terms(justify="right", columns_before=2)
    for each in transactions[-_TRANSACTIONS_SHOWN:]:
        end = "" if each.marker_offset is None else str(each.marker_offset)
        outcome = "open" if each.marker_offset is None else "committed" if each.is_committed else "aborted"
        producer = Text(f"producer id {each.producer_id}, epoch {each.producer_epoch}")
        table.add_row(f"{each.first_offset}..{end}", outcome, producer)
    yield indented(table, 2)
    if len(transactions) > _TRANSACTIONS_SHOWN:
        count = counted(len(transactions) - _TRANSACTIONS_SHOWN, "earlier one")
        yield indented(f"and {count}; --format json shows all", 4, DIM)


def _coordination(state: RunState) -> Iterator[RenderableType]:
    """Yield the transactional ids and groups, with their coordinators and members."""
    coordination = state.coordination
    if coordination.transactional_ids:
        yield Text()
        yield Text("transactional ids", "bold")
        table = terms()
        for name, each in coordination.transactional_ids.items():
            partitions = f" in {', '.join(map(printable, each.partitions))}" if each.partitions else ""
            producer = f"producer id {each.producer_id}, epoch {each.producer_epoch}"
            coordinator = f"coordinated by broker {each.coordinator}"
            since = f"{each.state}{partitions} since {seconds(each.at_us)}"
            table.add_row(name, Text(f"{since}, {producer}, {coordinator}"))
        yield indented(table, 2)
    for name, group in coordination.groups.items():
        yield Text()
        yield Text.assemble(("group ", "bold"), (name, "bold"), f"  {_group_text(group)}")
        table = terms()
        for member, names in group.assignments.items():
            table.add_row(member, Text(f"is assigned {', '.join(names) or 'nothing'}"))
        for client, reading in group.reading.items():
            table.add_row(client, Text(f"reads {', '.join(reading) or 'nothing'}"))
        if group.committed:
            places = [f"{partition} {offset}" for partition, offset in sorted(group.committed.items())]
            table.add_row("committed", Text(", ".join(places)))
        yield indented(table, 2)


def _group_text(group: GroupState) -> str:
    if not group.state:
        return "without members"
    return f"{group.state} in generation {group.generation}, coordinated by broker {group.coordinator}"


def _notes(diff: PartitionDiff) -> Iterator[RenderableType]:
    """Yield the findings up to this moment, with their chains, and the later ones."""
    for number, note in enumerate(diff.notes[:_NOTES_SHOWN]):
        if number:
            yield Text()
        style = "bold red" if note.kind == LOST else "bold yellow"
        yield indented(Text.assemble((f"{note.kind.upper()}  ", style), note.head()), 2)
        yield indented(chain_table(note.chain), 8)
    yield from hidden_items(len(diff.notes), _NOTES_SHOWN, "finding")
    for note in diff.to_come[:_NOTES_SHOWN]:
        line = f"{note.kind} {note.subject()} ({seconds(note.at_us)})"
        yield indented(Text.assemble(("later   ", DIM), line), 2)
    if len(diff.to_come) > _NOTES_SHOWN:
        yield indented(f"and {len(diff.to_come) - _NOTES_SHOWN} more later", 2, DIM)
    if diff.notes or diff.to_come:
        yield Text()


def _moments(diff: PartitionDiff, argument: str, number: int) -> Iterator[RenderableType]:
    moments = [moment for moment in diff.moments() if moment.number != number]
    if not moments:
        return
    yield Text()
    yield unbroken(
        Text.assemble(("  The moments that decided it: ", "bold"), f"harrow diff {argument} --at ...")
    )
    rows = (
        (f"--at {moment.number}", seconds(moment.at_us), moment.text) for moment in moments[:_MOMENTS_SHOWN]
    )
    yield indented(terms(rows, justify="right", columns_before=2), 4)
    yield from hidden_items(len(moments), _MOMENTS_SHOWN, left=4)
