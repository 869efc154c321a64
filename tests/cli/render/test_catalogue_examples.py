"""The examples that `harrow explain` shows under "in a campaign" are valid in a campaign."""

import pytest

from harrow.campaigns.language.loader import load_text
from harrow.cli.options import Kind
from harrow.cli.render.catalogue import CatalogueEntry, entries

# A message rule for `release`, a transactional.id for transactions, an application for its faults.
CAMPAIGN = """\
workload:
  duration: 10s
  producers: [{settings: {transactional.id: a}}]
  applications: [{from: t, delivery: idempotent_sink}]
script:
  - do: {message: {action: hold}}
"""


def entries_of(kind: Kind) -> list[CatalogueEntry]:
    """Return the entries with a complete example, without `{...}` for a choice of fields."""
    return [entry for entry in entries(kind) if "{...}" not in str(entry.sections["in a campaign"])]


@pytest.mark.parametrize("entry", entries_of("faults"), ids=lambda entry: entry.name)
@pytest.mark.parametrize("place", ["  - ", "faults:\n  - at: 1s\n    "], ids=["script", "faults"])
def test_the_example_of_a_fault_can_be_loaded(entry: CatalogueEntry, place: str) -> None:
    assert load_text(f"{CAMPAIGN}{place}do: {entry.sections['in a campaign']['do']}\n", "file.yaml").plans


@pytest.mark.parametrize("entry", entries_of("actions"), ids=lambda entry: entry.name)
def test_the_example_of_an_action_can_be_loaded(entry: CatalogueEntry) -> None:
    # The producer sends, commits and aborts in a transaction.
    begun = "" if entry.name == "begin_transaction" else "  - do: {begin_transaction: {}}\n"
    text = f"{CAMPAIGN}{begun}  - do: {entry.sections['in a campaign']['do']}\n"
    assert load_text(text, "file.yaml").plans


@pytest.mark.parametrize("entry", entries_of("conditions"), ids=lambda entry: entry.name)
def test_the_example_of_a_condition_can_be_loaded(entry: CatalogueEntry) -> None:
    assert load_text(f"{CAMPAIGN}  - when: {entry.sections['in a campaign']['when']}\n", "file.yaml").plans
