"""Stand-ins for shared storage, each in a process of its own.

A test is skipped where its stand-in is missing.

================  ================================================================================
Google            ``pip install gcp-storage-emulator``
Azure             ``npm install --global azurite``
HDFS              ``pip install fsspec hdfs-native``, Java, PySpark's libraries of Hadoop, and the
                  library of the same release that `_MINICLUSTER` names, from Maven
================  ================================================================================
"""

import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from typing import Final, NamedTuple

import pyarrow.fs
import pytest

from tests.plain_environment import plain_environment

_MINICLUSTER: Final = "org/apache/hadoop/hadoop-client-minicluster"
_AZURITE_KEY: Final = (
    "Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/K1SZFPTOtr/KBHBeksoGMGw=="
)
"""The published key of Azurite's only account. It protects nothing."""

_GOOGLE: Final = """
import sys, time
from gcp_storage_emulator.server import create_server
server = create_server("127.0.0.1", 0, in_memory=True, default_bucket="bucket")
server.start()
print("port", server._api._httpd.server_port, flush=True)
sys.stdin.read()
"""
_HADOOP: Final = """
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.hdfs.MiniDFSCluster;

public class Hdfs {
    public static void main(String[] arguments) throws Exception {
        Configuration configuration = new Configuration();
        configuration.set(MiniDFSCluster.HDFS_MINIDFS_BASEDIR, arguments[0]);
        MiniDFSCluster cluster = new MiniDFSCluster.Builder(configuration).numDataNodes(1).build();
        cluster.waitActive();
        System.out.println("port " + cluster.getNameNodePort());
        while (System.in.read() >= 0) { }
        cluster.shutdown();
    }
}
"""


class StorageServer(NamedTuple):
    """A running stand-in: the URI of its root, options that follow a URI, and variables."""

    uri: str
    options: str = ""
    variables: dict[str, str] = {}  # noqa: RUF012 - never changed

    def uri_of(self, path: str) -> str:
        return f"{self.uri}/{path}{self.options}"


@contextmanager
def google_server() -> Iterator[StorageServer]:
    pytest.importorskip("gcp_storage_emulator")
    with _server([sys.executable, "-c", _GOOGLE], "port ([0-9]+)") as port:
        yield StorageServer("gs://anonymous@bucket", f"?scheme=http&endpoint_override=127.0.0.1:{port}")


@contextmanager
def azure_server() -> Iterator[StorageServer]:
    azurite = shutil.which("azurite-blob")
    if not hasattr(pyarrow.fs, "AzureFileSystem"):
        pytest.skip("pyarrow was built without Azure")
    if azurite is None:
        pytest.skip("azurite is not installed")
    options = (
        "--inMemoryPersistence --disableTelemetry --skipApiVersionCheck --blobHost 127.0.0.1 --blobPort 0"
    )
    with _server([azurite, *options.split()], "listens on http://127.0.0.1:([0-9]+)") as port:
        root = f"abfs://devstoreaccount1@127.0.0.1:{port}/bucket"
        server = StorageServer(root, "?enable_tls=false", {"AZURE_STORAGE_KEY": _AZURITE_KEY})
        places = dict.fromkeys(("blob_storage_authority", "dfs_storage_authority"), f"127.0.0.1:{port}")
        schemes = dict.fromkeys(("blob_storage_scheme", "dfs_storage_scheme"), "http")
        system = pyarrow.fs.AzureFileSystem("devstoreaccount1", account_key=_AZURITE_KEY, **places, **schemes)
        system.create_dir("bucket")
        yield server


@contextmanager
def hdfs_server(folder: Path) -> Iterator[StorageServer]:
    """Run a cluster of HDFS, which keeps its files in *folder*."""
    for name in ("hdfs_native", "pyspark"):
        pytest.importorskip(name)
    spec = find_spec("pyspark")
    assert spec is not None
    assert spec.origin is not None
    jars = Path(spec.origin).parent / "jars"
    (client,) = jars.glob("hadoop-client-api-*.jar")
    release = client.stem.rpartition("-")[2]
    cluster = (
        Path.home() / ".m2/repository" / _MINICLUSTER / release / f"hadoop-client-minicluster-{release}.jar"
    )
    if not cluster.exists() or shutil.which("java") is None:
        pytest.skip(f"mvn dependency:get -Dartifact=org.apache.hadoop:hadoop-client-minicluster:{release}")
    source = folder / "Hdfs.java"
    source.write_text(_HADOOP, encoding="utf-8")
    command = ["java", "-cp", f"{cluster}:{jars}/*", str(source), str(folder / "hdfs")]
    with _server(command, "^port ([0-9]+)") as port:
        yield StorageServer(f"hdfs://localhost:{port}")


@contextmanager
def _server(command: list[str], pattern: str) -> Iterator[int]:
    """Run a server, and yield the port that it prints."""
    with subprocess.Popen(
        command,
        env=plain_environment(),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    ) as process:
        try:
            assert process.stdout is not None
            found = (re.search(pattern, line) for line in process.stdout)
            match = next((match for match in found if match is not None), None)
            assert match is not None, f"{command[0]} did not start"
            yield int(match[1])
        finally:
            process.kill()
