"""Commands of pages that tests do not run, or only in a smaller form, with reasons."""

import re
import shlex
import sys
from typing import Final

from tests.plain_environment import ROOT

NOT_RUN: Final = {
    "make test": "these are the tests",
    "python3 -m venv .venv && HARROW_PURE=1 .venv/bin/pip install '.[sweep]'": "would install; CI does so by make",
    "source .venv/bin/activate": "is about what the line before makes",
    "pip install 'kafka-harrow[hypothesis]'": "would install",
    "gh pr comment --body-file results/latest/report.md": "would speak to GitHub",
    "docker build --tag harrow .": "needs a Docker daemon; tests/packaging/test_ci_files.py looks at the file",
    'docker run --rm --volume "$PWD:/work" --user "$(id -u):$(id -g)" harrow run campaigns/': "see docker build",
    "harrow run loss-by-hw-truncation --variant base --watch": "needs a terminal; test_watch_snapshots.py has it",
    "harrow kafka get 4.4.0": "would download Kafka",
    "harrow serve orders.yaml --control 0 -- mvn test": "needs Maven; tests/examples/test_snippets.py has it",
    "harrow serve hw-truncation.yaml -- python hw_truncation.py": "takes long; test_known_flaws.py has it",
    **dict.fromkeys(
        (
            "SERVICE=payments_with_bug.py pytest",
            "harrow serve ../orders.yaml --control 0 -- mvn test -Dsettings=payments-with-bug.properties",
            "harrow serve ../orders.yaml --control 0 -- go test -count=1 -tags=bug ./...",
        ),
        "belongs to examples/; tests/examples/test_services.py runs it",
    ),
    **dict.fromkeys(
        (
            "java -cp 'kafka_2.13-4.4.0/libs/*' PartitionFlaws.java",
            "python reproduce.py re-elected-leader kafka_2.13-4.4.0/libs /tmp/re-elected",
            "python reproduce.py reverted-log-start kafka_2.13-4.4.0/libs /tmp/reverted",
            "python stuck_isr.py kafka_2.13-3.9.2/libs /tmp/stuck",
        ),
        "needs the jars of Kafka; tests/live/test_findings.py runs it",
    ),
    "harrow check s3://bucket/week-12 --engine spark --master spark://host:7077": "test_spark_histories.py has it",
    **dict.fromkeys(
        (
            "python3 -m venv environment",
            "environment/bin/pip install 'kafka-harrow[spark]' venv-pack",
            "environment/bin/venv-pack --output environment.tar.gz",
        ),
        "would install",
    ),
    **dict.fromkeys(
        (
            "pip install 'kafka-harrow[sweep]' 'databricks-connect==17.3.*'",
            "databricks jobs submit --json @job.json",
            "harrow sweep swarm --seeds 0..2000 --remote 'sc://WORKSPACE:443/;token=TOKEN;x-databricks-cluster-id=CLUSTER' --out s3://bucket/sweeps/swarm",
            "aws s3 cp environment.tar.gz s3://bucket/environment.tar.gz",
            "aws s3 cp $(harrow --spark-submit-file) s3://bucket/harrow_on_spark.py",
            "aws emr add-steps --cluster-id CLUSTER --steps file://steps.json",
            "aws emr-serverless start-job-run --application-id APPLICATION --execution-role-arn ROLE --job-driver file://driver.json",
            "docker build --tag REGISTRY/harrow-on-spark . && docker push REGISTRY/harrow-on-spark",
            "kubectl create serviceaccount spark",
            "kubectl create rolebinding spark --clusterrole=edit --serviceaccount=default:spark",
        ),
        "needs a service; the page says that no test runs it",
    ),
    "harrow --install-completion": "would change the shell's start-up file; test_completion.py has it",
}
"""Commands that no test runs."""

NEEDS_BROKERS: Final = "--target kafka:"
"""Marks commands that start real brokers for minutes; tests/live covers them."""

NEEDS_SPARK: Final = ("spark-submit --", "sc://host", "start-connect-server.sh", "sweeps/variable")
"""Marks commands that need a cluster; tests/spark/test_spark_pages.py runs them."""

SMALLER: Final = (
    # The command of the Makefile after it has set up a virtual environment.
    ("make demo", f"harrow run {shlex.quote(str(ROOT / 'campaigns' / 'library'))}"),
    ("--seeds 0..2000", "--engine process --workers 1 --seeds 0..10"),
    ("--seeds 0..200", "--seeds 0..10"),
    ("--seeds 0..4000", "--engine process --workers 1 --seeds 0..12"),
    ("s3://bucket/sweeps/swarm", "sweeps/swarm"),
    ("--harrow-seeds 0..200 --harrow-set acks=1 -n auto", "--harrow-seeds 0..2 --harrow-set acks=1"),
    ("--max-examples 500", "--max-examples 5"),
    (
        '--survive "one broker" --survive "power of one rack"',
        '--survive "one broker" --change unclean.leader.election.enable --runs 1',
    ),
)
"""Parts of commands with their smaller replacements; fewer seeds test the page as well."""

_LOSS: Final = (ROOT / "campaigns" / "library" / "loss-by-hw-truncation.yaml").read_text(encoding="utf-8")

_HISTORY: Final = (
    """{"index": 0, "process": 0, "type": "invoke", "f": "send", "value": [["send", "t-0", "m0"]], "time": 1}\n""",
    """{"index": 1, "process": 0, "type": "ok", "f": "send", "value": [["send", "t-0", [0, "m0"]]], "time": 2}\n""",
    """{"index": 2, "process": 1, "type": "ok", "f": "poll", "value": [["poll", {"t-0": [[0, "m0"]]}]], "time": 3}\n""",
)

_SERVED: Final = re.search(
    r"```yaml\n(name: crash.*?)```",
    (ROOT / "docs" / "how-to" / "serve.md").read_text(encoding="utf-8"),
    re.DOTALL,
)
_SERVICE: Final = f"""\
import os
import sys
import time
sys.path += {sys.path}
from kafka import KafkaProducer

with KafkaProducer(bootstrap_servers=os.environ["KAFKA_BOOTSTRAP_SERVERS"]) as producer:
    # It outlives the start of the fault.
    for _ in range(20):
        producer.send("orders", b"one")
        time.sleep(0.1)
    producer.flush(60)
"""

PREPARED: Final[dict[str, dict[str, str]]] = {
    "docs/how-to/serve.md": {"crash.yaml": _SERVED[1] if _SERVED else "", "my_service.py": _SERVICE},
    # The page uses a failing campaign, here one with a wrong expectation.
    "docs/how-to/pytest.md": {
        "campaigns/loss.yaml": re.sub(
            r"^expect:\n.*?(?=^variants)", "expect: {verdict: held}\n", _LOSS, flags=re.DOTALL | re.MULTILINE
        ).replace("name: loss-by-hw-truncation", "name: loss")
    },
    "docs/how-to/history.md": {"one.jsonl": _HISTORY[0] + _HISTORY[2], "two.jsonl": _HISTORY[1]},
}
"""Files that a page presupposes, by page and name."""

TYPED: Final = ("README.md", "docs/get-started/first-campaign.md")
"""Pages that tests/packaging/test_first_hour.py runs with only harrow installed."""
