"""unasked-commit: a transaction was committed before its application had asked for that."""

from collections.abc import Iterator, Sequence
from typing import Final, NamedTuple

from harrow.checks import promise
from harrow.checks.causes.coordinators import Coordinators
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
from harrow.cluster_model.trace import TraceLine


@cause("commit-unasked", free_because=FORBIDDEN)
def commit_unasked(
    *, client: events.ClientName, transactional_id: events.Text, is_to_abort: events.Flag = False
) -> str:
    """A coordinator committed what its application had open."""
    asked = "had asked for an abort" if is_to_abort else "had not asked for its end"
    return f"the transaction of {transactional_id} was committed while {client} {asked}"


class _Open(NamedTuple):
    """A transaction that an application has begun: where, and what it has asked for since."""

    number: int
    at_us: int
    client: str
    producer_id: int
    producer_epoch: int
    asked: bool | None = None


def find(index: Index) -> Iterator[Finding]:
    """Follow what applications ask for, and compare with it what coordinators write.

    A commit is that of the transaction that was begun last with the producer's id, in an epoch that
    is not newer: with transactions v2 it is written with the next one. Two sessions of an
    application may run at once; what one of them asks for counts for both. What a coordinator of
    the past tells late was decided before.
    """
    if not index.has(events.TransactionStateChanged):
        return
    begun: dict[str, dict[tuple[int, int], _Open]] = {}
    clients: dict[int, dict[str, None]] = {}
    coordinators = Coordinators()
    for number, event in _lines(index):
        if isinstance(event, events.BecameLeader):
            coordinators.note(event)
        elif isinstance(event, events.TransactionOpened):
            _begin(begun.setdefault(event.client, {}), number, event)
            clients.setdefault(event.producer_id, {})[event.client] = None
        elif isinstance(event, events.TransactionEnding):
            of_client = begun.get(event.client, {})
            for key, known in of_client.items():
                # Who asks for a commit, and then for an abort, may get either.
                if not known.asked:
                    of_client[key] = known._replace(asked=event.committed)
        elif event.state == PREPARE_COMMIT and not coordinators.is_of_past(
            coordinator_partition(index, event.transactional_id), event.broker
        ):
            candidates = [
                known
                for client in clients.get(event.producer_id, ())
                for known in begun[client].values()
                if known.producer_id == event.producer_id and known.producer_epoch <= event.producer_epoch
            ]
            latest = max(candidates, key=_newest, default=None)
            if latest is not None and not latest.asked:
                yield _finding(index, number, event, latest)


def _lines(
    index: Index,
) -> Sequence[
    TraceLine[
        events.BecameLeader
        | events.TransactionOpened
        | events.TransactionEnding
        | events.TransactionStateChanged
    ]
]:
    return index.events(
        events.BecameLeader,
        events.TransactionOpened,
        events.TransactionEnding,
        events.TransactionStateChanged,
    )


def _begin(of_client: dict[tuple[int, int], _Open], number: int, event: events.TransactionOpened) -> None:
    """Note a transaction in place of those that its session has asked to be committed before."""
    for key in [key for key, known in of_client.items() if known.asked and key[1] <= event.producer_epoch]:
        del of_client[key]
    of_client[event.producer_id, event.producer_epoch] = _Open(
        number, event.at_us, event.client, event.producer_id, event.producer_epoch
    )


def _newest(known: _Open) -> tuple[int, int]:
    return known.producer_epoch, known.number


def _finding(index: Index, number: int, event: events.TransactionStateChanged, begun: _Open) -> Finding:
    partition = next(iter(event.partitions), "")
    story = Story(index, partition)
    story.tell(
        begun.number,
        transaction_opened(
            begun.at_us, begun.client, producer_id=begun.producer_id, producer_epoch=begun.producer_epoch
        ),
        decides=True,
    )
    tell_states(story, event.producer_id, begun.number, number + AFTER)
    coordinator = coordinator_partition(index, event.transactional_id)
    permitted = lost_decision(index, () if coordinator is None else (coordinator,), begun.number)
    concluded = commit_unasked.conclude(
        client=begun.client, transactional_id=event.transactional_id, is_to_abort=begun.asked is False
    )
    return Finding(
        partition=partition,
        chain=story.chain(*(() if permitted is None else permitted.links), concluded),
        permitted_by=None if permitted is None else permitted.permitted_by,
        prevented_by=() if permitted is None else permitted.prevented_by,
        details=(("client", begun.client), ("transactional_id", event.transactional_id)),
    )


RULE: Final = Rule(
    name=promise.UNASKED_COMMIT,
    goes_by_order=True,
    definition=(
        "A coordinator committed a transaction before its application had asked for that, or although it had asked for an abort: "
        "with read_committed others read what is not finished."
    ),
    source="KIP-98; KIP-890 (KAFKA-14402); TransactionCoordinator.scala.",
    promise=Promise(
        promised_by=(TRANSACTIONAL_ID,),
        permissions=promise.BY_LOST_DECISION,
        releases="since 0.11 (KIP-98); also when requests come late since 4.0 (KIP-890)",
    ),
    find=find,
    verb="committed unasked, a transaction in",
    is_about_place=True,
)
