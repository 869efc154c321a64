"""A controller's terms are read from its log in the wording of each release."""

import pytest

from harrow.live_cluster.broker_logs.controller_terms import ControllerTerms

WORDS = {
    "0.10.2": ("[Controller 2]: Controller 2 incremented epoch to {}", "[Controller 2]: Broker 2 resigned as the controller"),
    "1.0": ("[Controller id=2] Incremented epoch to {}", "[Controller id=2] Resigned"),
    "2.0": ("[Controller id=2] Epoch incremented to {}", "[Controller id=2] Resigned"),
    "2.4": (
        "[Controller id=2] 2 successfully elected as the controller. Epoch incremented to {} and epoch zk version is now 1",
        "[Controller id=2] Resigned",
    ),
}  # fmt: skip
BEGINS, ENDS = WORDS["2.4"]
STARTS = "[2026-11-23 17:11:38,458] INFO starting (kafka.server.KafkaServer)"


def resignations_in(*texts: str) -> list[int]:
    terms = ControllerTerms()
    for text in texts:
        is_whole = text.endswith(")")
        terms.read(
            text if is_whole else f"[2026-11-23 17:11:40,458] INFO {text} (kafka.controller.KafkaController)"
        )
    epochs = terms.resignations()
    assert terms.resignations() == []
    return epochs


@pytest.mark.parametrize("release", WORDS)
def test_a_resignation_ends_the_term_that_began_last(release: str) -> None:
    begins, ends = WORDS[release]
    assert resignations_in(begins.format(1), ends, begins.format(7), ends) == [1, 7]


def test_a_broker_that_was_not_controller_has_not_resigned() -> None:
    assert resignations_in(ENDS, BEGINS.format(3), ENDS, ENDS) == [3]


def test_a_process_that_was_killed_as_controller_has_not_resigned() -> None:
    assert resignations_in(BEGINS.format(1), STARTS, ENDS) == []


def test_a_kraft_voter_logs_the_epoch_from_which_it_resigned() -> None:
    terms = ControllerTerms()
    terms.read(
        "[2026-11-23 23:17:11,458] WARN [QuorumController id=3000] Renouncing the leadership due to a metadata log event. We were the"
        " leader at epoch 1, but in the new epoch 2, the leader is (none). Reverting to last stable offset 93."
        " (org.apache.kafka.controller.QuorumController)"
    )
    assert terms.resignations() == [1]


def test_a_kraft_voter_may_resign_in_the_middle_of_an_event() -> None:
    terms = ControllerTerms()
    terms.read(
        "[2026-11-24 01:28:55,722] INFO [QuorumController id=3000] registerController: event failed with NotLeaderException (treated as"
        " NotControllerException) at epoch 2 in 9047 microseconds. Renouncing leadership and reverting to the last committed offset 38."
        " Exception message: Flush failed because the replica is not the current leader (org.apache.kafka.controller.QuorumController)"
    )
    assert terms.resignations() == [2]


def test_a_kraft_voter_is_active_from_its_claim_until_it_resigns() -> None:
    terms = ControllerTerms()
    active = []
    for line in (
        "[QuorumController id=3000] Becoming the active controller at epoch 2, next write offset 93.",
        "[QuorumController id=3000] We were the leader in epoch 2, and are still the leader in the new epoch 3.",
        "[QuorumController id=3000] Renouncing the leadership due to a metadata log event. We were the leader at epoch 3, but",
        # Up to 3.5.
        "[QuorumController id=3000] Becoming the active controller at epoch 5, committed offset 93, committed epoch 3",
    ):
        terms.read(f"[2026-11-24 01:28:55,722] INFO {line} (org.apache.kafka.controller.QuorumController)")
        active.append([epoch for epoch in range(6) if terms.is_active_in(epoch)])
    assert active == [[2], [3], [], [5]]
