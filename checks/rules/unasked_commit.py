"""unasked-commit: a transaction was committed before its application had requested that."""

from collections.abc import Iterator
from typing import Final, NamedTuple

from harrow.checks import promise
from harrow.checks.causes.coordinators import Coordinators
from harrow.checks.causes.loss import Cause
from harrow.checks.causes.story import AFTER, Story
from harrow.checks.causes.transactions import (
    coordinator_partition,
    lost_decision,
    tell_states,
    transaction_opened,
)
from harrow.checks.finding import Finding
from harrow.checks.index import Index
from harrow.checks.link import FORBIDDEN, cause
from harrow.checks.permission import Promise
from harrow.checks.rule import Rule
from harrow.cluster_model import events
from harrow.cluster_model.coordinators.transactions.transaction_metadata import PREPARE_COMMIT
from harrow.cluster_model.settings import TRANSACTIONAL_ID
from harrow.cluster_model.trace import TraceLine, decode

_CHANGED: Final = events.TransactionStateChanged.name


@cause("commit-unasked", needs_nothing_because=FORBIDDEN)
def commit_unasked(
    *, client: events.ClientName, transactional_id: events.Text, is_to_abort: events.Flag = False
) -> str:
    request = "had requested an abort" if is_to_abort else "had not requested its end"
    return f"the transaction of {transactional_id} was committed while {client} {request}"


class _Open(NamedTuple):
    """A transaction that an application began.

    ``commit_requested`` is true if the application requested a commit, false if it requested an
    abort, and None before either.
    """

    line: TraceLine[events.TransactionOpened]
    commit_requested: bool | None = None

    @property
    def key(self) -> tuple[int, int]:
        return self.line.event.producer_id, self.line.event.producer_epoch


def find(index: Index) -> Iterator[Finding]:
    """Compare what applications request with what coordinators write.

    A commit belongs to the last transaction that began with the producer's id in the same or an
    older epoch. The epoch is older with transactions v2, where the commit is written with the next
    epoch. Two sessions of an application may run at once, and a request of one session counts for
    both. Commits of a deposed coordinator are ignored, because it may report an earlier decision
    late.
    """
    if not index.has(events.TransactionStateChanged):
        return
    opened: dict[str, dict[tuple[int, int], _Open]] = {}
    clients: dict[int, dict[str, None]] = {}
    coordinators = Coordinators()
    for number, event in _lines(index):
        if isinstance(event, events.BecameLeader):
            coordinators.note(event)
        elif isinstance(event, events.TransactionOpened):
            _begin(opened.setdefault(event.client, {}), TraceLine(number, event))
            clients.setdefault(event.producer_id, {})[event.client] = None
        elif isinstance(event, events.TransactionEnding):
            of_client = opened.get(event.client, {})
            for key, transaction in of_client.items():
                # If a client requests a commit and then an abort, either outcome is right.
                if not transaction.commit_requested:
                    of_client[key] = transaction._replace(commit_requested=event.committed)
        elif isinstance(event, events.TransactionStateChanged) and not coordinators.is_superseded(
            coordinator_partition(index, event.transactional_id), event.broker
        ):
            candidates = [
                transaction
                for client in clients.get(event.producer_id, ())
                for (producer_id, epoch), transaction in opened[client].items()
                if producer_id == event.producer_id and epoch <= event.producer_epoch
            ]
            latest = max(candidates, key=_age, default=None)
            if latest is not None and not latest.commit_requested:
                yield _finding(index, number, event, latest)


def _lines(index: Index) -> Iterator[tuple[int, events.Event]]:
    """Yield the requests of applications, the commits of coordinators, and elections."""
    for number, row in index.raw_events(
        events.BecameLeader,
        events.TransactionOpened,
        events.TransactionEnding,
        events.TransactionStateChanged,
    ):
        if row[1] != _CHANGED or row[6] == PREPARE_COMMIT:
            yield number, decode(row)


def _begin(of_client: dict[tuple[int, int], _Open], line: TraceLine[events.TransactionOpened]) -> None:
    """Add a transaction, and drop earlier ones for which the session has requested a commit."""
    transaction = _Open(line)
    epoch = line.event.producer_epoch
    for key in [key for key, other in of_client.items() if other.commit_requested and key[1] <= epoch]:
        del of_client[key]
    of_client[transaction.key] = transaction


def _age(transaction: _Open) -> tuple[int, int]:
    return transaction.line.event.producer_epoch, transaction.line.number


def _finding(index: Index, number: int, event: events.TransactionStateChanged, transaction: _Open) -> Finding:
    begin, client = transaction.line.number, transaction.line.event.client
    story = Story(index, next(iter(event.partitions), ""))
    story.tell_event(transaction.line, transaction_opened, decides=True)
    tell_states(story, event.producer_id, begin, number + AFTER)
    coordinator = coordinator_partition(index, event.transactional_id)
    lost = lost_decision(index, () if coordinator is None else (coordinator,), begin)
    is_to_abort = transaction.commit_requested is False
    return (lost or Cause(())).finding(
        story,
        commit_unasked.conclude(
            client=client, transactional_id=event.transactional_id, is_to_abort=is_to_abort
        ),
        details=(("client", client), ("transactional_id", event.transactional_id)),
    )


RULE: Final = Rule(
    name=promise.UNASKED_COMMIT,
    goes_by_order=True,
    definition=(
        "A coordinator committed a transaction before its application had requested that, or although it had requested an "
        "abort: read_committed consumers read unfinished work."
    ),
    source="KIP-98; KIP-890 (KAFKA-14402); TransactionCoordinator.scala.",
    promise=Promise(
        promised_by=(TRANSACTIONAL_ID,),
        permissions=promise.BY_LOST_DECISION,
        releases="since 0.11 (KIP-98); also for late requests since 4.0 (KIP-890)",
    ),
    find=find,
    is_tried=lambda index: index.has(events.TransactionOpened),
    verb="committed unasked, a transaction in",
    is_about_place=True,
)
