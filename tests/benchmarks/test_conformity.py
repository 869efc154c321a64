"""One table shows the outcomes of campaigns on several releases."""

from typing import Any

import pytest

from benchmarks.conformity import conformity_table


def document(release: str, options: list[str] | None = None, **comparison: Any) -> dict[str, Any]:
    defaults: dict[str, Any] = {
        "campaign": "c",
        "variant": None,
        "status": "agreed",
        "reasons": [],
        "modelled": 50,
    }
    entry = {**defaults, "real": [run()], **comparison}
    return {"target": f"kafka:{release}", "set": options or [], "comparisons": [entry]}


def run(began: str = "20260101T000000", found: str = "") -> dict[str, Any]:
    return {"verdict": "permitted" if found else "held", "found": found, "began": began, "alike": 48}


def test_rows_are_campaigns_and_columns_releases_in_numerical_order() -> None:
    lines = conformity_table(
        [
            document("3.9.2", variant="v", status="skipped", reasons=["it cannot", "be | done"]),
            document("2.4.1", real=[run("20260102T000000", found="lost-write 1")]),
            document("0.10.2.2"),
            document("2.4.1", campaign="d", status="skipped", reasons=["be | done"], real=[run(began="")]),
            document("3.9.2-zookeeper"),
        ]
    ).splitlines()
    assert lines == [
        (
            "5 comparisons: 3 agreed, 2 skipped. 1 campaign agreed on at least one release, with variants 1. "
            "Began on 2026-01-01, 2026-01-02 (UTC)."
        ),
        "",
        "| campaign | 0.10.2.2 | 2.4.1 | 3.9.2-zookeeper | 3.9.2 |",
        "| --- | --- | --- | --- | --- |",
        ("| c | held (48 of 50) | permitted: lost-write 1 (48 of 50) | held (48 of 50) |  |"),
        "| c v |  |  |  | skipped [1, 2] |",
        "| d |  | skipped [2] |  |  |",
        "",
        "1. it cannot",
        "2. be | done",
    ]


def test_options_besides_the_release_are_shown() -> None:
    (row,) = (
        line
        for line in conformity_table([document("2.4.1", ["kafka=2.4", "retries=9"])]).splitlines()
        if line.startswith("| c |")
    )
    assert row == "| c | with retries=9: held (48 of 50) |"


def test_the_last_run_of_a_campaign_counts() -> None:
    older, newer = run("20260101T000000", "lost-write 1"), run("20260102T000000")
    documents = [document("2.4.1", real=[newer]), document("2.4.1", real=[older])]
    assert "| c | held (48 of 50) |" in conformity_table(documents)


@pytest.mark.parametrize(
    ("status", "found", "alike", "cell"),
    [
        ("agreed", "", 50, "held"),
        ("differs", "", 0, "differs: held (0 of 50)"),
        ("agreed", "lost m1, permitted by acks=1", 50, "lost m1, permitted by acks=1"),
    ],
)
def test_a_cell_names_the_outcome_and_what_sets_it_apart(
    status: str, found: str, alike: int, cell: str
) -> None:
    real = {**run(found=found), "alike": alike}
    assert f"| c | {cell} |" in conformity_table([document("2.4.1", status=status, real=[real])])
