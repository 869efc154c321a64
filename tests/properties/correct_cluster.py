"""A cluster that keeps Kafka's promises, driven by random numbers. It records evidence for rules.

It is not a model of Kafka: copying, committing and following are single steps that cannot fail.
The cluster loses only what its settings permit: unflushed records in a power loss, records of the
ISR in an unclean election, and unanswered records when their leader changes.
"""

from collections.abc import Callable

from tests.checks.evidence_builder import RunBuilder

PARTITIONS = ("t-0", "t-1")
BROKERS: tuple[int, ...] = (0, 1, 2)


class Pending:
    """An unanswered send, with the offset of its last attempt."""

    def __init__(self, process: int, value: str, partition: str) -> None:
        self.process = process
        self.value = value
        self.partition = partition
        self.offset: int | None = None


class CorrectCluster:
    """Three brokers, two partitions, two producers, one consumer."""

    def __init__(
        self,
        *,
        acks: str = "all",
        idempotence: bool = True,
        unclean_leader_election: bool = False,
        power_loss: bool = False,
    ) -> None:
        self.run = RunBuilder(BROKERS, unclean_leader_election=unclean_leader_election)
        self.acks = acks
        self.idempotence = idempotence
        self.unclean = unclean_leader_election
        self.power_loss = power_loss
        self.sessions = [
            self.run.producer(f"producer-{number}", acks=acks, idempotence=idempotence) for number in range(2)
        ]
        self.leader = dict.fromkeys(PARTITIONS, 0)
        self.isr = dict.fromkeys(PARTITIONS, BROKERS)
        self.epoch_start = dict.fromkeys(PARTITIONS, 0)
        self.position = dict.fromkeys(PARTITIONS, 0)
        self.pending: list[Pending] = []
        self.sent = 0
        for partition in PARTITIONS:
            self.run.elect(0, 0, BROKERS, partition=partition)

    def log(self, partition: str, broker: int | None = None) -> list[tuple[str, int]]:
        return self.run.logs[partition][self.leader[partition] if broker is None else broker]

    def hw(self, partition: str, broker: int) -> int:
        return self.run.high_watermarks.get((partition, broker), 0)

    # Steps. Each takes a partition, and a number that decides its choices.

    def send(self, partition: str, number: int) -> None:
        send = Pending(self.sessions[number % 2], f"m{self.sent}", partition)
        self.sent += 1
        self.run.send(send.process, send.value, partition)
        if number % 7 == 0:  # the request never arrives
            self.give_up(send)
            return
        self.append(send)
        if self.acks == "all":
            self.pending.append(send)
        else:
            self.acknowledge(send)

    def append(self, send: Pending) -> None:
        send.offset = len(self.log(send.partition))
        self.run.append(self.leader[send.partition], send.value, partition=send.partition)
        self.commit(send.partition)

    def acknowledge(self, send: Pending) -> None:
        assert send.offset is not None
        if self.acks != "0":
            self.run.acknowledge(
                self.leader[send.partition], send.offset, send.value, partition=send.partition
            )
        offset = None if self.acks == "0" else send.offset
        self.run.ok(send.process, send.value, offset, send.partition)

    def give_up(self, send: Pending) -> None:
        if self.acks == "0":
            self.run.ok(send.process, send.value, None, send.partition)
        else:
            self.run.unknown(send.process, send.value, send.partition)

    def answer(self, partition: str, number: int) -> None:
        """Acknowledge committed records, in any order."""
        committed = self.hw(partition, self.leader[partition])
        ready = [
            send
            for send in self.pending
            if send.partition == partition and send.offset is not None and send.offset < committed
        ]
        for send in ready[number % 3 :] + ready[: number % 3]:
            self.acknowledge(send)
            self.pending.remove(send)

    def fetch(self, partition: str, number: int) -> None:
        """Let a follower copy up to three records and learn the high watermark."""
        leader, follower = self.leader[partition], BROKERS[number % 3]
        if leader == follower:
            return
        source, copy = self.log(partition), self.log(partition, follower)
        for value, epoch in source[len(copy) : len(copy) + 1 + number % 3]:
            self.run.replicate(follower, value, epoch=epoch, partition=partition)
        self.commit(partition)
        hw = min(len(copy), self.hw(partition, leader))
        if hw > self.hw(partition, follower):
            self.run.raise_hw(hw, follower, partition=partition)

    def commit(self, partition: str) -> None:
        leader = self.leader[partition]
        committed = min(len(self.log(partition, broker)) for broker in self.isr[partition])
        if committed > self.hw(partition, leader):
            self.run.raise_hw(committed, leader, partition=partition)

    def poll(self, partition: str, _: int) -> None:
        leader, start = self.leader[partition], self.position[partition]
        end = self.hw(partition, leader)
        self.run.event(
            "served", broker=leader, partition=partition, client="c", offset=start, end_offset=end, hw=end
        )
        values = self.log(partition)[:end]
        self.run.poll(*((at, values[at][0]) for at in range(start, end)), partition=partition)
        self.position[partition] = end

    def shrink(self, partition: str, number: int) -> None:
        leader, isr = self.leader[partition], self.isr[partition]
        self.set_isr(partition, tuple(b for b in isr if b in (leader, BROKERS[number % 3])), "shrink")

    def expand(self, partition: str, number: int) -> None:
        """Add a follower to the ISR.

        The leader's high watermark may be old, so the follower must also have reached the start of
        the leader's epoch (KAFKA-7128).
        """
        broker, isr, leader = BROKERS[number % 3], self.isr[partition], self.leader[partition]
        needed = max(self.hw(partition, leader), self.epoch_start[partition])
        if broker not in isr and len(self.log(partition, broker)) >= needed:
            self.set_isr(partition, (*isr, broker), "expand")

    def set_isr(self, partition: str, isr: tuple[int, ...], change: str) -> None:
        self.isr[partition] = isr
        self.run.event(
            "isr",
            broker=self.leader[partition],
            partition=partition,
            leader_epoch=self.run.epochs[partition],
            isr=isr,
            change=change,
        )
        self.commit(partition)

    def elect(self, partition: str, number: int) -> None:
        """Elect a member of the ISR, or another replica if unclean elections are enabled."""
        isr = self.isr[partition]
        if len(isr) == 1 and self.unclean:
            others = [broker for broker in BROKERS if broker not in isr]
            self.follow(partition, others[number % 2], (others[number % 2],), unclean=True)
        else:
            self.follow(partition, isr[number % len(isr)], isr)

    def follow(self, partition: str, leader: int, isr: tuple[int, ...], *, unclean: bool = False) -> None:
        self.leader[partition], self.isr[partition] = leader, isr
        epoch = self.run.epochs[partition] + 1
        self.run.elect(leader, epoch, isr, unclean=unclean, partition=partition)
        source = self.log(partition)
        self.epoch_start[partition] = len(source)
        for broker in BROKERS:
            copy = self.log(partition, broker)
            pairs = enumerate(zip(source, copy, strict=False))
            common_end = next((at for at, (one, other) in pairs if one != other), min(len(source), len(copy)))
            if common_end < len(copy):
                self.run.truncate(broker, common_end, "leader_epoch", partition=partition)
        self.position[partition] = min(self.position[partition], len(source))
        self.retry(partition)

    def retry(self, partition: str) -> None:
        """Send unanswered records again, in order. With idempotence no record is appended twice."""
        values = [value for value, _ in self.log(partition)]
        for send in [send for send in self.pending if send.partition == partition]:
            if self.idempotence and send.value in values:
                send.offset = values.index(send.value)
            else:
                self.append(send)

    def restart(self, partition: str, number: int) -> None:
        """Restart a broker's process with an old checkpoint of its high watermark."""
        broker = BROKERS[number % 3]
        self.run.stop(broker)
        leo = len(self.log(partition, broker))
        checkpoint = min(number % 5, self.hw(partition, broker))
        self.run.event("recover", broker=broker, partition=partition, leo=leo, hw=checkpoint)
        self.run.high_watermarks[partition, broker] = checkpoint
        if broker == self.leader[partition]:
            self.follow(partition, broker, self.isr[partition])

    def cut_power(self, partition: str, number: int) -> None:
        """Let a machine lose its unflushed records, and return before its session expires."""
        broker = BROKERS[number % 3]
        leo = len(self.log(partition, broker))
        if not self.power_loss or leo == 0:
            return
        self.run.lose_power(broker, max(0, leo - 1 - number % 4), partition)
        if broker == self.leader[partition]:
            self.elect(partition, number)

    def heal(self) -> None:
        """Let every replica catch up, answer all sends, and read all records."""
        for partition in PARTITIONS:
            self.set_isr(partition, (self.leader[partition],), "shrink")
            while any(self.log(partition, broker) != self.log(partition) for broker in BROKERS):
                for number in range(9):
                    self.fetch(partition, number)
            self.set_isr(partition, BROKERS, "expand")
            for broker in BROKERS:
                self.fetch(partition, broker)
            self.answer(partition, 0)
            self.run.read_to_end(self.leader[partition], partition)


STEPS: tuple[Callable[[CorrectCluster, str, int], None], ...] = (
    CorrectCluster.send,
    CorrectCluster.send,
    CorrectCluster.send,
    CorrectCluster.answer,
    CorrectCluster.fetch,
    CorrectCluster.fetch,
    CorrectCluster.fetch,
    CorrectCluster.poll,
    CorrectCluster.shrink,
    CorrectCluster.expand,
    CorrectCluster.elect,
    CorrectCluster.restart,
    CorrectCluster.cut_power,
)
"""All steps. Sends and fetches are more frequent."""
