"""A run reports its current wait, because waits on real brokers take minutes."""

from collections.abc import Callable

from harrow.campaigns.language.loader import load_text
from harrow.campaigns.run.runner import Run
from harrow.cluster_model.sim.choices import Choices

TEXT = """
name: waits
kafka: "2.4"
settings: {acks: all}
cluster: {brokers: 2, topics: [{name: t, replication_factor: 2}]}
script:
  - at: 1s
    do: [{send: m0}, {broker_crash: {broker: 1}}]
  - when: {leader: {t-0: 1}}
    at: 20s
workload: {duration: 40s}
limits: {script: 30s}
"""


def test_each_phase_of_a_run_reports_its_wait() -> None:
    (plan,) = load_text(TEXT, "waits.yaml").plans
    reports: list[str] = []

    def report(wait: Callable[[], str]) -> None:
        reports.append(wait())

    Run(plan, 0, Choices.from_seed(0), tell=report).result()
    waits = list(dict.fromkeys(reports))
    assert waits[0] == "step 1 of the script (line 7): its time has not come"
    assert any(text.startswith("step 2 of the script (line 9): leader of t-0 is") for text in waits)
    assert any(text.startswith("healed: ") for text in waits)
    assert waits[-1] == "healed: everything is read back"
