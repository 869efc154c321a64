"""Finds the cluster file and the fault models that the arguments of a command mean."""

import hashlib
import re
import shlex
from collections.abc import Sequence
from pathlib import Path
from typing import Final

import typer

from harrow.campaigns.assess.fault_model import FaultModel
from harrow.campaigns.assess.few_topics import few_topics, only_topic
from harrow.campaigns.language.literals import duration_text
from harrow.campaigns.language.loader import check_cluster_file, plan_without_work
from harrow.campaigns.language.spelling import CLUSTER_OPTION, counted, quoted, suggestion
from harrow.campaigns.sources.cluster_import import import_cluster
from harrow.campaigns.sources.description import Fate
from harrow.campaigns.storage.whole_file import whole_file
from harrow.cli.cluster_sources import is_source, sources_of_cluster
from harrow.cli.requests.request import CommandRequest
from harrow.cli.session import note

_FOLDER: Final = "clusters"
_UNUSUAL: Final = re.compile(r"[^A-Za-z0-9._-]+")


def cluster_file(request: CommandRequest, sources: Sequence[Path], results: Path) -> Path:
    """Return the cluster file that *sources* are, or the one that is imported from them.

    An imported cluster gets a file in *results*, so that users can run its trials again.

    Raises:
        CampaignError: A source is neither a cluster file nor anything that harrow can import.

    """
    if len(sources) == 1 and sources[0].is_file() and not is_source(sources[0]):
        check_cluster_file(sources[0])
        return sources[0]
    read = sources_of_cluster(sources)
    for line in read.notes:
        note(request, line)
    imported = import_cluster(read.descriptions)
    digest = hashlib.sha256(imported.text.encode()).hexdigest()[:8]
    stem = _UNUSUAL.sub("-", sources[0].stem).strip("-.") or "cluster"
    path = results / _FOLDER / f"{stem}-{digest}.yaml"
    path.parent.mkdir(parents=True, exist_ok=True)
    with whole_file(path) as stream:
        stream.write(imported.text)
    missing = sum(line.fate == Fate.LACKING for line in imported.lines)
    note(request, f"imported to {path}")
    if imported.assumed_brokers is not None:
        assumed = f"the file of one broker stands for {imported.assumed_brokers}"
        note(request, f"{assumed}: `harrow import {shlex.join(map(str, sources))} --brokers N` makes N")
    if missing:
        names = shlex.join(map(str, sources))
        note(request, f"the model lacks {missing} of its settings: `harrow import {names}` lists them")
    return path


def source_of(sources: Sequence[Path], cluster: Path) -> str:
    """Return the names of the user's files if *cluster* was imported from them; else nothing."""
    return "" if cluster in sources else ", ".join(map(str, sources))


def overrides_of(request: CommandRequest, cluster: Path, overrides: Sequence[str]) -> tuple[str, ...]:
    """Return the options that put a fault model on a cluster, with a few topics if it has many.

    Notes say if only some topics of the cluster are tried, or one that the cluster does not name,
    and what a flush takes if the cluster does not say it.

    Raises:
        CampaignError: An option has mistakes.

    """
    options = (f"{CLUSTER_OPTION}={cluster}", *overrides)
    disk = plan_without_work(options).cluster.disk
    if disk.kind is None and disk.flush_us is None:
        flush_us, _ = disk.costs
        note(request, f"no kind of disk is named: a flush takes {duration_text(flush_us)}, as on an SSD")
    topic = only_topic(options)
    if topic is not None:
        replicas = counted(topic.replication_factor, "replica")
        note(request, f"no topics are named: harrow tries one with a partition and {replicas}")
    few = few_topics(options)
    if few is None:
        return options
    note(request, str(few))
    return (*options, few.option)


def fault_model_named(name: str, models: Sequence[FaultModel], option: str) -> FaultModel:
    """Return the fault model that a value of an option means: its title, name or file.

    Raises:
        typer.BadParameter: There is none.

    """
    for model in models:
        if name in (model.title, model.name, model.argument):
            return model
    hint = suggestion(name, [each for model in models for each in (model.title, model.name)])
    raise typer.BadParameter(f"no fault model is called {quoted(name)}{hint}", param_hint=option)
