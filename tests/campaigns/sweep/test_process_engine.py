"""A sweep's pool of processes is killed by exactly one thread."""

import threading
from concurrent.futures.process import BrokenProcessPool
from typing import Any

import pytest

from harrow.campaigns.sweep import process_engine
from harrow.campaigns.sweep.chunk import Chunk, Task
from harrow.campaigns.sweep.engine import ChunkLostError
from harrow.campaigns.sweep.process_engine import ProcessEngine
from tests.campaigns.sweep.sweep_campaigns import definition

THREADS = 2


class BrokenPool:
    """A pool that breaks at once for every thread that waits for it."""

    def __init__(self) -> None:
        self.all_wait = threading.Barrier(THREADS)

    def submit(self, *_: Any) -> Any:
        self.all_wait.wait(60)
        raise BrokenProcessPool


def test_a_pool_that_breaks_for_several_threads_is_killed_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """A descriptor that is closed twice may already belong to another file."""
    killed: list[object] = []
    pool = BrokenPool()
    monkeypatch.setattr(process_engine, "worker_pool", lambda *_: pool)
    monkeypatch.setattr(process_engine, "kill", killed.append)
    engine = ProcessEngine(definition(1).cells, workers=THREADS)
    chunk = Chunk(tasks=(Task(cell=0, seeds=(0,)),), campaign="small")
    lost = []

    def run() -> None:
        with pytest.raises(ChunkLostError):
            engine.run(chunk)
        lost.append(1)

    threads = [threading.Thread(target=run) for _ in range(THREADS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    engine.close()
    assert (len(lost), killed) == (THREADS, [pool])
