"""Starts a served cluster in a process of its own, for tests and other programs in Python."""

import json
import subprocess
import sys
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import field
from http import HTTPStatus
from http.client import HTTPConnection, HTTPException
from pathlib import Path
from tempfile import TemporaryDirectory
from threading import Thread
from types import MappingProxyType, TracebackType
from typing import IO, Any, Final, Self
from urllib.parse import urlsplit

from harrow.campaigns.language.spelling import quoted
from harrow.cluster_model.lazy_dataclass import dataclass

_PREFIX: Final = "harrow: "
_READY, _CONTROL = "bootstrap.servers", "control"
_INCONCLUSIVE: Final = "inconclusive"
_END_S: Final = 10.0
"""How long a process that no longer answers may take to end, so that its messages are complete."""


class KafkaClusterError(Exception):
    """A cluster cannot be served, or refuses a request; the message says why.

    ``status`` is the status of HTTP if there is one.
    """

    def __init__(self, message: str, status: int | None = None) -> None:
        super().__init__(message)
        self.status = status


class BrokenPromiseError(AssertionError):
    """The judge found a broken promise, or another verdict than the campaign expects."""


@dataclass(frozen=True, kw_only=True)
class ClusterVerdict:
    """What the judge says: ``run`` as ``--format json`` prints it, and what harrow printed."""

    status: str
    is_expected: bool
    report: str = field(repr=False)
    messages: str = field(repr=False)
    run: Mapping[str, Any] = field(repr=False)

    def check(self) -> None:
        """Fail unless the run is as its campaign expects. By default, no promise may be broken.

        A run in which no record was sent is as good as expected: it has broken nothing.

        Raises:
            BrokenPromiseError: The run is not as expected.

        """
        if not self.is_expected and self.status != _INCONCLUSIVE:
            raise BrokenPromiseError(self.report)


class StruckFault:
    """A fault that struck. As a context manager, it ends with its block."""

    def __init__(self, cluster: "KafkaCluster", document: Mapping[str, Any]) -> None:
        self._cluster = cluster
        self.document = document

    def end(self) -> None:
        """End the fault, unless it has ended. A rolling restart ends only by itself."""
        __tracebackhide__ = True
        try:
            self._cluster.request("DELETE", f"/faults/{self.document['id']}")
        except KafkaClusterError as error:
            if error.status not in {HTTPStatus.NOT_FOUND, HTTPStatus.GONE}:
                raise

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.end()


class _PipeReader:
    """Reads what a process writes, so that it never waits for a full pipe."""

    def __init__(self, pipe: IO[str]) -> None:
        self._pipe = pipe
        self._lines: list[str] = []
        self._thread = Thread(target=self._read, daemon=True)
        self._thread.start()

    def _read(self) -> None:
        self._lines.extend(self._pipe)

    def text(self) -> str:
        """Return all that the process has written until it ended."""
        self._thread.join()
        self._pipe.close()
        return "".join(self._lines)


class KafkaCluster:
    """A cluster in a process of its own (`harrow serve`), which clients in any language can use.

    *campaign* is a campaign or a cluster file, or the name of a library campaign. *settings* are
    those of ``--set``. If there are *users*, by name with their passwords, clients must log in with
    SASL/PLAIN as one of them. The process ends with this one, however this one ends.

    Raises:
        KafkaClusterError: The campaign cannot be served.

    """

    def __init__(
        self,
        campaign: str | Path,
        *,
        variant: str | None = None,
        seed: int = 0,
        time_scale: float = 1.0,
        settings: Mapping[str, object] | Iterable[str] = (),
        users: Mapping[str, str] = MappingProxyType({}),
    ) -> None:
        pairs = settings.items() if isinstance(settings, Mapping) else None
        words = settings if pairs is None else [f"{key}={_as_option(value)}" for key, value in pairs]
        self._verdict: ClusterVerdict | None = None
        with _login_options(users) as login:
            self._process = subprocess.Popen(  # noqa: S603 - the command is harrow
                [
                    *(sys.executable, "-m", "harrow", "serve", str(campaign)),
                    *("--control", "0", "--until-eof", "--no-results", "--no-color"),
                    *("--seed", str(seed), "--time-scale", str(time_scale)),
                    *(() if variant is None else ("--variant", variant)),
                    *login,
                    *(part for word in words for part in ("--set", word)),
                ],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                text=True,
                encoding="utf-8",
            )
            self.control_url = ""
            self.bootstrap_servers = ""
            assert self._process.stdout is not None
            assert self._process.stderr is not None
            self._report = _PipeReader(self._process.stdout)
            try:
                self._await_start(self._process.stderr)
            except BaseException:
                self._process.stderr.close()
                self._end()
                raise
        self._messages = _PipeReader(self._process.stderr)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        """End the cluster. If the block has not failed, check the verdict."""
        try:
            if kind is None:
                self.judge().check()
        finally:
            self.close()

    @property
    def pid(self) -> int:
        """The id of the process."""
        return self._process.pid

    def crash(self, broker: int | str, **fields: object) -> StruckFault:
        """Kill a broker, which may be a reference such as ``leader of t-0``.

        It starts again when the fault ends.
        """
        __tracebackhide__ = True
        return self.fault("broker_crash", broker=broker, **fields)

    def pause(self, broker: int | str, **fields: object) -> StruckFault:
        """Pause a broker, as SIGSTOP does, until the fault ends."""
        __tracebackhide__ = True
        return self.fault("broker_pause", broker=broker, **fields)

    def fault(self, name: str, value: object = None, **fields: object) -> StruckFault:
        """Strike with a fault of harrow's catalogue now.

        *fields* are those of the fault. A *value* is a mapping of fields, or the short form.

        Raises:
            KafkaClusterError: There is no such fault, or it finds nothing to act on.

        """
        __tracebackhide__ = True
        faults = self.act({name: fields if value is None else value})
        if len(faults) != 1:
            raise KafkaClusterError(f"{name} struck {len(faults)} times: use `act`")
        return faults[0]

    def act(self, actions: object) -> list[StruckFault]:
        """Take actions, written as after ``do`` in a script. Return the faults that struck."""
        __tracebackhide__ = True
        answer = self.request("POST", "/faults", json.dumps(actions))
        return [StruckFault(self, document) for document in answer["faults"]]

    def end_faults(self) -> None:
        """End all faults, also those of the campaign."""
        __tracebackhide__ = True
        self.request("DELETE", "/faults")

    def state(self) -> dict[str, Any]:
        """Return brokers, leaders, in-sync replicas, offsets, and the faults in force."""
        __tracebackhide__ = True
        return self.request("GET", "/state")

    def judge(self) -> ClusterVerdict:
        """End the cluster, and judge what its clients sent and read.

        Later calls return the same verdict.
        """
        __tracebackhide__ = True
        if self._verdict is None:
            document = self.request("POST", "/judge")
            self._process.wait()
            (run,) = document["runs"]
            self._verdict = ClusterVerdict(
                status=run["verdict"],
                is_expected=run["expected"],
                report=self._report.text(),
                messages=self._messages.text(),
                run=run,
            )
        return self._verdict

    def close(self) -> None:
        """End the process. A cluster that is not judged stays without a verdict."""
        self._end()
        self._messages.text()

    def _end(self) -> None:
        self._process.kill()
        self._process.wait()
        assert self._process.stdin is not None
        self._process.stdin.close()
        self._report.text()

    def request(self, method: str, path: str, body: str | None = None) -> dict[str, Any]:
        """Send a request to the control port, and return the answer.

        Raises:
            KafkaClusterError: The cluster refuses the request, or is gone.

        """
        __tracebackhide__ = True
        if self._verdict is not None:
            raise KafkaClusterError("the cluster has ended, because it was judged", HTTPStatus.GONE)
        place = urlsplit(self.control_url)
        connection = HTTPConnection(str(place.hostname), place.port)
        try:
            connection.request(method, path, None if body is None else body.encode())
            with connection.getresponse() as response:
                answer: dict[str, Any] = json.load(response)
        except (OSError, HTTPException) as error:
            raise KafkaClusterError(f"the cluster does not answer: {error}{self._last_messages()}") from None
        finally:
            connection.close()
        if response.status >= HTTPStatus.BAD_REQUEST:
            raise KafkaClusterError(answer["error"], response.status)
        return answer

    def _last_messages(self) -> str:
        """Return what harrow said before it ended; empty if it has not ended."""
        try:
            self._process.wait(_END_S)
        except subprocess.TimeoutExpired:
            return ""
        return f"\n{self._messages.text()}".rstrip()

    def _await_start(self, messages: IO[str]) -> None:
        lines: list[str] = []
        for line in messages:
            name, _, value = line.strip().removeprefix(_PREFIX).partition("=")
            if name == _CONTROL:
                self.control_url = value
            elif name == _READY:
                self.bootstrap_servers = value
                return
            else:
                lines.append(line.removeprefix(_PREFIX))
        raise KafkaClusterError("".join(lines).strip() or "harrow serve ended without a message")


@contextmanager
def _login_options(users: Mapping[str, str]) -> Iterator[Iterable[str]]:
    """Yield the options for logins. The file of passwords exists only while harrow starts."""
    if not users:
        yield ()
        return
    lines = [f"{user}={password}" for user, password in users.items()]
    for user, line in zip(users, lines, strict=True):
        if "=" in user or line.startswith("#") or line.splitlines() != [line]:
            message = f"the user {quoted(user)}: a name has no `=`, does not begin with `#`, and has one line, as the password has"
            raise KafkaClusterError(message)
    with TemporaryDirectory() as folder:
        file = Path(folder) / "users"
        file.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
        yield "--sasl-plain", str(file)


def _as_option(value: object) -> str:
    """Return a value as ``--set`` takes it: text as it is, anything else as JSON."""
    return value if isinstance(value, str) else json.dumps(value)
