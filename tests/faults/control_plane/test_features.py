"""What only one control plane has."""

from pathlib import Path

import pytest

import harrow.cluster_model
from harrow.campaigns.language.loader import load_text
from harrow.campaigns.run.runner import run_plan
from harrow.cluster_model.apis import APIS
from harrow.cluster_model.events import EVENTS
from harrow.cluster_model.topology import KRAFT, ZOOKEEPER

FOLDERS = {ZOOKEEPER: ("zookeeper", "controller"), KRAFT: ("kraft",)}
OTHER = {ZOOKEEPER: KRAFT, KRAFT: ZOOKEEPER}


def source_of(metadata: str) -> str:
    here = Path(str(harrow.cluster_model.__file__)).parent
    return "".join(file.read_text() for folder in FOLDERS[metadata] for file in (here / folder).rglob("*.py"))


@pytest.mark.parametrize(
    ("event", "metadata"), [(name, kind.of) for name, kind in EVENTS.items() if kind.of in FOLDERS]
)
def test_only_the_control_plane_that_has_an_event_emits_it(event: str, metadata: str) -> None:
    kind = EVENTS[event].__name__
    assert kind in source_of(metadata)
    assert kind not in source_of(OTHER[metadata])


@pytest.mark.parametrize("metadata", FOLDERS)
def test_no_run_sends_or_does_what_only_the_other_control_plane_has(metadata: str) -> None:
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
    seen = {name for _, name, *_ in trace}
    sent = {fields[0] for _, name, *fields in trace if name == "message"}
    assert not [name for name in seen if EVENTS[name].of == OTHER[metadata]]
    assert not [api for api in sent if APIS.get(api) == OTHER[metadata]]
    assert any(APIS.get(api) == metadata for api in sent)
