"""Proxies in front of servers, which pass all traffic between processes on, message by message.

In each direction of a connection, messages keep their order: a message that is held or delayed also
holds up the messages after it. As over TCP, all messages arrive in the end, unless one end of the
connection has gone.
"""

import asyncio
import contextlib
import socket
import struct
import threading
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Coroutine
from functools import partial
from itertools import count
from typing import Any, Final, NamedTuple, Protocol, Self, TypeVar

from harrow.cluster_model.sim import message_rule
from harrow.cluster_model.sim.message_rule import REQUEST, RESPONSE
from harrow.cluster_model.sim.virtual_time import US_PER_SECOND
from harrow.live_cluster.links.frame import CLIENTS, CORRELATION_ID, RequestHeader, process_of, request_header
from harrow.live_cluster.links.link_faults import LinkFaults
from harrow.live_cluster.links.news import News, is_in_bytes

T = TypeVar("T")
Address = tuple[str, int]

_LENGTH: Final = struct.Struct(">i")
_FRAME_MAX: Final = 256 * 1024 * 1024
_CHUNK: Final = 65_536
_LOOP_TIMEOUT_S: Final = 60.0
_AHEAD_MAX: Final = 64
"""The number of messages of a direction that are read while the first of them is held up."""


class ProxiedLink(NamedTuple):
    """A connection: its number, and the names of the processes at its ends."""

    number: int
    server: str
    client: str


class MessageObserver:
    """Sees messages as they pass, in the thread of the proxies."""

    def request_passed(self, link: ProxiedLink, header: RequestHeader, frame: bytes) -> None:
        """A request is on its way to a server, and no fault can stop it."""

    def answer_passed(self, link: ProxiedLink, header: RequestHeader, frame: bytes) -> None:
        """A server has answered the request with this header; the answer may still get lost."""

    def unreadable(self, link: ProxiedLink, header: RequestHeader, error: Exception) -> None:
        """A message passed that could not be decoded."""

    def link_ended(self, link: ProxiedLink) -> None:
        """A connection has ended; its pending requests will not be answered."""


class Proxies:
    """The proxies of a cluster, in a thread of their own, while this context is open.

    They call *on_news* when a message arrives that may show a change
    (`harrow.live_cluster.links.news`).
    """

    def __init__(
        self, faults: LinkFaults, observer: MessageObserver, on_news: Callable[[], None] = lambda: None
    ) -> None:
        self._faults = faults
        self._observer = observer
        self._on_news = on_news
        self._loop = asyncio.new_event_loop()
        self._numbers = count()
        self._servers: list[asyncio.Server] = []
        self._connections: dict[asyncio.Task[None], _Passage] = {}
        self._thread = threading.Thread(target=self._loop.run_forever, name="proxies", daemon=True)
        self._thread.start()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close all connections, and stop listening."""
        if self._loop.is_closed():
            return
        self._wait_for(self._end_connections())
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()

    def in_loop(self, ask: Callable[[LinkFaults], T]) -> T:
        """Call a function with the faults, in the thread of the proxies, and return its result."""

        async def do() -> T:
            return ask(self._faults)

        return self._wait_for(do())

    def reset(self, one: str, other: str) -> None:
        """Break the connections between two processes."""

        async def do() -> None:
            for task, passage in list(self._connections.items()):
                if {passage.client, passage.server} == {one, other}:
                    task.cancel()

        self._wait_for(do())

    def listen_for_broker(self, server: str, port: int, upstream: Address) -> None:
        """Listen in front of a broker, and decode its messages."""
        self._listen(
            port,
            lambda reader, writer: self._serve(
                _KafkaPassage(self._faults, self._observer, self._on_news, next(self._numbers), server),
                upstream,
                reader,
                writer,
            ),
        )

    def listen_for_bytes(
        self, server: str, client: str, port: int, upstream: Address, on_answer: Callable[[bytes], None]
    ) -> None:
        """Listen in front of any server, for one client; *on_answer* gets the first answer."""
        self._listen(
            port,
            lambda reader, writer: self._serve(
                _BytePassage(self._faults, self._on_news, server, client, on_answer),
                upstream,
                reader,
                writer,
            ),
        )

    def _listen(
        self, port: int, serve: Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]
    ) -> None:
        async def serve_or_fail(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            try:
                await serve(reader, writer)
            except Exception as error:  # noqa: BLE001 - messages no longer pass after any exception
                _fail_as_thread(error)

        async def start() -> None:
            self._servers.append(
                await asyncio.start_server(serve_or_fail, "127.0.0.1", port, reuse_address=True)
            )

        self._wait_for(start())

    async def _serve(
        self,
        passage: "_Passage",
        upstream: Address,
        client_reader: asyncio.StreamReader,
        client_writer: asyncio.StreamWriter,
    ) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._connections[task] = passage
        writers = [client_writer]
        try:
            server_reader, server_writer = await asyncio.open_connection(*upstream)
            writers.append(server_writer)
            for writer in writers:
                writer.get_extra_info("socket").setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            async with asyncio.TaskGroup() as pumps:
                requests = _ReadAhead(partial(passage.read, client_reader))
                answers = _ReadAhead(partial(passage.read, server_reader))
                pumps.create_task(requests.fill())
                pumps.create_task(answers.fill())
                pumps.create_task(passage.pass_requests(requests, server_writer))
                pumps.create_task(passage.pass_answers(answers, client_writer))
        except* (OSError, EOFError, ValueError, struct.error, _Reset):
            pass  # An end has gone, sent an invalid frame, or a rule breaks the connection.
        except* asyncio.CancelledError:
            pass
        finally:
            self._connections.pop(task, None)
            for writer in writers:
                writer.transport.abort()
            passage.record_end()

    async def _end_connections(self) -> None:
        # A connection that is accepted while its server closes would never be closed.
        for server in self._servers:
            for listener in server.sockets:
                self._loop.remove_reader(listener.fileno())
        while asyncio.all_tasks() - {asyncio.current_task()}:
            for connection in self._connections:
                connection.cancel()
            await asyncio.sleep(0)
        for server in self._servers:
            server.close()

    def _wait_for(self, coroutine: Coroutine[Any, Any, T]) -> T:
        return asyncio.run_coroutine_threadsafe(coroutine, self._loop).result(_LOOP_TIMEOUT_S)


def _fail_as_thread(error: Exception) -> None:
    """Treat an exception of a connection as an exception of the thread, which ends the run.

    asyncio would only log it, and the run would be judged by incomplete evidence.
    """
    while isinstance(error, ExceptionGroup):
        error = error.exceptions[0]
    thread = threading.current_thread()
    threading.excepthook(threading.ExceptHookArgs((type(error), error, error.__traceback__, thread)))


class _Reset(Exception):
    """A rule breaks the connection."""


class _Passage(Protocol):
    """A connection through a proxy. *client* is empty until its name is known."""

    server: str
    client: str

    async def read(self, reader: asyncio.StreamReader) -> bytes | None:
        """Return the next message, None at the end."""

    async def pass_requests(self, incoming: "_ReadAhead", writer: asyncio.StreamWriter) -> None:
        """Pass the client's messages on until the end."""

    async def pass_answers(self, incoming: "_ReadAhead", writer: asyncio.StreamWriter) -> None:
        """Pass the server's messages on until the end."""

    def record_end(self) -> None:
        """Note that the connection has ended."""


async def _frame(reader: asyncio.StreamReader) -> bytes | None:
    """Return the next frame without its length, None at the end."""
    try:
        (length,) = _LENGTH.unpack(await reader.readexactly(_LENGTH.size))
    except asyncio.IncompleteReadError:
        return None
    if not CORRELATION_ID.size <= length <= _FRAME_MAX:
        raise ValueError(f"a frame of {length} bytes")
    return await reader.readexactly(length)


async def _chunk(reader: asyncio.StreamReader) -> bytes | None:
    return await reader.read(_CHUNK) or None


class _ReadAhead:
    """Messages of one direction with their arrival times, read while earlier ones are held up.

    Otherwise the delays of messages on a slow link would add up.
    """

    def __init__(self, read: Callable[[], Awaitable[bytes | None]]) -> None:
        self._read = read
        self._ahead: asyncio.Queue[tuple[bytes, float] | Exception | None] = asyncio.Queue(_AHEAD_MAX)

    async def fill(self) -> None:
        """Read to the end or to an error, which is queued like a message."""
        now_s = asyncio.get_running_loop().time
        try:
            while (data := await self._read()) is not None:
                await self._ahead.put((data, now_s()))
        except (OSError, EOFError, ValueError) as error:
            await self._ahead.put(error)
        else:
            await self._ahead.put(None)

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> tuple[bytes, float]:
        item = await self._ahead.get()
        if item is None:
            raise StopAsyncIteration
        if isinstance(item, Exception):
            raise item
        return item


class _KafkaPassage:
    """A connection to a broker. Its first request shows which process the client is."""

    def __init__(
        self,
        faults: LinkFaults,
        observer: MessageObserver,
        on_news: Callable[[], None],
        number: int,
        server: str,
    ) -> None:
        self._faults = faults
        self._observer = observer
        self._on_news = on_news
        self._news = News()
        self._number = number
        self.server = server
        self.client = ""
        self._listener = CLIENTS
        # Pending requests, oldest first.
        self._pending: OrderedDict[int, RequestHeader] = OrderedDict()

    read = staticmethod(_frame)

    async def pass_requests(self, incoming: "_ReadAhead", writer: asyncio.StreamWriter) -> None:
        async for frame, read_s in incoming:
            header = request_header(frame)
            if not self.client:
                self.client, self._listener = process_of(header, frame)
                # TCP needs both directions to open a connection.
                await self._faults.while_cut((self.server, self.client))
            ends = self.client, self.server
            await _wait_for_slow_link(self._faults, *ends, read_s, len(frame))
            if request_us := self._faults.request_us(*ends):
                await asyncio.sleep(request_us / US_PER_SECOND)
            rule = await self._wait_for_rules(header.api, REQUEST, *ends)
            if rule is not None and rule.action == message_rule.DROP:
                continue
            self._pending[header.correlation_id] = header
            self._show(self._observer.request_passed, header, frame)
            await _write(writer, frame)
            if rule is not None and rule.action == message_rule.DUPLICATE:
                await _write(writer, frame)
            if self._news.is_in_request(header):
                self._on_news()
        _end_output(writer)

    async def pass_answers(self, incoming: "_ReadAhead", writer: asyncio.StreamWriter) -> None:
        async for frame, read_s in incoming:
            (correlation_id,) = CORRELATION_ID.unpack_from(frame)
            header = self._pending.get(correlation_id)
            if header is None:
                # The request was repeated, and the client already has the first answer.
                continue
            self._forget(correlation_id)
            self._show(self._observer.answer_passed, header, frame)
            await _wait_for_slow_link(self._faults, self.server, self.client, read_s, len(frame))
            rule = await self._wait_for_rules(header.api, RESPONSE, self.server, self.client)
            if rule is None or rule.action != message_rule.DROP:
                await _write(writer, frame)
                self._show(self._note_news, header, frame)
        _end_output(writer)

    def _note_news(self, _link: ProxiedLink, header: RequestHeader, frame: bytes) -> None:
        if self._news.is_in_answer(header, frame):
            self._on_news()

    def record_end(self) -> None:
        self._observer.link_ended(self._link)

    @property
    def _link(self) -> ProxiedLink:
        return ProxiedLink(self._number, self.server, self.client)

    def _show(
        self, show: Callable[[ProxiedLink, RequestHeader, bytes], None], header: RequestHeader, frame: bytes
    ) -> None:
        """Show a message to the observer; it passes even if it cannot be decoded."""
        try:
            show(self._link, header, frame)
        except Exception as error:  # noqa: BLE001 - a decoder may raise anything
            self._observer.unreadable(self._link, header, error)

    def _forget(self, correlation_id: int) -> None:
        """Remove an answered request, and older ones: they expect no answer (acks=0)."""
        while self._pending:
            oldest, _ = self._pending.popitem(last=False)
            if oldest == correlation_id:
                return

    async def _wait_for_rules(
        self, api: str, kind: str, sender: str, receiver: str
    ) -> message_rule.MessageRule | None:
        """Wait until a message may pass, and return the rule that acts on it."""
        rule = self._faults.rule_for(api, kind, sender, receiver, self._listener)
        if rule is not None:
            if rule.action == message_rule.RESET:
                raise _Reset
            if rule.action == message_rule.HOLD:
                await self._faults.while_held(rule, sender, receiver)
            elif rule.action == message_rule.DELAY:
                await asyncio.sleep(rule.delay_us / US_PER_SECOND)
        await self._faults.while_cut((sender, receiver))
        return rule


class _BytePassage:
    """A connection of one client to a server, in any protocol."""

    def __init__(
        self,
        faults: LinkFaults,
        on_news: Callable[[], None],
        server: str,
        client: str,
        on_answer: Callable[[bytes], None],
    ) -> None:
        self._faults = faults
        self._on_news = on_news
        self.server = server
        self.client = client
        self._on_answer: Callable[[bytes], None] | None = on_answer

    read = staticmethod(_chunk)

    async def pass_requests(self, incoming: "_ReadAhead", writer: asyncio.StreamWriter) -> None:
        async for data, read_s in incoming:
            await _wait_for_slow_link(self._faults, self.client, self.server, read_s, len(data))
            await self._faults.while_cut((self.client, self.server))
            await self._pass(writer, data)
        _end_output(writer)

    async def pass_answers(self, incoming: "_ReadAhead", writer: asyncio.StreamWriter) -> None:
        async for data, read_s in incoming:
            if self._on_answer is not None:
                self._on_answer(data)
                self._on_answer = None
            await _wait_for_slow_link(self._faults, self.server, self.client, read_s, len(data))
            await self._faults.while_cut((self.server, self.client))
            await self._pass(writer, data)
        _end_output(writer)

    async def _pass(self, writer: asyncio.StreamWriter, data: bytes) -> None:
        await _write_bytes(writer, data)
        if is_in_bytes(data):
            self._on_news()

    def record_end(self) -> None:
        """Do nothing: no observer follows these connections."""


async def _wait_for_slow_link(
    faults: LinkFaults, sender: str, receiver: str, read_s: float, size_bytes: int
) -> None:
    """Wait until a slow link has delivered a message that was read at *read_s*."""
    delay_us = faults.delay_us(sender, receiver, round(read_s * US_PER_SECOND), size_bytes)
    if delay_us:
        await asyncio.sleep(read_s + delay_us / US_PER_SECOND - asyncio.get_running_loop().time())


async def _write(writer: asyncio.StreamWriter, frame: bytes) -> None:
    await _write_bytes(writer, _LENGTH.pack(len(frame)) + frame)


async def _write_bytes(writer: asyncio.StreamWriter, data: bytes) -> None:
    writer.write(data)
    await writer.drain()


def _end_output(writer: asyncio.StreamWriter) -> None:
    with contextlib.suppress(OSError):
        writer.write_eof()
