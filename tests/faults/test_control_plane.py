"""Some events and messages exist in only one control plane."""

import re
from pathlib import Path

import pytest

import harrow.cluster_model
from harrow.campaigns.language.loader import load_text
from harrow.campaigns.run.runner import run_plan
from harrow.cluster_model.apis import APIS
from harrow.cluster_model.events import EVENTS
from harrow.cluster_model.topology import KRAFT, ZOOKEEPER

OTHER = {ZOOKEEPER: KRAFT, KRAFT: ZOOKEEPER}
MODEL = Path(str(harrow.cluster_model.__file__)).parent


def folders_that_emit(kind: str) -> set[str]:
    emits = re.compile(rf"\bemit\(\s*(events\.)?{kind}\b")
    return {
        file.relative_to(MODEL).parts[0] for file in MODEL.rglob("*.py") if emits.search(file.read_text())
    }


@pytest.mark.parametrize(
    ("event", "metadata"),
    [(name, kind.subsystem) for name, kind in EVENTS.items() if kind.subsystem in OTHER],
)
def test_an_event_of_a_control_plane_is_emitted_in_its_folder_only(event: str, metadata: str) -> None:
    assert folders_that_emit(EVENTS[event].__name__) == {metadata}


@pytest.mark.parametrize("metadata", OTHER)
def test_no_run_has_events_or_messages_of_the_other_control_plane(metadata: str) -> None:
    text = f"""
kafka: "3.9"
cluster: {{metadata: {metadata}, brokers: 3}}
workload: {{duration: 20s, producers: [{{rate: 5/s}}]}}
script:
  - when: {{event: {{message: {{api: Produce}}}}}}
  - do: {{broker_stop: {{broker: 1}}}}
  - after: 10s
    do: {{broker_restart: {{broker: 1}}}}
  - after: 1s
    do: {{broker_crash: {{broker: controller, restart_after: 2s}}}}
"""
    trace = run_plan(load_text(text, "some.yaml").plans[0], 0).evidence.trace
    events = {name for _, name, *_ in trace}
    sent = {fields[0] for _, name, *fields in trace if name == "message"}
    assert not [name for name in events if EVENTS[name].subsystem == OTHER[metadata]]
    assert not [api for api in sent if APIS.get(api) == OTHER[metadata]]
    assert any(APIS.get(api) == metadata for api in sent)
