"""poll-skip in a run: a consumer that passed over a place where a record had stood, and what permits it."""

import pytest

from tests.checks.evidence_builder import PARTITION, RunBuilder


@pytest.mark.parametrize("unclean", [True, False])
def test_a_place_may_be_passed_over_whose_record_an_unclean_leader_had_elsewhere(*, unclean: bool) -> None:
    """Broker 1 had b at offset 2; broker 0 leads with it at 1, and with the end of a transaction at 2."""
    run = RunBuilder(unclean_leader_election=True)
    producer = run.producer()
    run.elect(0, 0, (0, 1))
    run.write(producer, "a", 0, 1)
    run.append(0, "b")
    run.elect(1, 1, (1,))
    for value in ("c", "b"):
        run.write(producer, value, 1)
    run.elect(0, 2, (0,), unclean=unclean)
    run.append(0, "<commit>")
    run.write(producer, "d", 0)
    reader = run.history.new_process("consumer")
    run.history.polled(reader, {PARTITION: [(0, "a"), (1, "b"), (3, "d")]}, run.tick(), run.tick())
    run.read_to_end(0)
    result = run.judge("int-poll-skip")
    assert result.status == ("permitted" if unclean else "violated")
    assert {finding.value for finding in result.findings} == {"d"}
