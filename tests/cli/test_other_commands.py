"""`validate`, `list`, `explain`, `schema` and `new` as processes."""

import json
import shlex
from pathlib import Path
from typing import get_args

import jsonschema
import pytest

from harrow.cli.options import Kind
from harrow.cluster_model.release.profiles import NEWEST_RELEASE
from tests.cli.conftest import ROOT, Harrow


def test_validate_reports_every_mistake_of_every_file(harrow: Harrow, folder: Path) -> None:
    (folder / "broken.yaml").write_text("cluster: [", encoding="utf-8")
    ended = harrow("validate", "wrong.yaml", "broken.yaml", "calm.yaml", "missing.yaml")
    assert ended.returncode == 2
    lines = ended.stdout.splitlines()
    assert [line.split(": ")[0] for line in lines if line.startswith("wrong.yaml")] == [
        "wrong.yaml:2:8",
        "wrong.yaml:3:1",
        "wrong.yaml:5:12",
    ]
    assert any(line.startswith("broken.yaml:1:") for line in lines)
    assert any(line.startswith("missing.yaml: ") for line in lines)
    assert not any(line.startswith("calm.yaml") for line in lines)


def test_validate_counts_the_valid_campaigns(harrow: Harrow) -> None:
    assert harrow("validate", "calm.yaml").stdout == "1 campaign is valid\n"
    assert harrow("validate", "calm.yaml", "permitted.yaml").stdout == "2 campaigns are valid\n"
    assert harrow("validate", "calm.yaml", "--quiet").stdout == ""


def test_validate_prints_json(harrow: Harrow) -> None:
    ended = harrow("validate", "wrong.yaml", "calm.yaml", "--format", "json")
    assert ended.returncode == 2
    document = json.loads(ended.stdout)
    assert document["schema"] == "harrow.validate/1"
    assert document["valid"] == 1
    assert {"file": "wrong.yaml", "line": 3, "column": 1}.items() <= document["problems"][1].items()
    assert "clutser" in document["problems"][1]["message"]


def test_validate_applies_options(harrow: Harrow) -> None:
    assert harrow("validate", "calm.yaml", "--set", "cluster.brokers=2").returncode == 0
    ended = harrow("validate", "calm.yaml", "--set", "cluster.brokers=none")
    assert ended.returncode == 2
    assert "cluster.brokers=none" in ended.stdout


@pytest.mark.parametrize("kind", get_args(Kind))
def test_every_catalogue_can_be_listed_and_every_name_explained(harrow: Harrow, kind: str) -> None:
    ended = harrow("list", kind, "--format", "json")
    assert ended.returncode == 0
    document = json.loads(ended.stdout)
    assert (document["schema"], document["list"]) == ("harrow.list/1", kind)
    names = [entry["name"] for entry in document["entries"]]
    assert names
    assert len(set(names)) == len(names)
    assert all(entry["doc"] for entry in document["entries"])
    assert harrow("list", kind, "--quiet").stdout.split("\n")[:-1] == names
    table = harrow("list", kind).stdout
    assert all(name in table for name in names)
    explained = harrow("explain", names[-1])
    assert explained.returncode == 0
    assert explained.stdout.startswith(names[-1])


def test_a_fault_is_explained_with_all_its_fields_and_their_values_in_backticks(harrow: Harrow) -> None:
    explanation = harrow("explain", "broker_crash").stdout
    values = ("`process`, `power_loss`", "Default: `process`", "`leader of t-0`", "`1s..10s`", "`for`")
    for part in ("broker", "kind", "restart_after", *values):
        assert part in explanation


def test_the_name_of_a_setting_for_one_kind_of_client_explains_the_setting(harrow: Harrow) -> None:
    plain = harrow("explain", "request.timeout.ms")
    assert plain.returncode == 0
    for qualified in ("consumer.request.timeout.ms", "producer.request.timeout.ms"):
        assert harrow("explain", qualified).stdout == plain.stdout


def test_wrapped_source_text_becomes_one_paragraph(harrow: Harrow) -> None:
    (entry,) = json.loads(harrow("explain", "session_expiry", "--format", "json").stdout)["entries"]
    assert (entry["about"].count("\n"), len(entry["about"]) > 120) == (0, True)


def test_an_explained_behaviour_suggests_a_run_with_another_value(harrow: Harrow) -> None:
    output = harrow("explain", "election_backoff", COLUMNS="60").stdout
    assert (
        "    run  harrow run swarm-kraft --seeds 0..20 --set behaviours.election_backoff=capped\n" in output
    )


def test_a_behaviour_that_no_campaign_exercises_suggests_no_run(harrow: Harrow) -> None:
    assert "no library campaign exercises it" in harrow("explain", "shutdown_awaits_controller").stdout


def test_a_setting_is_explained_with_its_defaults(harrow: Harrow) -> None:
    output = harrow("explain", "unclean.leader.election.enable").stdout
    assert "true, false since 0.11" in output
    assert "broker" in output
    assert "topic" in output


def test_the_latest_release_is_explained_as_the_newest_one(harrow: Harrow) -> None:
    output = harrow("explain", "latest")
    assert (output.returncode, output.stdout) == (0, harrow("explain", NEWEST_RELEASE).stdout)
    assert output.stdout.startswith(f"{NEWEST_RELEASE}  release")


def test_explain_prints_json(harrow: Harrow) -> None:
    document = json.loads(harrow("explain", "LOST-WRITE", "--format", "json").stdout)
    assert document["schema"] == "harrow.explain/1"
    assert [(entry["kind"], entry["name"]) for entry in document["entries"]] == [("rule", "lost-write")]


def test_an_unknown_name_gets_the_nearest_suggestion(harrow: Harrow) -> None:
    ended = harrow("explain", "broker_crahs")
    assert ended.returncode == 2
    assert ended.stdout == ""
    assert "broker_crash" in ended.stderr


def test_an_unknown_catalogue_is_wrong_usage(harrow: Harrow) -> None:
    ended = harrow("list", "planets")
    assert ended.returncode == 2
    assert "faults" in ended.stderr


def test_a_misspelt_library_name_gets_the_nearest_suggestion(harrow: Harrow) -> None:
    ended = harrow("run", "loss-by-hw-truncatoin")
    assert ended.returncode == 2
    assert "loss-by-hw-truncation" in ended.stderr


def test_library_campaigns_match_the_json_schema(harrow: Harrow) -> None:
    import yaml

    schema = json.loads(harrow("schema").stdout)
    validator = jsonschema.validators.validator_for(schema)
    validator.check_schema(schema)
    campaign = yaml.safe_load(
        (ROOT / "campaigns/library/loss-by-hw-truncation.yaml").read_text(encoding="utf-8")
    )
    # JSON has only string keys, and an editor's YAML server also sees broker ids as strings.
    validator(schema).validate(json.loads(json.dumps(campaign)))


def test_new_writes_a_campaign_that_runs(harrow: Harrow, folder: Path) -> None:
    ended = harrow("new", "mine")
    assert ended.returncode == 0
    assert ended.stdout == "mine.yaml\n"
    assert "harrow run mine.yaml" in ended.stderr
    first, *_ = (folder / "mine.yaml").read_text(encoding="utf-8").splitlines()
    schema = json.loads(harrow("schema").stdout)
    assert first == f"# yaml-language-server: $schema={schema['$id']}"
    assert harrow("validate", "mine.yaml").returncode == 0
    assert harrow("run", "mine.yaml").returncode == 0


def test_new_does_not_overwrite_a_file(harrow: Harrow, folder: Path) -> None:
    before = (folder / "calm.yaml").read_text(encoding="utf-8")
    for name in ("calm", "calm.yaml"):
        ended = harrow("new", name)
        assert ended.returncode == 2
        assert "calm.yaml" in ended.stderr
    assert (folder / "calm.yaml").read_text(encoding="utf-8") == before


@pytest.mark.parametrize("name", ["no/such/folder/mine", ""])
def test_new_into_an_unwritable_place_is_a_usage_error(harrow: Harrow, name: str) -> None:
    ended = harrow("new", name)
    assert ended.returncode == 2
    assert "Traceback" not in ended.stderr


@pytest.mark.parametrize("command", ["run", "serve", "validate"])
def test_a_loop_of_links_cannot_be_read(harrow: Harrow, folder: Path, command: str) -> None:
    (folder / "loop").symlink_to("loop")
    ended = harrow(command, "loop")
    assert ended.returncode == 2
    assert "loop: cannot be read: Too many levels of symbolic links" in ended.stdout + ended.stderr


@pytest.mark.parametrize("command", ["explain", "run"])
def test_a_former_name_of_a_setting_suggests_the_current_one(
    harrow: Harrow, folder: Path, command: str
) -> None:
    former = "request.required.acks"
    arguments = (former,) if command == "explain" else ("acks-0", "--set", f"{former}=1")
    ended = harrow(command, *arguments)
    assert ended.returncode == 2
    assert "it is called `acks` now" in ended.stderr
    file = folder / "former.yaml"
    file.write_text("name: former\nsettings: {request.required.acks: 1}\n", encoding="utf-8")
    assert "former.yaml:2:12" in (output := harrow("validate", "former.yaml").stdout)
    assert "it is called `acks` now" in output


def test_every_command_that_runs_a_campaign_takes_a_cluster_file(harrow: Harrow, folder: Path) -> None:
    (folder / "shop.yaml").write_text("brokers: [{id: 7}, {id: 8}]\n", encoding="utf-8")
    on_file = ("calm.yaml", "--cluster", "shop.yaml")
    assert harrow("validate", "shop.yaml").stdout == "1 cluster file is valid\n"
    assert harrow("validate", *on_file).returncode == 0
    ended = harrow("run", *on_file, "--format", "json")
    assert ended.returncode == 0
    assert "--cluster shop.yaml" in json.loads(ended.stdout)["runs"][0]["reproduce"]
    ended = harrow("sweep", *on_file, "--seeds", "0..2", "--engine", "process", "--out", "rows")
    assert ended.returncode == 0, ended.stderr
    # The folder of a sweep does not need the file any more.
    (folder / "shop.yaml").write_text("brokers: [", encoding="utf-8")
    assert harrow("sweep", "--report", "rows").returncode == 0
    ended = harrow("shrink", *on_file, "--seed", "0")
    assert (ended.returncode, ended.stderr.count("\n")) == (2, 1)
    assert "shop.yaml:" in ended.stderr


def test_a_cluster_file_is_no_campaign_but_may_lie_beside_one(harrow: Harrow, folder: Path) -> None:
    (folder / "clusters").mkdir()
    (folder / "clusters" / "shop.yaml").write_text("brokers: 1\n", encoding="utf-8")
    text = "cluster: shop.yaml\nworkload: {duration: 1s}\n"
    (folder / "clusters" / "first.yaml").write_text(text, encoding="utf-8")
    ended = harrow("run", "clusters/shop.yaml")
    assert (ended.returncode, ended.stdout) == (2, "")
    assert (
        ended.stderr
        == "clusters/shop.yaml:1:1: this is a cluster file: run a campaign on it with --cluster\n"
    )
    assert harrow("validate", "clusters").stdout == "1 campaign and 1 cluster file are valid\n"
    assert "1 run of 1 campaign" in harrow("run", "clusters").stdout


@pytest.mark.parametrize(
    "name",
    ["{x}.yaml", "[a].yaml", " lead.yaml", '"q.yaml', "'s.yaml", "tab\t.yaml", "null", "a=b.yaml", "é.yaml"],
)
def test_the_file_of_the_option_cluster_is_a_path_whatever_its_name(
    harrow: Harrow, folder: Path, name: str
) -> None:
    """YAML would take some of these names for a mapping, a list, or another text."""
    (folder / name).write_text("brokers: 2\ntopics: [{name: t}]\n", encoding="utf-8")
    ended = harrow("run", "calm.yaml", "--cluster", name, "--format", "json")
    assert (ended.returncode, ended.stderr) == (0, "")
    reproduce = shlex.split(json.loads(ended.stdout)["runs"][0]["reproduce"])
    assert reproduce[reproduce.index("--cluster") + 1] == name
    assert harrow(*reproduce[1:]).returncode == 0


@pytest.mark.parametrize(
    ("typed", "begin"),
    [
        (("--cluster", "none.yaml"), "--cluster: none.yaml: cannot be read: "),
        (("--set", "cluster=none.yaml"), "--set: cluster=none.yaml: cannot be read: "),
        (("--cluster", "none\t.yaml"), "--cluster: none\\t.yaml: cannot be read: "),
    ],
)
def test_a_message_names_the_option_that_was_typed(
    harrow: Harrow, folder: Path, typed: tuple[str, ...], begin: str
) -> None:
    for command in (("run", "calm.yaml"), ("validate", "calm.yaml"), ("sweep", "calm.yaml", "--seeds", "2")):
        ended = harrow(*command, *typed)
        printed = ended.stdout + ended.stderr
        assert ended.returncode == 2
        assert printed.startswith(begin)
    (folder / "corpus").mkdir()
    ended = harrow("regress", "corpus", *typed)
    assert (ended.returncode, f"{typed[0]}: needs --add" in ended.stderr) == (2, True)
