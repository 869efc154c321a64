"""acked-below-min-isr: acks=all was acknowledged by a leader whose ISR was too small for it."""

from typing import Final

from checks.copies import Placed
from checks.evidence import Evidence
from checks.finding import Finding, RuleResult
from checks.index import Index
from checks.prevention import by_behaviour
from checks.promise import ACKED_BELOW_MIN_ISR, MIN_ISR
from checks.rule import Rule, rule_result
from checks.story import Story
from cluster_model.trace import TraceEvent

_ACKS_ALL: Final = -1
_CONCERNED: Final = frozenset({"append", "duplicate_batch", "hw", "acknowledged"})


class _Leading:
    """A partition on a broker that leads it: its ISR, and what has been appended and committed there.

    ``thin_since`` is where the trace tells of the ISR that is too small, None while it is large
    enough. ``appended`` has by base offset whether the ISR was too small then, ``committed`` where
    the high watermark passed the batch.
    """

    __slots__ = ("appended", "committed", "thin_since", "uncommitted")

    def __init__(self) -> None:
        self.thin_since: Placed | None = None
        self.appended: dict[int, Placed | None] = {}
        self.uncommitted: dict[int, int] = {}
        self.committed: dict[int, int] = {}

    def set_isr(self, placed: Placed, *, is_thin: bool) -> None:
        """The leader has this ISR from now on."""
        if not is_thin:
            self.thin_since = None
        elif self.thin_since is None:
            self.thin_since = placed

    def follow(self, position: int, event: TraceEvent) -> Placed | None:
        """Note an event; return where the ISR became too small for what is acknowledged with it."""
        name = event[1]
        if name == "append":
            self._append(event[4], event[4] + len(event[8]))
        elif name == "duplicate_batch":
            # Its first record, which is all that the trace tells of it.
            self._append(event[6], event[6] + 1)
        elif name == "hw":
            self._commit(position, event[4])
        elif event[5] == _ACKS_ALL:
            return self._too_thin_for(event[4])
        return None

    def _append(self, base_offset: int, end_offset: int) -> None:
        """A producer's batch has been taken, anew or as one that was there already."""
        self.appended[base_offset] = self.thin_since
        self.uncommitted[base_offset] = end_offset
        self.committed.pop(base_offset, None)

    def _commit(self, position: int, high_watermark: int) -> None:
        passed = [base for base, end in self.uncommitted.items() if end <= high_watermark]
        for base_offset in passed:
            del self.uncommitted[base_offset]
            self.committed[base_offset] = position

    def _too_thin_for(self, base_offset: int) -> Placed | None:
        """Return where the ISR became too small for a batch that is acknowledged now.

        It has to be large enough at the append, and at some moment between the commit and the
        answer: a leader looks at it when the high watermark has risen, and need not do so at once.
        """
        at_append = self.appended.get(base_offset)
        if at_append is not None or self.thin_since is None:
            return at_append
        committed = self.committed.get(base_offset)
        return self.thin_since if committed is not None and committed > self.thin_since[0] else None


def judge(evidence: Evidence, index: Index) -> RuleResult:
    """Follow the ISR of each leader, where one was ever too small."""
    findings: list[Finding] = []
    if any(_is_thin(evidence, event) for event in (*index.leader_events, *index.isr_events)):
        led: dict[tuple[int, str], _Leading] = {}
        for position, event in enumerate(evidence.trace):
            name = event[1]
            if name in ("leader", "isr"):
                leading = led.setdefault((event[2], event[3]), _Leading())
                leading.set_isr((position, event), is_thin=_is_thin(evidence, event))
            elif name in _CONCERNED and (event[2], event[3]) in led:
                thin = led[event[2], event[3]].follow(position, event)
                if thin is not None:
                    findings.append(_finding(evidence, index, thin, (position, event)))
    return rule_result(ACKED_BELOW_MIN_ISR, evidence, findings)


def _is_thin(evidence: Evidence, event: TraceEvent) -> bool:
    """Return whether a ``leader`` or ``isr`` has an ISR below ``min.insync.replicas``."""
    settings = evidence.partitions.get(event[3])
    isr = event[6] if event[1] == "leader" else event[5]
    return settings is not None and len(isr) < settings.min_insync_replicas


def _finding(evidence: Evidence, index: Index, thin: Placed, answer: Placed) -> Finding:
    at_us, _, broker, partition, base_offset, _, values = answer[1]
    settings = evidence.partitions[partition]
    story = Story(evidence, index.copies(partition), partition)
    isr = thin[1][6] if thin[1][1] == "leader" else thin[1][5]
    story.tell(thin[0], "isr-shrank", f"broker {broker} led with the ISR {list(isr)}", thin[1][0], broker)
    text = f"broker {broker} acknowledged {', '.join(values)} at offset {base_offset} to acks=all"
    story.tell(answer[0], "acknowledged", text, at_us, broker, base_offset)
    return Finding(
        partition=partition,
        offset=base_offset,
        value=values[0] if values else None,
        chain=story.chain(f"{MIN_ISR} is {settings.min_insync_replicas}, the ISR had {len(isr)}"),
        prevented_by=by_behaviour(evidence, ACKED_BELOW_MIN_ISR),
        details=(("isr", list(isr)), ("min_insync_replicas", settings.min_insync_replicas)),
    )


RULE: Final = Rule(
    name=ACKED_BELOW_MIN_ISR,
    definition=(
        "A leader acknowledged a send with acks=all although its ISR was smaller than min.insync.replicas when it "
        "appended the record, or from the commit of the record to the answer. An ISR that shrinks afterwards takes "
        "nothing back."
    ),
    source="Partition.appendRecordsToLeader (NotEnoughReplicasException), Partition.checkEnoughReplicasReachOffset.",
    judge=judge,
)
