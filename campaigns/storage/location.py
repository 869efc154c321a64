"""A file or a folder by its path, or by a URI such as ``s3://bucket/folder``.

Everything that harrow keeps in shared storage goes through `Location`. Paths need only Python. URIs
need pyarrow, and fsspec if pyarrow does not know their scheme. Credentials and endpoints come from
the environment, where the library of each storage looks for them.
"""

import errno
import io
import os
import platform
import re
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO, Final
from urllib.parse import parse_qsl, unquote, urlsplit

from harrow.campaigns.language.regular_file import open_regular
from harrow.campaigns.storage.whole_file import unfinished, whole_path
from harrow.cluster_model.lazy_dataclass import dataclass

if TYPE_CHECKING:
    import pyarrow.fs

_URI: Final = r"(?s)(?P<scheme>[A-Za-z][A-Za-z0-9+.-]+):(?P<rest>/.*)"
"""A scheme has at least two letters, because one letter is a drive of Windows."""
_FILE: Final = "file"
_SAME_AS: Final = {"s3a": "s3", "s3n": "s3"}
"""Hadoop's names for the storage that pyarrow knows by another name."""
_OBJECT_STORES: Final = frozenset({"s3", "gcs", "abfs"})
"""Where an object appears when it is complete. A rename would copy it."""
_BUFFER_BYTES: Final = 4 << 20
"""Each read of an object store is a request, so it should be a large one."""
_PASSED_ON: Final = (
    *(f"AWS_{name}" for name in ("ACCESS_KEY_ID", "SECRET_ACCESS_KEY", "SESSION_TOKEN")),
    *(f"AWS_{name}" for name in ("REGION", "DEFAULT_REGION", "ENDPOINT_URL", "ENDPOINT_URL_S3")),
    *(f"AZURE_{name}" for name in ("TENANT_ID", "CLIENT_ID", "CLIENT_SECRET", "STORAGE_KEY")),
)
_AZURE_KEY: Final = "AZURE_STORAGE_KEY"
"""The variable in which Azure's own tools look for the key of a storage account."""
_AZURE_HOSTS: Final = (".dfs.core.windows.net", ".blob.core.windows.net")
"""The hosts of accounts. Before the ``@`` of their URIs is a container, elsewhere the account."""


_HADOOP_HINT: Final = (
    "HDFS needs Java and Hadoop: export CLASSPATH=$(hadoop classpath --glob); "
    "or else pip install fsspec hdfs-native"
)


class Location(ABC):
    """A file or a folder. Errors of all methods are `OSError`, with the reason and the location."""

    @property
    @abstractmethod
    def name(self) -> str: ...

    @abstractmethod
    def __truediv__(self, name: str) -> "Location":
        """Return a location below this folder. *name* may have several parts."""

    @abstractmethod
    def absolute(self) -> "Location":
        """Return the same location for a process with another working folder."""

    @abstractmethod
    def exists(self) -> bool: ...

    @abstractmethod
    def is_folder(self) -> bool: ...

    @abstractmethod
    def size(self) -> int:
        """Return the size of a file in bytes."""

    @abstractmethod
    def names(self) -> list[str]:
        """Return the paths of all files below a folder, relative to it, in order.

        There are none if the folder is missing.
        """

    @abstractmethod
    def open(self) -> BinaryIO:
        """Open a file for reading. It can be positioned anywhere."""

    @abstractmethod
    def write(self, content: bytes) -> None:
        """Write a file, with the folders above it. Readers see all of it or the file before it."""

    @abstractmethod
    def delete(self) -> None:
        """Delete a file, if it exists."""

    @abstractmethod
    def in_arrow(self) -> "tuple[pyarrow.fs.FileSystem, str]":
        """Return the file system of pyarrow, and the path in it."""

    def files(self) -> "list[Location]":
        """Return all files below a folder, in order; none if the folder is missing."""
        return [self / name for name in self.names()]

    def read(self) -> bytes:
        with self.open() as file:
            return file.read()

    def read_text(self) -> str:
        return self.read().decode("utf-8")

    def write_text(self, text: str) -> None:
        # Bytes of file names that are not UTF-8 are written as escapes.
        self.write(text.encode("utf-8", "backslashreplace"))


def location(place: str | Path | Location) -> Location:
    """Return the location of a path or of a URI.

    Raises:
        OSError: Nothing here can read the URI, or it contains a password, or *place* is empty.

    """
    if isinstance(place, Location):
        return place
    if not str(place):
        raise OSError(None, "the name of a file or folder is empty")
    match = None if isinstance(place, Path) else re.fullmatch(_URI, place)
    if match is None:
        return LocalLocation(Path(place))
    scheme = match["scheme"].lower()
    if scheme == _FILE:
        return LocalLocation(Path(unquote(urlsplit(str(place)).path)), is_shared=True)
    parsed = urlsplit(f"{_SAME_AS.get(scheme, scheme)}:{match['rest']}")
    if parsed.password:
        raise OSError(None, "set credentials in the environment, not in a URI", f"{scheme}://...")
    root = _Root(f"{parsed.scheme}://{parsed.netloc}", parsed.query)
    there = RemoteLocation(root, parsed.path.strip("/"))
    there.in_arrow()  # A URI that nothing can read is a mistake of the user, so find it now.
    return there


def storage_variables(environ: Mapping[str, str] = os.environ) -> dict[str, str]:
    """Return the variables with which other machines reach the same storage.

    Without credentials here, they use their own, such as the role of a virtual machine.
    """
    return {name: environ[name] for name in _PASSED_ON if name in environ}


@dataclass(frozen=True, slots=True)
class LocalLocation(Location):
    """A file or a folder of this machine, or of a file system that all machines mount.

    A user who writes ``file:`` says that other machines have the same file system.
    """

    path: Path
    is_shared: bool = False

    def __str__(self) -> str:
        return str(self.path)

    @property
    def name(self) -> str:
        return self.path.name

    def __truediv__(self, name: str) -> Location:
        return LocalLocation(self.path / name, self.is_shared)

    def absolute(self) -> Location:
        return LocalLocation(self.path.absolute(), self.is_shared)

    def exists(self) -> bool:
        return self.path.exists()

    def is_folder(self) -> bool:
        return self.path.is_dir()

    def size(self) -> int:
        return self.path.stat().st_size

    def names(self) -> list[str]:
        files = (path for path in self.path.rglob("*") if not path.is_dir())
        return sorted(path.relative_to(self.path).as_posix() for path in files)

    def open(self) -> BinaryIO:
        return open_regular(self.path)

    def write(self, content: bytes) -> None:
        self.path.parent.mkdir(parents=True, exist_ok=True)
        with whole_path(self.path) as temporary:
            temporary.write_bytes(content)

    def delete(self) -> None:
        self.path.unlink(missing_ok=True)

    def in_arrow(self) -> "tuple[pyarrow.fs.FileSystem, str]":
        from pyarrow.fs import LocalFileSystem  # noqa: PLC0415 - paths need only Python

        return LocalFileSystem(), str(self.path.absolute())


@dataclass(frozen=True, slots=True)
class _Root:
    """What selects a file system: the scheme and authority of a URI, and its options after `?`."""

    address: str
    options: str


@dataclass(frozen=True, slots=True)
class RemoteLocation(Location):
    """A file or a folder in an object store or another file system.

    ``path`` is relative to the root. A location can be sent to another process, which then connects
    to the file system itself.
    """

    root: _Root
    path: str

    def __str__(self) -> str:
        return f"{self.root.address}/{self.path}"

    @property
    def name(self) -> str:
        return self.path.rpartition("/")[2]

    def __truediv__(self, name: str) -> Location:
        return RemoteLocation(self.root, f"{self.path}/{name}".lstrip("/"))

    def absolute(self) -> Location:
        return self

    def exists(self) -> bool:
        from pyarrow.fs import FileType  # noqa: PLC0415 - paths need only Python

        return bool(self._info().type != FileType.NotFound)

    def is_folder(self) -> bool:
        from pyarrow.fs import FileType  # noqa: PLC0415 - paths need only Python

        return bool(self._info().type == FileType.Directory)

    def size(self) -> int:
        return int(self._info().size or 0)

    def names(self) -> list[str]:
        from pyarrow.fs import FileSelector, FileType  # noqa: PLC0415 - paths need only Python

        with _errors_of(self):
            system, path = self.in_arrow()
            infos = system.get_file_info(FileSelector(path, recursive=True, allow_not_found=True))
        return sorted(info.path[len(path) :].strip("/") for info in infos if info.type == FileType.File)

    def open(self) -> BinaryIO:
        with _errors_of(self):
            system, path = self.in_arrow()
            return io.BufferedReader(system.open_input_file(path), _BUFFER_BYTES)

    def write(self, content: bytes) -> None:
        with _errors_of(self):
            system, path = self.in_arrow()
            if system.type_name in _OBJECT_STORES:
                _write(system, path, content)
                return
            folder, _, name = path.rpartition("/")
            system.create_dir(folder, recursive=True)
            temporary = f"{folder}/{unfinished(Path(f'{name}.{platform.node()}')).name}"
            _write(system, temporary, content)
            self.delete()  # HDFS does not rename over a file.
            system.move(temporary, path)

    def delete(self) -> None:
        with _errors_of(self), suppress(FileNotFoundError):
            system, path = self.in_arrow()
            system.delete_file(path)

    def in_arrow(self) -> "tuple[pyarrow.fs.FileSystem, str]":
        with _errors_of(self):
            system, top = _connected(self.root, tuple(storage_variables().items()))
        path = f"{top}/{self.path}".rstrip("/")
        return system, path.lstrip("/") if system.type_name in _OBJECT_STORES else path

    def _info(self) -> Any:
        with _errors_of(self):
            system, path = self.in_arrow()
            return system.get_file_info(path)


def _write(system: Any, path: str, content: bytes) -> None:
    with system.open_output_stream(path) as stream:
        stream.write(content)


@lru_cache(maxsize=64)
def _connected(
    root: _Root,
    variables: tuple[tuple[str, str], ...],  # noqa: ARG001 - another endpoint is another file system
) -> "tuple[pyarrow.fs.FileSystem, str]":
    """Return the file system of a root, and the root's path in it.

    The libraries read *variables* from the environment.

    Raises:
        Exception: It cannot be used. Each library has errors of its own.

    """
    try:
        from pyarrow.fs import FileSystem, FSSpecHandler, PyFileSystem  # noqa: PLC0415 - see `Location`
    except ImportError:
        raise OSError("pyarrow is not installed: pip install 'kafka-harrow[sweep]'") from None
    uri = f"{root.address}/{'?' * bool(root.options)}{root.options}"
    try:
        system, top = _azure_by_key(root) or FileSystem.from_uri(uri)
    except (ValueError, OSError) as error:
        is_unknown = "Unrecognized filesystem type" in str(error)
        if not is_unknown and not _lacks_hadoop(error):
            raise
        try:
            from fsspec.core import url_to_fs  # noqa: PLC0415 - few need it
        except ImportError:
            if not is_unknown:
                raise error from None
            raise OSError("pyarrow does not know this scheme, and fsspec is not installed") from None
        try:
            filesystem, top = url_to_fs(uri)
        except ValueError:
            raise OSError("neither pyarrow nor fsspec knows this scheme") from None
        system = PyFileSystem(FSSpecHandler(filesystem))
    return system, top.rstrip("/")


def _lacks_hadoop(error: Exception) -> bool:
    """Return whether pyarrow lacks Hadoop's library. fsspec may know one that needs no Java."""
    return isinstance(error, OSError) and str(error).startswith("Unable to load lib")


def _azure_by_key(root: _Root) -> "tuple[pyarrow.fs.FileSystem, str] | None":
    """Return a file system of Azure if there is the key of its account, which no URI may name."""
    scheme, _, authority = root.address.partition("://")
    if not scheme.startswith("abfs") or _AZURE_KEY not in os.environ:
        return None
    from pyarrow.fs import AzureFileSystem  # noqa: PLC0415 - see `Location`

    user, _, host = authority.rpartition("@")
    options: dict[str, str] = {}
    account, container = user, ""
    if host.endswith(_AZURE_HOSTS):
        account, container = host.partition(".")[0], user
    else:
        options |= dict.fromkeys(("blob_storage_authority", "dfs_storage_authority"), host)
    if dict(parse_qsl(root.options)).get("enable_tls") == "false":
        options |= dict.fromkeys(("blob_storage_scheme", "dfs_storage_scheme"), "http")
    return AzureFileSystem(account, account_key=os.environ[_AZURE_KEY], **options), container


@contextmanager
def _errors_of(there: Location) -> Iterator[None]:
    """Turn errors of the libraries into an `OSError` of one line that names the location."""
    try:
        yield
    except OSError as error:
        if error.filename is not None:
            raise
        reason = error.strerror or str(error)
        if _lacks_hadoop(error):
            reason += f" ({_HADOOP_HINT})"
        # fsspec raises errors without a number.
        number = errno.ENOENT if isinstance(error, FileNotFoundError) else error.errno
        raise OSError(number, _one_line(reason), str(there)) from error
    except (ValueError, ImportError, NotImplementedError) as error:
        raise OSError(None, _one_line(str(error)), str(there)) from error
    except Exception as error:
        # Where pyarrow knows no errno, such as without credentials of Azure, it has its own errors.
        if not type(error).__module__.startswith("pyarrow"):
            raise
        raise OSError(None, _one_line(str(error)), str(there)) from error


def _one_line(text: str) -> str:
    return text.strip().partition("\n")[0]
