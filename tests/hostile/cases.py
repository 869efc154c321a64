"""Creates hostile cases: a folder with hostile files, and a command that reads them.

The number of a case decides everything about it.
"""

import contextlib
import gzip
import json
import shutil
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import Any, Final

import pyarrow as pa
import pyarrow.parquet as pq
import yaml

from tests.hostile import large_histories
from tests.hostile.fake_broker import FakeBroker
from tests.hostile.texts import poisoned, renamed, text
from tests.properties.hostile_files import damage

CAMPAIGN: Final[dict[str, Any]] = {
    "name": "small",
    "description": "What is acknowledged with acks=1 can be lost.",
    "kafka": "2.4",
    "cluster": {
        "brokers": [{"id": 0, "rack": "r0"}, {"id": 1, "rack": "r1"}, {"id": 2, "rack": "r2"}],
        "topics": [{"name": "t", "replication_factor": 3}],
    },
    "workload": {
        "duration": "4s",
        "producers": [{"name": "p", "rate": "3/s", "settings": {"acks": 1}}],
        "consumers": [{"name": "c"}],
    },
    "script": [
        {"note": "first", "do": {"send": "m0"}},
        {"when": {"acked": "m0"}, "do": {"expect": {"replicas": {"t-0": {0: {"leo": 1}}}}}},
    ],
    "faults": [
        {"rate": "30/m", "do": {"broker_crash": {"broker": "leader of t-0", "restart_after": "500ms"}}}
    ],
    "expect": {"verdict": "permitted", "lost": ["m0"]},
    "variants": {
        "every": {"description": "All replicas.", "settings": {"acks": "all"}, "expect": {"verdict": "held"}}
    },
    "limits": {"events": 3000},
}
SWEEP: Final = (
    *("sweep", "small.yaml", "--seeds", "0..3", "--vary", "acks=1,all"),
    *("--engine", "process", "--workers", "1"),
)
"""A sweep of the campaign, for a folder that has the campaign's file."""
CLUSTER: Final[dict[str, Any]] = {
    "bootstrap": ["127.0.0.1:1"],
    "kafka": "3.9.2",
    "security": {"security.protocol": "PLAINTEXT"},
    "brokers": [{"id": 1, "vars": {"unit": "a"}}, {"id": 2, "vars": {"unit": "b"}}],
    "commands": {
        "kill": "echo {unit} {host}",
        "start": ["echo", "{broker}"],
        "cut": "ssh {host} iptables -s {peer_host}",
        "restore": {"run": ["true", "{rack}"], "timeout": "5s"},
    },
    "timeout": "5s",
    "allow": ["topics", "kill"],
}
_FREE_TEXTS: Final = (
    "m0",
    "first",
    "r0",
    "every",
    "What is acknowledged with acks=1 can be lost.",
    "All replicas.",
)
"""Texts of the campaign that a user may choose freely."""
_FREE_COLUMNS: Final = (
    "variant",
    "kafka",
    "version",
    "rules",
    "reasons",
    "missed",
    "drawn",
    "faults",
    "chain",
    "error",
)
_CONSISTENT_COLUMNS: Final = ("cell", "signature", "failed_rule", "promise", "settings")
"""Text columns of a sweep. Those of the second list must agree with the rest of the sweep."""
_SENDS: Final = ("lost", "reread", "dup", "reordered", "aborted", "failed", "unknown")
_QUIET_CAMPAIGN: Final = {
    "name": "calm",
    "cluster": {"brokers": 1, "topics": [{"name": "t"}]},
    "workload": {"producers": [{"name": "p"}]},
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """A command in a folder, with environment variables that affect its output."""

    kind: str
    words: tuple[str, ...]
    environment: Mapping[str, str]

    @property
    def is_watched(self) -> bool:
        """Whether it plays runs on a terminal."""
        return "--watch" in self.words


class Cases:
    """Creates cases.

    *intact* is a folder with an undamaged run and sweep. *broker* answers for clusters of users.
    """

    def __init__(self, intact: Path, broker: FakeBroker) -> None:
        self._intact = intact
        self._broker = broker
        self._library = sorted((Path(__file__).parents[2] / "campaigns" / "library").glob("*.yaml"))
        self._kinds: Mapping[Callable[[Path, Random], list[str]], int] = {
            self._campaign: 22,
            self._watched: 4,
            self._library_campaign: 8,
            self._history: 25,
            self._large_history: 1,
            self._logged_records: 8,
            self._run_folder: 20,
            self._sweep_folder: 9,
            self._cluster_file: 5,
            self._cluster_answers: 8,
            self._arguments: 5,
        }

    def create(self, number: int, folder: Path) -> Case:
        """Create the files of a case in an empty folder."""
        draws = Random(number)
        (kind,) = draws.choices(list(self._kinds), weights=list(self._kinds.values()))
        words = kind(folder, draws)
        # If COLUMNS is set, lines are wrapped, even in logs.
        shape = draws.choice(
            ({}, {}, {"COLUMNS": "40"}, {"COLUMNS": "80"}, {"GITHUB_STEP_SUMMARY": "summary.md"})
        )
        return Case(kind=kind.__name__.strip("_"), words=tuple(words), environment=shape)

    def _campaign(self, folder: Path, draws: Random) -> list[str]:
        document = json.loads(json.dumps(CAMPAIGN))
        if draws.random() < 0.8:
            document = renamed(document, _names(draws, _FREE_TEXTS))
        else:
            document = poisoned(document, draws)
        _write_yaml(folder / "c.yaml", document, draws)
        return self._with_campaign(draws)

    def _watched(self, folder: Path, draws: Random) -> list[str]:
        """Create a campaign for playback on a terminal, which draws its names repeatedly."""
        self._campaign(folder, draws)
        if draws.random() < 0.7:
            # Campaigns refuse most hostile texts, but not record values with JSON escapes.
            document = renamed(json.loads(json.dumps(CAMPAIGN)), _names(draws, ("m0", "first")))
            (folder / "c.yaml").write_text(json.dumps(document), encoding="utf-8")
        return draws.choice(
            (
                ["run", "c.yaml", "--watch", "--speed", draws.choice(("max", "500")), "--no-results"],
                ["sweep", "c.yaml", "--seeds", "2", "--watch", "--engine", "process", "--workers", "1"],
            )
        )

    def _library_campaign(self, folder: Path, draws: Random) -> list[str]:
        document = yaml.safe_load(draws.choice(self._library).read_text(encoding="utf-8"))
        if draws.random() < 0.3:
            _write_yaml(folder / "c.yaml", poisoned(document, draws), draws)
            return self._with_campaign(draws, runs=False)
        _write_yaml(folder / "c.yaml", renamed(document, _names(draws, ("m0", "m1", "m2"))), draws)
        return [*self._with_campaign(draws), "--set", "limits.events=3000"]

    def _with_campaign(self, draws: Random, *, runs: bool = True) -> list[str]:
        validate = ["validate", "c.yaml", "--format", draws.choice(("table", "json", "junit", "github"))]
        if not runs or draws.random() < 0.3:
            return validate
        run = ["run", "c.yaml", "--seed", str(draws.randrange(5)), "-j", "1"]
        return draws.choice(
            (
                [*run, "--no-results", *_format(draws, "table", "json", "ndjson", "junit", "github")],
                [*run, "--no-results", *_format(draws, "table", "json", "ndjson", "junit", "github")],
                [*run, "-v"],
                run,
                [*run, "--no-results", "--set", f"{text(draws)}={text(draws)}".replace("\0", "")],
                ["sweep", "c.yaml", "--seeds", "1", "--engine", "process", "--workers", "1", "--out", "s"],
                ["regress", "--add", "c.yaml"],
                ["regress", "c.yaml", *_format(draws, "table", "json", "junit", "github")],
                ["shrink", "c.yaml", "--seed", "0", "--max-time", "1s", *draws.choice(([], ["-q"]))],
                [*run[:2], "--seeds", "0..1000000000000", "--max-time", "300ms", "-j", "1", "--no-results"],
            )
        )

    def _history(self, folder: Path, draws: Random) -> list[str]:
        operations = _operations()
        draws.shuffle(operations) if draws.random() < 0.1 else None
        if draws.random() < 0.7:
            operations = renamed(operations, _names(draws, (*_SENDS, *_SENDS, "t-0")))
        else:
            operations = poisoned(operations, draws)
        name = draws.choice(("h.jsonl", "h.jsonl", "h.edn", "h.jsonl.gz", "h.json"))
        lines = [_edn(operation) if name == "h.edn" else _json(operation, draws) for operation in operations]
        content = (
            f"[{' '.join(lines)}]" if name == "h.edn" and draws.random() < 0.3 else "\n".join(lines) + "\n"
        )
        data = content.encode("utf-8", "surrogatepass")
        (folder / name).write_bytes(gzip.compress(data) if name.endswith("gz") else data)
        settings = draws.choice(
            ([], [], ["--set", "acks=1"], ["--set", f"{text(draws)}=1".replace("\0", "")])
        )
        return [
            "check",
            name,
            *settings,
            *draws.choice(([], ["-v"])),
            *_format(draws, "table", "json", "junit", "github"),
        ]

    def _large_history(self, folder: Path, draws: Random) -> list[str]:
        shape, kind = draws.choice(list(large_histories.SHAPES)), draws.choice(large_histories.KINDS)
        large_histories.write(folder / f"h.{kind}", shape, kind, draws.choice((1 << 18, 1 << 20, 3 << 20)))
        verbose = draws.choice(([], ["-v"]))
        return ["check", f"h.{kind}", *verbose, *_format(draws, "table", "json", "junit", "github")]

    def _logged_records(self, folder: Path, draws: Random) -> list[str]:
        names = _names(draws, ("order-1", "order-2", "orders", "TIMED_OUT", "producer-1"))
        sent = [
            {
                "value": "order-1",
                "topic": "orders",
                "partition": 0,
                "offset": 0,
                "acked": True,
                "producer": "producer-1",
            },
            {
                "value": "order-2",
                "topic": "orders",
                "partition": 0,
                "offset": 1,
                "ts": 1_700_000_000_000,
                "acked": True,
            },
            {"value": "order-3", "acked": False, "error": "TIMED_OUT", "key": "order-1"},
        ]
        read = [
            {"topic": "orders", "partition": 0, "offset": 0, "key": None, "payload": "order-1"},
            {"topic": "orders", "partition": 0, "offset": 4, "key": "order-1", "payload": "order-1"},
        ]
        if draws.random() < 0.5:
            at = {"topic": "orders", "partition": 0, "offset": 1}
            start = {"timestamp": 1, "name": "startup_complete"}
            sent = [start, {"timestamp": 2, "name": "producer_send_success", "key": None, "value": "1", **at}]
            read = [
                {"timestamp": 3, "name": "partitions_assigned", "partitions": [at]},
                {"timestamp": 4, "name": "record_data", "key": None, "value": "order-1", **at},
                {"timestamp": 5, "name": "records_consumed", "count": 1, "partitions": [{**at, "count": 1}]},
            ]
        for name, records in (("sent.jsonl", sent), ("read.jsonl", read)):
            changed = renamed(records, names) if draws.random() < 0.7 else poisoned(records, draws)
            lines = "".join(f"{_json(record, draws)}\n" for record in changed)
            (folder / name).write_text(lines, encoding="utf-8", errors="surrogatepass", newline="")
        return [
            "check",
            "--sent",
            "sent.jsonl",
            "--read",
            "read.jsonl",
            *_format(draws, "table", "json", "junit", "github"),
        ]

    def _run_folder(self, folder: Path, draws: Random) -> list[str]:
        run = folder / "results" / "small" / "run"
        shutil.copytree(self._intact / "results" / "small" / "run", run)
        if draws.random() < 0.3:
            damage(run, draws)
        else:
            names = _names(
                draws,
                ("p", "c", "t-0", "t", "small", "g", "r0", "p:1", "lost-write", "broker_crash", "m0", "base"),
            )
            is_renamed = draws.random() < 0.6
            for path in run.glob("*.json*"):
                documents = [json.loads(line) for line in _documents(path)]
                if is_renamed:
                    documents = [renamed(document, names) for document in documents]
                else:
                    for _ in range(3):
                        number = draws.randrange(len(documents)) if documents else 0
                        documents[number : number + 1] = [
                            poisoned(document, draws) for document in documents[number : number + 1]
                        ]
                lines = "".join(f"{_json(document, draws)}\n" for document in documents)
                path.write_text(lines, encoding="utf-8", errors="surrogatepass", newline="")
        intact = str(self._intact / "results" / "small" / "run")
        return draws.choice(
            (
                ["check", str(run), *_format(draws, "table", "json", "junit", "github")],
                ["diff", str(run), *_format(draws, "table", "json"), *draws.choice(([], ["--stages"]))],
                ["diff", str(run), intact],
                [
                    "trace",
                    str(run),
                    *draws.choice(([], ["--all"])),
                    *_format(draws, "table", "json", "mermaid"),
                ],
                ["trace", str(run), "--around", "1", *_format(draws, "table", "json", "mermaid")],
                ["trace", str(run), "--format", "html", "-o", draws.choice(("page.html", "-"))],
                ["replay", str(run), *_format(draws, "table", "json", "junit", "github")],
                ["clean", "--keep", "0"],
            )
        )

    def _sweep_folder(self, folder: Path, draws: Random) -> list[str]:
        sweep = folder / "results" / "sweep"
        shutil.copytree(self._intact / "results" / "sweep", sweep)
        if draws.random() < 0.3:
            damage(sweep, draws)
        else:
            _poison_rows(sweep, draws)
        verbose, shape = draws.choice(([], ["-v"])), _format(draws, "table", "json", "junit", "github")
        if draws.random() < 0.4:
            return ["sweep", "--report", str(sweep), *verbose, *shape]
        shutil.copy(self._intact / "small.yaml", folder)
        # Some runs may be missing from the folder.
        for path in sorted(sweep.rglob("*.parquet")):
            if draws.random() < 0.3:
                path.unlink()
        shrink = draws.choice(([], ["--shrink", "--shrink-time", "1s"]))
        return [*SWEEP, "--out", str(sweep), "--resume", *shrink, *verbose, *shape]

    def _cluster_file(self, folder: Path, draws: Random) -> list[str]:
        _write_yaml(folder / "cluster.yaml", poisoned(json.loads(json.dumps(CLUSTER)), draws), draws)
        return self._with_cluster(folder, draws)

    def _cluster_answers(self, folder: Path, draws: Random) -> list[str]:
        self._broker.answer_by(draws.randrange(2**32))
        document = json.loads(json.dumps(CLUSTER))
        document["bootstrap"] = [f"127.0.0.1:{self._broker.port}"]
        del document["brokers"]
        document["commands"] = draws.choice(
            (
                {},
                {"kill": "echo {host}", "start": "echo {rack}"},
                {"kill": ["echo", "{broker}"], "start": "true"},
            )
        )
        document["allow"] = "topics"
        _write_yaml(folder / "cluster.yaml", document, draws)
        return self._with_cluster(folder, draws)

    def _with_cluster(self, folder: Path, draws: Random) -> list[str]:
        (folder / "calm.yaml").write_text(json.dumps(_QUIET_CAMPAIGN), encoding="utf-8")
        return draws.choice(
            (
                ["target", "check", "cluster.yaml", "calm.yaml"],
                ["target", "check", "cluster.yaml", "calm.yaml"],
                ["new", "ours", "--from", "cluster.yaml"],
                [
                    "run",
                    "calm.yaml",
                    "--target",
                    "cluster.yaml",
                    *_format(draws, "table", "json", "junit", "github"),
                ],
                ["heal", "cluster.yaml"],
            )
        )

    def _arguments(self, folder: Path, draws: Random) -> list[str]:
        _write_yaml(folder / "c.yaml", _QUIET_CAMPAIGN, draws)
        word = text(draws).replace("\0", "").replace("/", "") or "-"
        word = word.encode(
            "utf-8", "surrogateescape" if "\udfff" not in word and "\ud800" not in word else "replace"
        ).decode("utf-8", "replace")
        return draws.choice(
            (
                ["explain", word],
                ["run", word],
                ["list", word],
                ["diff", word],
                ["trace", word],
                ["run", "c.yaml", "--no-results", "--variant", word],
                ["run", "c.yaml", "--no-results", "--set", word],
                ["run", "c.yaml", "--no-results", "--format", word],
                ["run", "c.yaml", "--results", f"r-{word[:50]}"],
                ["run", "c.yaml", "--no-results", "-o", f"o-{word[:50]}"],
                ["kafka", "get", word],
                ["new", word],
                ["completion", word],
                ["check", word],
                [word],
            )
        )


def _poison_rows(sweep: Path, draws: Random) -> None:
    """Put hostile texts into the rows of a sweep."""
    names = draws.sample(
        _FREE_COLUMNS if draws.random() < 0.8 else _CONSISTENT_COLUMNS, draws.randrange(1, 4)
    )
    # Arrow has no lone surrogates. Rows must agree on the names of failures.
    suffixes = {name: text(draws).encode("utf-8", "replace").decode() for name in names}
    is_error = draws.random() < 0.3
    for path in sorted(sweep.rglob("*.parquet")):
        table = pq.ParquetFile(path).read()
        rows = table.to_pylist()
        for row in rows:
            if is_error and draws.random() < 0.5:
                row |= {
                    "verdict": "error",
                    "outcome": "unexpected",
                    "error": "an error",
                    "chain": "somewhere",
                }
            for name in names:
                if name in row:
                    row[name] = _poisoned_cell(row[name], suffixes[name])
        changed = pa.Table.from_pylist(rows, schema=table.schema)
        pq.write_table(changed.replace_schema_metadata(table.schema.metadata), path)


def _poisoned_cell(value: Any, suffix: str) -> Any:
    if isinstance(value, list | tuple):
        return type(value)(_poisoned_cell(item, suffix) for item in value)
    if isinstance(value, dict):
        return {key: _poisoned_cell(item, suffix) for key, item in value.items()}
    return f"{value or ''}{suffix}" if value is None or isinstance(value, str) else value


def _documents(path: Path) -> list[str]:
    content = path.read_text(encoding="utf-8")
    return content.splitlines() if path.suffix == ".jsonl" else [content]


def _format(draws: Random, *formats: str) -> list[str]:
    return ["--format", draws.choice(formats)]


def _names(draws: Random, names: tuple[str, ...]) -> Callable[[str], str]:
    """Return a function that replaces some names by distinct hostile ones."""
    chosen = draws.sample(names, draws.randrange(1, min(5, len(names) + 1)))
    new = {name: draws.choice((f"{name}{text(draws)}", f"{text(draws)}{name}")) for name in chosen}
    return lambda name: new.get(name, name)


def _write_yaml(path: Path, document: Any, draws: Random) -> None:
    """Write JSON, which is also YAML, or YAML as PyYAML folds and quotes it."""
    shown = json.dumps(document, indent=draws.choice((None, 2)), ensure_ascii=draws.random() < 0.5)
    if draws.random() < 0.4:
        with contextlib.suppress(yaml.YAMLError):
            shown = yaml.safe_dump(
                document, allow_unicode=True, default_style=draws.choice((None, None, "|", '"'))
            )
    path.write_text(shown, encoding="utf-8", errors="surrogatepass", newline="")


def _json(document: Any, draws: Random) -> str:
    return json.dumps(document, ensure_ascii=draws.random() < 0.5)


def _edn(value: Any) -> str:
    if isinstance(value, dict):
        return "{" + ", ".join(f"{_edn_key(key)} {_edn_of(key, item)}" for key, item in value.items()) + "}"
    if isinstance(value, list):
        return "[" + " ".join(map(_edn, value)) + "]"
    if isinstance(value, str):
        return json.dumps(value, ensure_ascii=False)
    return "nil" if value is None else str(value).lower()


def _edn_key(key: str) -> str:
    return f":{key}" if key.isalpha() and key.isascii() else json.dumps(key, ensure_ascii=False)


def _edn_of(key: str, value: Any) -> str:
    if key in ("type", "f") and isinstance(value, str) and value.isalpha():
        return f":{value}"
    if key == "value" and isinstance(value, list):
        parts = [
            f"[:{item[0]} {' '.join(map(_edn, item[1:]))}]"
            if isinstance(item, list) and item and item[0] in ("send", "poll")
            else _edn(item)
            for item in value
        ]
        return f"[{' '.join(parts)}]"
    return _edn(value)


def _operations() -> list[dict[str, Any]]:
    """Return a history that breaks most promises, so that every kind of finding shows values."""
    operations: list[dict[str, Any]] = []

    def add(process: int, f: str, invoked: list[Any], completed: list[Any], type_: str = "ok") -> None:
        for kind, value in (("invoke", invoked), (type_, completed)):
            operations.append(
                {
                    "index": len(operations),
                    "process": process,
                    "type": kind,
                    "f": f,
                    "value": value,
                    "time": 10**6 * len(operations),
                }
            )

    def send(value: str, offset: int | None, type_: str = "ok", process: int = 0) -> None:
        add(
            process,
            "send",
            [["send", "t-0", value]],
            [["send", "t-0", value if offset is None else [offset, value]]],
            type_,
        )

    def poll(*records: list[Any], process: int = 1) -> None:
        add(process, "poll", [["poll"]], [["poll", {"t-0": list(records)}]])

    for number, value in enumerate(("first", "lost", "reread", "dup", "reordered")):
        send(value, number)
    send("failed", None, "fail")
    send("unknown", None, "info")
    send("last", 9)
    add(
        2,
        "txn",
        [["send", "t-0", "aborted"], ["send", "t-0", "torn"]],
        [["send", "t-0", [10, "aborted"]], ["send", "t-0", [11, "torn"]]],
        "fail",
    )
    add(1, "assign", ["t-0"], ["t-0"])
    poll([0, "first"], [4, "reordered"], [2, "reread"])
    poll([3, "dup"], [5, "dup"], [6, "failed"])
    poll([2, "other"], [9, "last"], [10, "aborted"])
    add(3, "assign", ["t-0"], ["t-0"])
    poll([0, "first"], [2, "reread"], [9, "last"], process=3)
    poll([4, "reordered"], [1, "nobody"], process=3)
    send("late", 2, process=4)
    return operations
