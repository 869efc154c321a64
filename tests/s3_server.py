"""An object store for tests: moto's S3 server, in a process of its own, with one bucket."""

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from tests.plain_environment import plain_environment

BUCKET = "bucket"
_SERVER = """
import sys
from moto.server import ThreadedMotoServer
server = ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
server.start()
print("http://%s:%d" % server.get_host_and_port(), flush=True)
sys.stdin.read()
"""


@contextmanager
def s3_server() -> Iterator[dict[str, str]]:
    """Run a server, and yield the environment variables with which a process finds it."""
    pytest.importorskip("moto")
    with subprocess.Popen(
        [sys.executable, "-c", _SERVER],
        env=plain_environment(),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    ) as process:
        assert process.stdout is not None
        lines = iter(process.stdout)
        address = next(line.strip() for line in lines if line.startswith("http"))
        credentials = {
            "AWS_ACCESS_KEY_ID": "key",
            "AWS_SECRET_ACCESS_KEY": "secret",
            "AWS_REGION": "us-east-1",
        }
        environment = {"AWS_ENDPOINT_URL": address, "AWS_EC2_METADATA_DISABLED": "true", **credentials}
        try:
            script = (
                "from pyarrow.fs import FileSystem\n"
                f"system, bucket = FileSystem.from_uri('s3://{BUCKET}/?allow_bucket_creation=true')\n"
                "system.create_dir(bucket)"
            )
            subprocess.run(
                [sys.executable, "-c", script], env={**plain_environment(), **environment}, check=True
            )
            yield environment
        finally:
            process.kill()
