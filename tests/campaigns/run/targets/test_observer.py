"""What conditions see of a history."""

import pytest

from harrow.cluster_model.history import FAIL, INFO, INVOKE, OK, TXN
from tests.campaigns.run.stage import Stage


@pytest.mark.parametrize(
    ("type_", "acked", "failed"), [(OK, True, False), (FAIL, False, True), (INFO, False, True)]
)
def test_every_send_of_a_transaction_is_acked_or_failed_with_it(
    type_: str, acked: bool, failed: bool
) -> None:
    stage = Stage()
    sends = (("poll", {"t-0": [(0, "read")]}), ("send", "t-0", "x"), ("send", "t-0", "y"))
    stage.cluster.history.add(7, INVOKE, TXN, (("poll",), *sends[1:]), 0)
    assert not stage.target.observer.is_acked("x")
    stage.cluster.history.add(7, type_, TXN, sends, 1)
    for value in ("x", "y"):
        assert (stage.target.observer.is_acked(value), stage.target.observer.is_failed(value)) == (
            acked,
            failed,
        )
    assert not stage.target.observer.is_acked("read")
    assert not stage.target.observer.is_failed("read")
