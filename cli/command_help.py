"""The examples in the help of each command."""

from typing import Final

EXAMPLES: Final = {
    "assess": (
        ("harrow assess shop.yaml", "see what your settings survive"),
        ("harrow assess shop.yaml --set acks=1", "see what another setting would survive"),
        ("harrow assess shop.yaml --fault-model ours.yaml", "add a fault model of your own"),
    ),
    "advise": (
        ('harrow advise shop.yaml --survive "one broker"', "find the cheapest settings that survive"),
        ('harrow advise shop.yaml --survive rack-power --outage "< 10s"', "and that are never down for long"),
        ("harrow advise shop.yaml --survive all-power --change acks", "change no other setting"),
    ),
    "run": (
        ("harrow run loss-by-hw-truncation --verbose", "run a library campaign, and print all details"),
        ("harrow run unclean-election --watch", "watch the cluster while the run is played back"),
        ("harrow run mine.yaml --seeds 0..200", "run your own campaign with 200 seeds"),
        ("harrow run swarm --seed 7 --set acks=1", "change a setting, the release or a field"),
        ("harrow run mine.yaml --cluster shop.yaml", "run on a cluster file: your brokers and settings"),
        ("harrow run ack-lost --target kafka:2.4.1", "run on real brokers, which harrow starts"),
        (
            "harrow run mine.yaml --target cluster.yaml",
            "run on your own cluster (docs/how-to/your-cluster.md)",
        ),
        (
            "harrow run campaigns/ --format junit -o report.xml",
            "run a folder of campaigns, and write a JUnit report",
        ),
    ),
    "serve": (
        ("harrow serve any-crash -- pytest tests", "run your tests on a cluster whose brokers crash"),
        ("harrow serve mine.yaml -- ./producer --broker {bootstrap}", "pass the addresses to your program"),
        ("harrow serve shop.yaml --port 9092", "keep a cluster for your clients until Ctrl-C"),
    ),
    "sweep": (
        ("harrow sweep standard --seeds 0..1000", "run a thousand seeds, on all cores or on Spark"),
        ("harrow sweep swarm --seeds 0..500 --vary acks=1,all", "compare two values of a setting"),
        ("harrow sweep swarm --seeds 0..5000 --watch", "watch failures by kind as they arrive"),
        (
            "harrow sweep swarm --seeds 0..1000000 --master spark://host:7077 --resume",
            "continue on a cluster",
        ),
        (
            "harrow sweep --report results/sweep-1f0c35ab-5d07c3e1 --shrink",
            "print a report, and shrink failures",
        ),
        (
            "harrow sweep --report results/sweep-1f0c35ab-5d07c3e1 --format html -o sweep.html",
            "write the report as one page",
        ),
    ),
    "shrink": (
        (
            "harrow shrink mine.yaml --seed 17 -o small.yaml",
            "find the smallest campaign that fails in the same way",
        ),
        ("harrow shrink acks-0 --seed 0 --rule lost-write", "shrink an anomaly that the settings permit"),
    ),
    "replay": (
        ("harrow replay results/latest", "replay the newest run"),
        ("harrow replay 1f0c35ab-7", "replay a run by its id, or by the beginning of the id"),
    ),
    "diff": (
        ("harrow diff results/latest", "show the replicas' logs at the end of the newest run"),
        ("harrow diff results/latest --at 12.5s", "show them at another moment"),
        ("harrow diff 1f0c35ab-7 1f0c35ab-8", "show where two runs diverge, and how they ended"),
        ("harrow diff 3.9 4.0", "show what changed from one release to another"),
    ),
    "trace": (
        ("harrow trace results/latest --around lost-write", "show what led to a finding"),
        ("harrow trace results/latest --record m1", "follow one record, from its send to its end"),
        ("harrow trace results/latest --from 25s --to 41s --all", "show every event between two times"),
        ("harrow trace results/latest --format html -o run.html", "write one page to scroll and filter"),
    ),
    "regress": (
        ("harrow regress", "run the corpus in tests/regressions"),
        ("harrow regress --format github", "annotate the files in GitHub Actions"),
        ("harrow regress --add mine.yaml --seed 17", "keep a failure as a regression test"),
    ),
    "check": (
        ("harrow check results/latest", "judge the history of a run"),
        ("harrow check history.jsonl.gz --set acks=1", "judge your own cluster, with its settings"),
        ("harrow check history.jsonl --allow duplicate", "permit one anomaly"),
    ),
    "import": (
        ("harrow import server.properties -o mine.yaml", "three brokers with these settings"),
        (
            "harrow import mine/*.properties --kafka 3.9",
            "a broker for each file, and the settings of clients",
        ),
        (
            "harrow import strimzi/ --format json",
            "the resources of Strimzi in a folder, and the lists as JSON",
        ),
    ),
    "validate": (
        ("harrow validate mine.yaml", "check one file"),
        ("harrow validate campaigns/ --format github", "check a folder, and annotate it in GitHub Actions"),
    ),
    "list": (
        ("harrow list faults", "list what can go wrong"),
        ("harrow list campaigns", "list the library"),
        ("harrow list settings --format json", "list settings for a program"),
    ),
    "explain": (
        ("harrow explain broker_crash", "explain a fault, with all its fields"),
        ("harrow explain lost-write", "explain a rule, and which settings promise or permit it"),
        ("harrow explain min.insync.replicas", "explain a setting, with the default of each release"),
    ),
    "new": (
        ("harrow new my-first", "write my-first.yaml"),
        ("harrow new ours --from cluster.yaml", "describe your cluster, to run it on the model"),
    ),
    "schema": (
        ("harrow schema > campaign.schema.json", "for the YAML support of an editor"),
        ("harrow schema cluster > cluster.schema.json", "the same for cluster files"),
    ),
    "conform": (
        ("harrow conform ack-lost --target kafka:2.4.1", "check that real brokers do what the model allows"),
        ("harrow conform mine.yaml --target kafka:4.3.1 --times 5", "run five times on brokers"),
        (
            "harrow conform --requests 1000 --target kafka:3.9.2-zookeeper",
            "compare responses to single requests",
        ),
    ),
    "target": (
        ("harrow target check cluster.yaml", "list what can run on your cluster, and change nothing"),
        ("harrow target schema > cluster.schema.json", "for the YAML support of an editor"),
    ),
    "heal": (
        ("harrow heal", "undo the faults that killed runs left on all clusters"),
        ("harrow heal cluster.yaml", "undo them on one cluster"),
    ),
    "kafka": (
        ("harrow kafka get 3.9.2", "download a release with Maven"),
        ("harrow kafka get 2.4.1 --repository https://maven.example.org", "download it without Maven"),
        ("harrow kafka list", "list the releases, and which of them are downloaded"),
    ),
    "clean": (
        ("harrow clean --dry-run", "show what would be removed"),
        ("harrow clean --keep 5", "keep five runs of each campaign"),
    ),
}
"""Example command lines for each command, each with what it does."""


def epilog(command: str) -> str:
    """Return the text at the end of the help of a command."""
    # Click keeps the lines of a paragraph that begins with \b.
    lines = [line for typed, meaning in EXAMPLES[command] for line in (f"  {typed}", f"      {meaning}")]
    return "\n".join(["\b", "Examples:", *lines])
