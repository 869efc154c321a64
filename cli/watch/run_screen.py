"""The live view of a run: renders one moment as lines for a terminal, without reading a clock."""

from collections.abc import Iterator, Sequence
from typing import Final

from rich.cells import cell_len, set_cell_size
from rich.console import Group

from harrow.campaigns.language.spelling import counted, printable
from harrow.campaigns.record.report import FindingGroup
from harrow.campaigns.story.playback import DisplayedEvent, DisplayedFault, Scene
from harrow.campaigns.story.replica_diff import DIFFERENT, MISSING, REMOVED, LogCell, cells_at_end
from harrow.checks.causes.story import seconds
from harrow.checks.replay import partition_state
from harrow.checks.replay.cluster_state import BrokerState
from harrow.cli.render.diff import high_watermark_text, role_text
from harrow.cli.render.diff_rows import CellSigns
from harrow.cli.render.layout import DIM, EVENT_STYLES
from harrow.cli.text import Text
from harrow.cli.watch.canvas import BAD, GOOD, HEADING, PAUSED, WARNED, Canvas, bar, fitted, shortened
from harrow.cluster_model.events import NO_CONTROLLER, POWER_LOSS, SHUT_DOWN
from harrow.cluster_model.protocol import NO_LEADER
from harrow.cluster_model.topology import is_internal, is_server, process_name

_HEIGHT_MAX: Final = 50
_LOG_WIDTH_MAX: Final = 60
_LOG_WIDTH_MIN: Final = 8
"""The width of a replica's log: one sign for each record at its end."""
_ROLE_WIDTH_MIN: Final = 14
_ENDS_WIDTH_MIN: Final = 25
"""The widths of the columns for a replica's role, and for the ends of its log (LEO, HW)."""
_EVENTS_MIN: Final = 3
_EVENTS_MAX: Final = 8
_FAULTS_SHOWN: Final = 3
_ANOMALIES_SHOWN: Final = 3
_NARROW: Final = 70
"""Below this width of the terminal, faults are shown without the time at which they struck."""
_BROKER_LINES_MAX: Final = 3
_LINES_RESERVED_ABOVE: Final = 3 + _BROKER_LINES_MAX
"""Lines reserved above the partitions: a heading of two lines, the brokers, and the records."""
_LINES_RESERVED_BELOW: Final = 6
"""Lines reserved below the partitions, for faults and findings."""
_LANE_WIDTH: Final = 11
_LABEL_WIDTH: Final = len("brokers ")


def frame(scene: Scene, canvas: Canvas, *, speed: str = "") -> Group:
    """Render a moment of a run. No line wraps.

    All moments of a run have the same number of lines, so that nothing jumps. Items that do not fit
    are only counted.
    """
    height = max(1, min(canvas.height - 1, _HEIGHT_MAX))
    servers = list(_servers(scene, canvas))
    reserved = _LINES_RESERVED_ABOVE + len(servers) + _LINES_RESERVED_BELOW
    above = [*_heading(scene, canvas, speed), *_brokers(scene, canvas), *servers, _records(scene)]
    none = "none so far" if scene.live is None else "judged at the end"
    below = [*_faults(scene, canvas), *_anomalies(scene.anomalies, canvas, none)]
    # Faults and findings come and go, and unhealthy brokers take more words. So each of these has a
    # reserved number of lines. If they need more, the list of events gets shorter, so that the
    # partitions stay in place during a run.
    partitions = _partitions(scene, canvas, height - reserved - _EVENTS_MIN - 1)
    lines = [*above, *partitions, *below]
    room = min(height - len(lines) - 1, _EVENTS_MAX + reserved - len(above) - len(below))
    if room > 0:
        lines += [Text.assemble(("what happened", HEADING)), *_events(scene.events, room)]
    return Group(*(fitted(line, canvas) for line in lines[:height]))


def _heading(scene: Scene, canvas: Canvas, speed: str) -> Iterator[Text]:
    end = "" if scene.end_us is None else f" of {seconds(scene.end_us)}"
    clock = f"{seconds(scene.at_us)}{end}{speed}"
    room = max(10, canvas.width - len(clock) - 2)
    name = set_cell_size(shortened(printable(scene.title), room, canvas), room)
    yield Text.assemble((name, HEADING), "  ", clock)
    if scene.end_us is None:
        yield _clients(scene.live.clients if scene.live is not None else (), canvas)
    else:
        yield bar(scene.at_us / scene.end_us if scene.end_us > 0 else 1.0, canvas)


def _clients(names: Sequence[str], canvas: Canvas) -> Text:
    label = f"{'clients':<{_LABEL_WIDTH}} "
    names_text = ", ".join(map(printable, names)) or "none"
    return Text.assemble((label, HEADING), shortened(names_text, canvas.width - len(label), canvas))


# Brokers and clients


def _brokers(scene: Scene, canvas: Canvas) -> Iterator[Text]:
    """Yield the brokers on a few lines. If there are too many, healthy ones are left out first."""
    state = scene.state
    brokers = [broker for _, broker in sorted(state.brokers.items()) if not is_server(broker.broker)]
    words = [_broker(broker, scene) for broker in brokers]
    no_controller = [Text("no controller", WARNED)] if state.controller == NO_CONTROLLER else []
    lines = _wrapped("brokers", [*words, *no_controller], canvas)
    if len(lines) > _BROKER_LINES_MAX:
        by_urgency = sorted(zip(brokers, words, strict=True), key=lambda pair: _is_ordinary(pair[0], scene))
        shown = len(by_urgency)
        while shown and len(lines) > _BROKER_LINES_MAX:
            shown -= 1
            up = sum(broker.is_live and not broker.is_paused for broker, _ in by_urgency[shown:])
            rest = Text(f"and {len(by_urgency) - shown} more, {up} up", DIM)
            shown_words = (word for _, word in by_urgency[:shown])
            lines = _wrapped("brokers", [*no_controller, *shown_words, rest], canvas)
    yield from lines
    yield from [Text()] * (_broker_lines_reserved(brokers, canvas) - len(lines))


def _broker_lines_reserved(brokers: Sequence[BrokerState], canvas: Canvas) -> int:
    """Return how many lines the brokers take when all are down.

    So many are always reserved, so that the lines below do not move when brokers go down.
    """
    words = [Text(f"{broker.broker} DOWN, no power") for broker in brokers]
    return min(_BROKER_LINES_MAX, len(_wrapped("brokers", [*words, Text("no controller")], canvas)))


def _servers(scene: Scene, canvas: Canvas) -> Iterator[Text]:
    """Yield the dedicated controllers or the ZooKeeper servers, after a label with their kind."""
    by_kind: dict[str, list[Text]] = {}
    for node, server in sorted(scene.state.brokers.items()):
        if is_server(node):
            kind, _, number = process_name(node).rpartition("-")
            by_kind.setdefault(kind, []).append(_server(server, number, scene))
    for kind, words in by_kind.items():
        yield from _wrapped(kind, words, canvas)


def _wrapped(name: str, words: Sequence[Text], canvas: Canvas) -> list[Text]:
    label = f"{name:<{_LABEL_WIDTH}} "
    lines = [Text.assemble((label, HEADING))]
    for word in words:
        if lines[-1].cell_len + word.cell_len > canvas.width and lines[-1].cell_len > len(label):
            lines.append(Text(" " * len(label)))
        lines[-1].append_text(word).append("   ")
    for line in lines:
        line.rstrip()
    return lines


_DOWN_TEXTS: Final = {POWER_LOSS: "DOWN, no power", SHUT_DOWN: "STOPPED"}


def _is_ordinary(broker: BrokerState, scene: Scene) -> bool:
    is_up = broker.is_live and not (broker.is_paused or broker.is_stopping) and broker.is_registered
    return is_up and broker.broker != scene.state.controller and not broker.is_active_controller


def _broker(broker: BrokerState, scene: Scene) -> Text:
    text = _process_state(broker, str(broker.broker))
    if broker.is_live and not broker.is_registered:
        text.append(" no session", WARNED)
    return text.append(_controller_text(broker, scene, "controller"))


def _server(server: BrokerState, number: str, scene: Scene) -> Text:
    controller = _controller_text(server, scene, "leads") if server.is_live else Text()
    return _process_state(server, number).append(controller)


def _process_state(process: BrokerState, name: str) -> Text:
    text = Text(f"{name} ")
    if not process.is_live:
        return text.append(_DOWN_TEXTS.get(process.stopped_by, "DOWN"), BAD)
    if process.is_paused:
        return text.append("PAUSED", PAUSED)
    if process.is_stopping:
        return text.append("STOPPING", PAUSED)
    return text.append("up", GOOD)


def _controller_text(process: BrokerState, scene: Scene, word: str) -> Text:
    """Return a text for a process that is the controller, or that still believes that it is."""
    if scene.state.controller == process.broker:
        return Text(f" {word} e{scene.state.controller_epoch}", "cyan")
    return Text(" DEPOSED controller", WARNED) if process.is_active_controller else Text()


def _records(scene: Scene) -> Text:
    sends = scene.sends
    line = Text.assemble(
        ("records  ", HEADING), f"{sends.total()} sent, {sends[partition_state.ACKED]} acked"
    )
    for status, word, style in (
        (partition_state.SENDING, "under way", ""),
        (partition_state.UNKNOWN, "unknown", WARNED),
        (partition_state.FAILED, "failed", WARNED),
    ):
        if sends[status]:
            line.append(f", {sends[status]} {word}", style)
    line.append(f", {scene.reads} read")
    if scene.live is not None:
        rates = (scene.live.sent_per_s, scene.live.acked_per_s, scene.live.read_per_s)
        line.append(f"   {' / '.join(f'{rate:.0f}' for rate in rates)} a second", DIM)
    return line


# Partitions


def _partitions(scene: Scene, canvas: Canvas, room: int) -> list[Text]:
    """Return the partitions with as much detail as fits."""
    partitions = _shown_partitions(scene)
    if sum(1 + len(partition.replicas) for partition in partitions) + 1 <= room:
        signs = CellSigns(is_unicode=canvas.is_unicode, missing="not there")
        lines = list(_partitions_with_logs(partitions, scene, canvas, signs))
        return [*lines, Text(f"  {_legend(signs, canvas)}", DIM)]
    return _partition_rows(partitions, scene, max(room, 3))


def _shown_partitions(scene: Scene) -> list[partition_state.PartitionState]:
    """Return the partitions of a run, but of a run that goes on no healthy internal ones."""
    partitions = scene.state.partitions.values()
    return [
        partition
        for partition in partitions
        if scene.live is None or not (is_internal(partition.name) and _is_healthy(partition, scene))
    ]


def _legend(signs: CellSigns, canvas: Canvas) -> str:
    return "; ".join([f"{_committed_sign(canvas)} below its HW", *signs.legend()])


def _committed_sign(canvas: Canvas) -> str:
    return "█" if canvas.is_unicode else "#"


def _partitions_with_logs(
    partitions: Sequence[partition_state.PartitionState], scene: Scene, canvas: Canvas, signs: CellSigns
) -> Iterator[Text]:
    """Yield a line for each partition, and then its replicas' logs with a sign for each record."""
    words = {
        (partition.name, replica.broker): _words(replica, partition, scene)
        for partition in partitions
        for replica in partition.replicas.values()
    }
    role_width = max(_ROLE_WIDTH_MIN, *(cell_len(role) for role, _, _ in words.values()))
    ends_width = max(_ENDS_WIDTH_MIN, *(cell_len(ends) for _, ends, _ in words.values()))
    log_width_max = max(_LOG_WIDTH_MIN, min(_LOG_WIDTH_MAX, canvas.width - role_width - ends_width - 6))
    cells = {partition.name: cells_at_end(partition, log_width_max) for partition in partitions}
    for partition in partitions:
        offsets, by_broker = cells[partition.name]
        head = _partition_heading(partition)
        if offsets.start > 0:
            head.append(f"  offsets {offsets.start}-{offsets.stop - 1}", DIM)
        yield head
        for broker in sorted(partition.replicas):
            role, ends, style = words[partition.name, broker]
            is_open = partition.replicas[broker].is_open
            yield Text.assemble(
                "  ",
                (set_cell_size(role, role_width), style),
                "  ",
                (set_cell_size(ends, ends_width), "" if is_open else DIM),
                "  ",
                *(_sign(cell, signs, canvas) for cell in by_broker[broker]),
            )


def _words(
    replica: partition_state.ReplicaState, partition: partition_state.PartitionState, scene: Scene
) -> tuple[str, str, str]:
    """Return the role of a replica, the ends of its log, and a style."""
    role = role_text(replica, scene.state)
    style = BAD if role == "down" else PAUSED if role.startswith("paused") else ""
    if replica.role == partition_state.LEADER and role != "down":
        if replica.broker == partition.leader:
            style = style or GOOD
        else:  # The replica has not yet learned that another one leads.
            role, style = f"{role} DEPOSED", BAD
    if replica.broker not in partition.isr:
        role, style = f"{role}, not in ISR", style or WARNED
    remote = partition.remote_leo(replica.broker)
    remote_text = "" if remote is None else f" remote {remote}"
    ends = f"LEO {replica.leo}{remote_text} HW {high_watermark_text(replica)}"
    if replica.flushed != replica.leo:
        ends += f" flushed {replica.flushed}"
    return f"{replica.broker} {role}", ends, style


def _partition_heading(partition: partition_state.PartitionState) -> Text:
    leader = ("NO LEADER", BAD) if partition.leader == NO_LEADER else (f"leader {partition.leader}", "")
    epoch = "" if partition.leader_epoch == partition_state.NO_EPOCH else f", epoch {partition.leader_epoch}"
    return Text.assemble(
        (printable(partition.name), HEADING),
        *("  ", leader, epoch, ", ISR "),
        (_isr(partition), "" if _is_isr_whole(partition) else WARNED),
    )


def _sign(cell: LogCell, signs: CellSigns, canvas: Canvas) -> tuple[str, str]:
    if cell.state == DIFFERENT:
        return signs.of(DIFFERENT), BAD
    if cell.state == MISSING:
        return signs.of(MISSING), DIM
    if cell.state == REMOVED:
        return signs.of(partition_state.TRUNCATED if cell.removed is None else cell.removed.cause), PAUSED
    return (_committed_sign(canvas), GOOD) if cell.committed else (signs.of("uncommitted"), WARNED)


def _partition_rows(
    partitions: Sequence[partition_state.PartitionState], scene: Scene, room: int
) -> list[Text]:
    """Return a line for each partition. If there are too many, healthy ones are left out first."""
    shown = list(partitions)
    if len(shown) + 1 > room:
        by_urgency = sorted(shown, key=lambda partition: _is_healthy(partition, scene))[: max(1, room - 2)]
        shown = [partition for partition in shown if partition in by_urgency]
    rows = [(printable(partition.name), partition) for partition in shown]
    name_width = max(9, max((cell_len(name) for name, _ in rows), default=0))
    isr_width = max(4, max((len(_isr(partition)) for _, partition in rows), default=0) + 1)
    head = f"{set_cell_size('partition', name_width)} leader epoch {set_cell_size('ISR', isr_width)}"
    lines = [Text.assemble((head, HEADING), ("broker: LEO/HW of each replica; ( ) down", DIM))]
    for name, partition in rows:
        leader = "NONE" if partition.leader == NO_LEADER else str(partition.leader)
        epoch = "-" if partition.leader_epoch == partition_state.NO_EPOCH else str(partition.leader_epoch)
        line = Text.assemble(
            (set_cell_size(name, name_width), ""),
            (f" {leader:>6}", BAD if partition.leader == NO_LEADER else ""),
            f" {epoch:>5} ",
            (set_cell_size(_isr(partition), isr_width), "" if _is_isr_whole(partition) else WARNED),
        )
        for _, replica in sorted(partition.replicas.items()):
            line.append_text(_ends_in_row(replica, partition, scene)).append("  ")
        line.rstrip()
        lines.append(line)
    hidden = [partition for partition in partitions if partition not in shown]
    if hidden:
        healthy = sum(_is_healthy(partition, scene) for partition in hidden)
        rest = f"and {counted(len(hidden), 'partition')} more, {healthy} with a leader and a whole ISR"
        lines.append(Text(rest, DIM))
    return lines


def _isr(partition: partition_state.PartitionState) -> str:
    return " ".join(map(str, partition.isr)) or "-"


def _is_isr_whole(partition: partition_state.PartitionState) -> bool:
    return set(partition.isr) >= set(partition.replicas)


def _ends_in_row(
    replica: partition_state.ReplicaState, partition: partition_state.PartitionState, scene: Scene
) -> Text:
    role = role_text(replica, scene.state)
    ends = f"{replica.broker}: {replica.leo}/{high_watermark_text(replica)}"
    if role == "down":
        return Text(f"({replica.broker}: {replica.leo})", BAD)
    if replica.broker == partition.leader:
        style = GOOD
    elif role.startswith("paused"):
        style = PAUSED
    else:
        style = "" if replica.broker in partition.isr else WARNED
    return Text(ends, style)


def _is_healthy(partition: partition_state.PartitionState, scene: Scene) -> bool:
    leader = scene.state.brokers.get(partition.leader)
    leads = leader is not None and leader.is_live and not leader.is_paused
    return leads and _is_isr_whole(partition)


# Faults, findings, events


def _faults(scene: Scene, canvas: Canvas) -> Iterator[Text]:
    if not scene.faults:
        yield Text.assemble(("faults   ", HEADING), ("none in force", DIM))
        return
    yield Text("faults in force", HEADING)
    for fault in scene.faults[:_FAULTS_SHOWN]:
        time_text = _time_text(fault, scene, short=canvas.width < _NARROW)
        text = shortened(fault.text, canvas.width - len(time_text) - 4, canvas)
        yield Text.assemble("  ", (text, WARNED), "  ", (time_text, DIM))
    if len(scene.faults) > _FAULTS_SHOWN:
        yield Text(f"  and {len(scene.faults) - _FAULTS_SHOWN} more", DIM)


def _time_text(fault: DisplayedFault, scene: Scene, *, short: bool) -> str:
    since = "" if short else f"since {seconds(fault.since_us)}, "
    if scene.live is not None:
        return f"since {seconds(fault.since_us)}"
    if fault.until_us is None:
        return f"{since}to the end"
    return f"{since}{seconds(max(0, fault.until_us - scene.at_us))} left"


def _anomalies(anomalies: Sequence[FindingGroup], canvas: Canvas, none: str) -> Iterator[Text]:
    if not anomalies:
        yield Text.assemble(("findings ", HEADING), (none, DIM))
        return
    yield Text("findings so far", HEADING)
    cross = "✗" if canvas.is_unicode else "x"
    for anomaly in anomalies[:_ANOMALIES_SHOWN]:
        sign, style = (cross, BAD) if anomaly.permitted_by is None else ("~", "cyan")
        yield Text.assemble("  ", (f"{sign} {anomaly.sentence()}", style))
    if len(anomalies) > _ANOMALIES_SHOWN:
        yield Text(f"  and {counted(len(anomalies) - _ANOMALIES_SHOWN, 'more kind')}", DIM)


def _events(events: Sequence[DisplayedEvent], room: int) -> Iterator[Text]:
    shown = events[-room:]
    for item in shown:
        narration = item.event.narration
        folded = f"{item.folded + 1} times, last " if item.folded else ""
        yield Text.assemble(
            (f"{seconds(item.event.at_us):>10} ", DIM),
            f"{set_cell_size(narration.lane, max(_LANE_WIDTH, cell_len(narration.lane)))} ",
            (folded, DIM),
            (narration.text, EVENT_STYLES.get(narration.topic, "")),
        )
    yield from [Text()] * (room - len(shown))
