"""Known flaws of Kafka show themselves to unmodified clients, with one campaign file each."""

import sys

import pytest

from tests.examples.toolchains import serve
from tests.plain_environment import ROOT

pytest.importorskip("confluent_kafka")
FLAWS = ROOT / "examples" / "known_flaws"


@pytest.mark.parametrize(
    ("flaw", "program", "finding"),
    [
        ("hw-truncation", "hw_truncation.py", "despite acks=all"),
        ("delayed-end-txn", "delayed_end_txn.py", "read although the send had failed"),
        ("ack-lost", "ack_lost.py", "doubled m1, permitted by enable.idempotence=false"),
    ],
)
def test_an_unmodified_client_shows_a_flaw(flaw: str, program: str, finding: str) -> None:
    unique = ("--unique", "value") if flaw == "ack-lost" else ()
    code, printed = serve(FLAWS, FLAWS / f"{flaw}.yaml", sys.executable, program, options=unique)
    assert code == 0, printed
    assert finding in printed
