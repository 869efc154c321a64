"""Writes the glossary as Markdown: terms, and the tickets of Kafka that the model names."""

from harrow.campaigns.language.glossary import TERMS
from harrow.campaigns.language.tickets import tickets


def term_table() -> str:
    """Return each term with its meaning."""
    rows = ["| term | meaning | see |", "|---|---|---|"]
    for term in TERMS.values():
        name = ", ".join([term.name, *term.synonyms])
        see = ", ".join(f"`{name}`" for name in term.see)
        rows.append(f"| {name} | {term.doc} | {see} |")
    return "\n".join(rows)


def ticket_table() -> str:
    """Return each ticket with its subject, and the behaviours and mutants that name it."""
    rows = ["| ticket | subject | behaviours | mutants |", "|---|---|---|---|"]
    for ticket in tickets().values():
        behaviours, mutants = (
            ", ".join(f"`{name}`" for name in names) for names in (ticket.switches, ticket.mutants)
        )
        rows.append(f"| {ticket.name} | {ticket.summary} | {behaviours} | {mutants} |")
    return "\n".join(rows)
