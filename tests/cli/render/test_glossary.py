"""Every word, ticket and former name leads to an explanation."""

import pytest

from harrow.campaigns.language.former_names import campaign_keys
from harrow.campaigns.language.glossary import TERMS, term_of
from harrow.campaigns.language.tickets import tickets
from harrow.cli.render.catalogue import all_names, explain
from harrow.cluster_model.release.profiles import MUTANTS, REPAIRS, SWITCHES
from harrow.cluster_model.settings import SETTINGS, former_names, scopes_of


def test_every_reference_of_a_term_can_be_explained() -> None:
    explained = {name.lower() for name in all_names()}
    assert {name for term in TERMS.values() for name in term.see if name.lower() not in explained} == set()


def test_no_word_stands_for_two_terms() -> None:
    words = [word.lower() for term in TERMS.values() for word in (term.name, *term.synonyms)]
    assert len(words) == len(set(words))
    assert all(term_of(word) is not None for word in words)


@pytest.mark.parametrize("word", ["HW", "high-watermark", "leo", "ISR", "purgatory", "probe", "remote LEO"])
def test_a_term_is_explained_before_other_entries_of_its_name(word: str) -> None:
    assert explain(word)[0].kind == "term"


def test_a_ticket_lists_its_declarations_and_campaigns() -> None:
    (entry,) = explain("kip-101")
    assert "KIP-101" in entry.sections["repairs"]
    assert "follower_truncation" in entry.sections["behaviours"]
    assert "hw-truncation" in entry.sections["mutants"]
    assert "loss-by-hw-truncation" in entry.sections["campaigns"]["about it"]
    (entry,) = explain("KAFKA-10706")
    assert entry.sections["try"] == {"run": "harrow run epoch-without-records"}
    (entry,) = explain("KAFKA-13435")
    assert "KIP-814" in entry.sections["repairs"]
    (entry,) = explain("KIP-98")
    assert "producer_batches_retained" in entry.sections["behaviours"]


def test_every_ticket_of_a_switch_repair_or_mutant_is_in_the_catalogue() -> None:
    named = {repair.name for repair in REPAIRS.values()}
    sources = [switch.source for switch in SWITCHES.values()]
    sources += [mutant.source for mutant in MUTANTS.values()]
    words = (word.strip("(),;") for source in sources for word in source.split())
    named |= {word for word in words if word.startswith(("KIP-", "KAFKA-"))}
    assert named <= tickets().keys()


def test_former_names_and_campaign_keys_are_not_settings() -> None:
    assert {name for name in (*former_names(), *campaign_keys()) if scopes_of(name)} == set()


def test_the_field_of_a_campaign_declares_the_setting_that_it_replaces() -> None:
    assert campaign_keys() == {
        "inter.broker.protocol.version": "kafka",
        "metadata.version": "kafka",
        "broker.rack": "rack",
    }


def test_no_two_settings_have_the_same_former_name() -> None:
    pairs = [(former, setting.name) for setting in SETTINGS.values() for former in setting.former]
    assert len(pairs) == len({former for former, _ in pairs})
    assert former_names()["max.transaction.timeout.ms"] == "transaction.max.timeout.ms"
