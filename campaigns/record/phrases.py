"""Words for what rules report: links, causes, preventions. Nothing before this makes a sentence, nothing after takes one apart."""

from collections.abc import Iterator

from harrow.campaigns.language.spelling import printable
from harrow.checks.causes.story import seconds
from harrow.checks.finding import Finding
from harrow.checks.link import Actor, Link


def actor_text(actor: Actor) -> str:
    """Return who acts, as people call it; a client by its name."""
    return f"broker {actor}" if isinstance(actor, int) else str(actor)


def sentence(link: Link) -> str:
    """Return what a link says, without its time."""
    if link.kind.impersonal or link.actor is None:
        return predicate(link)
    role = f", {link.kind.role}," if link.kind.role else ""
    return f"{actor_text(link.actor)}{role} {link.kind.phrase(**link.operands)}"


def predicate(link: Link) -> str:
    """Return what a link says where everybody sees who acts."""
    role = f"{link.kind.role}, " if link.kind.role else ""
    return f"{role}{link.kind.phrase(**link.operands)}"


def timed_sentence(link: Link) -> str:
    """Return what a link says, after its time."""
    return sentence(link) if link.at_us is None else f"{seconds(link.at_us)} {sentence(link)}"


def in_lane(link: Link, lane: str) -> str:
    """Return what a link says in the lane of the actor with that name, for a terminal."""
    is_own = link.actor is not None and actor_text(link.actor) == lane
    return printable(predicate(link) if is_own else sentence(link))


def because(finding: Finding) -> str:
    """Return how a finding came about, in one sentence."""
    return "; ".join(timed_sentence(link) for link in finding.chain)


def preventions(finding: Finding) -> Iterator[str]:
    """Yield what keeps a finding from happening: what was tried and held, or what could not be tried."""
    for prevention in finding.prevented_by:
        if prevention.held is None:
            yield prevention.text
        elif prevention.held:
            yield f"{prevention.text} (tried: held)"


def prevention_label(finding: Finding) -> str:
    """Return what stands before the first prevention; of a history alone nothing can be tried."""
    tried = any(prevention.held for prevention in finding.prevented_by)
    return "prevented by" if tried else "may be prevented by"
