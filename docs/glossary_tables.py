"""The glossary as Markdown: the terms, and the tickets of Kafka that the model names."""

from harrow.campaigns.language.glossary import TERMS
from harrow.campaigns.language.tickets import tickets


def term_table() -> str:
    """Return what each term means."""
    rows = ["| term | what it means | see |", "|---|---|---|"]
    for term in TERMS.values():
        name = ", ".join([term.name, *term.also])
        see = ", ".join(f"`{name}`" for name in term.see)
        rows.append(f"| {name} | {term.doc} | {see} |")
    return "\n".join(rows)


def ticket_table() -> str:
    """Return what each ticket is about, and what in the model knows of it."""
    rows = ["| ticket | what it is about | behaviours | mutants |", "|---|---|---|---|"]
    for ticket in tickets().values():
        behaviours, mutants = (
            ", ".join(f"`{name}`" for name in names) for names in (ticket.switches, ticket.mutants)
        )
        rows.append(f"| {ticket.name} | {ticket.summary} | {behaviours} | {mutants} |")
    return "\n".join(rows)
