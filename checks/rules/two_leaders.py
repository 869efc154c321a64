"""two-leaders: two brokers led a partition in one leader epoch."""

from collections.abc import Iterable
from typing import Final

from harrow.checks.causes.background import election_operands, former_controller, tell_leadership
from harrow.checks.causes.links import chosen, controller_elected
from harrow.checks.causes.story import Story, brokers
from harrow.checks.finding import Finding
from harrow.checks.index import Index
from harrow.checks.link import FORBIDDEN, cause
from harrow.checks.permission import Promise
from harrow.checks.promise import LEADER_EPOCH, TWO_LEADERS
from harrow.checks.rule import SEEN_IN_LOGS, Rule
from harrow.cluster_model.events import BecameLeader, Brokers, ControllerElected, Epoch
from harrow.cluster_model.trace import TraceEvent, TraceLine


@cause("one-epoch-two-leaders", needs_nothing_because=FORBIDDEN)
def one_epoch_two_leaders(*, leaders: Brokers, leader_epoch: Epoch) -> str:
    return f"{brokers(leaders)} both led in epoch {leader_epoch}"


def find(index: Index) -> Iterable[Finding]:
    """Find leader epochs with two leaders; a leader that restarts in its epoch counts once."""
    # Most epochs have one leader, so the events stay rows of the trace.
    leaders: dict[tuple[str, int], TraceEvent] = {}
    findings: dict[tuple[str, int, int], Finding] = {}
    for _, second in index.raw_events(BecameLeader):
        broker: int = second[2]
        partition: str = second[3]
        epoch: int = second[4]
        first = leaders.setdefault((partition, epoch), second)
        if first[2] != broker and (partition, epoch, broker) not in findings:
            both = [BecameLeader(row[0], *row[2:]) for row in (first, second)]
            findings[partition, epoch, broker] = _finding(index, *both)
    return findings.values()


def _finding(index: Index, first: BecameLeader, second: BecameLeader) -> Finding:
    partition, epoch = second.partition, second.leader_epoch
    story = Story(index, partition)
    controllers = set()
    for number, election in story.elections:
        if election.leader_epoch == epoch:
            controllers.add(election.controller)
            choice = chosen(
                election.at_us,
                election.controller,
                leader=election.leader,
                leader_epoch=epoch,
                **election_operands(story, TraceLine(number, election)),
            )
            story.tell(number, choice, decides=True)
    both = [line for line in story.events(BecameLeader) if line.event in (first, second)]
    for line in story.events(ControllerElected):
        if line.event.broker in controllers and line.number < both[-1].number:
            former = former_controller(story, line.number)
            story.tell_event(line, controller_elected, decides=True, former=former)
    for start in both:
        tell_leadership(story, start, decides=True)
    leaders = (first.broker, second.broker)
    return Finding(
        partition=partition,
        offset=second.start_offset,
        chain=story.chain(one_epoch_two_leaders.conclude(leaders=leaders, leader_epoch=epoch)),
        details=(("leader_epoch", epoch),),
    )


RULE: Final = Rule(
    name=TWO_LEADERS,
    definition=(
        "Two brokers became leader of a partition in the same leader epoch: the invariant one-leader-per-epoch is "
        "broken."
    ),
    source="KIP-101; ReplicaManager.becomeLeaderOrFollower.",
    promise=Promise(promised_by=(LEADER_EPOCH,)),
    find=find,
    verb="two leaders for",
    is_about_place=True,
    seen_in=SEEN_IN_LOGS,
)
