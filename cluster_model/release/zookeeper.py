"""The controller in ZooKeeper, and what brokers obey."""

from dataclasses import dataclass
from functools import partial
from typing import Final

from harrow.cluster_model.release import guards
from harrow.cluster_model.release.subjects import REPEATED_WRITES, REPLICATION, SHUTDOWN, ZOOKEEPER
from harrow.cluster_model.release.switch import Mutant, Repair, switch

_switch: Final = partial(switch, of=ZOOKEEPER)


@dataclass(frozen=True, slots=True, kw_only=True)
class ZooKeeperSwitches:
    """The switches; their defaults are what the default release does."""

    broker_epoch: bool = _switch(
        "Control requests carry the broker's epoch, and the controller notices a broker that bounced "
        "between two looks at /brokers/ids.",
        "KIP-380 (KAFKA-7235), KAFKA-1120",
        meaning="control requests carry the broker's epoch (KIP-380)",
        before=(("2.2", False),),
        guards=(*guards.LEADERS, *guards.LOGS, "registrations-known"),
        repair=Repair(
            name="KIP-380",
            since="2.2",
            text="control requests carry the broker's epoch, so a broker that went and came back is noticed",
        ),
        mutant=Mutant(
            name="bounce-unnoticed",
            doc=(
                "A broker that goes and comes back between two looks of the controller is not noticed, and is told "
                "nothing: its partitions have a leader that does not lead."
            ),
            source="KIP-380 (KAFKA-7235), KAFKA-1120; Kafka before 2.2",
            noticed_by=("registrations-known", "unavailable"),
        ),
    )
    requests_after_registration: bool = _switch(
        "A starting broker handles no request before it is registered in ZooKeeper, so none that was meant "
        "for its earlier life while its death was not known.",
        "KAFKA-6772, KafkaServer.startup (SocketServer.startProcessors)",
        meaning="a starting broker obeys nothing before it is registered",
        before=(("2.0", False),),
        guards=(*guards.LEADERS, *guards.LOGS, "controller-epoch-monotonic", "registered-before-control"),
        repair=Repair(
            name="KAFKA-6772",
            since="2.0",
            text="a starting broker handles no request before it is registered in ZooKeeper",
        ),
        mutant=Mutant(
            name="requests-before-registration",
            doc="A starting broker obeys requests that were meant for its earlier life.",
            source="KAFKA-6772, KafkaServer.startup (SocketServer.startProcessors); Kafka up to 1.1",
            noticed_by=("registered-before-control",),
        ),
    )
    controller_writes_fenced: bool = _switch(
        "The controller's writes to ZooKeeper are conditional on the version of /controller_epoch.",
        "KAFKA-6082",
        meaning="only the present controller writes to ZooKeeper (KAFKA-6082)",
        before=(("2.1", False),),
        guards=(*guards.LEADERS, *guards.LOGS, "controller-writes-fenced"),
        repair=Repair(
            name="KAFKA-6082",
            since="2.1",
            text="a controller that has been succeeded cannot write to ZooKeeper",
        ),
        mutant=Mutant(
            name="zombie-controller-writes",
            doc=(
                "A controller that has been succeeded still writes to ZooKeeper: it elects leaders of which no broker "
                "hears, and its successor goes by what stood there before."
            ),
            source="KAFKA-6082; Kafka up to 2.0",
            noticed_by=("controller-writes-fenced",),
        ),
    )
    failover_takes_out_dead_replicas: bool = _switch(
        "A new controller takes the replicas of brokers that are not alive out of the ISRs. Before, a broker "
        "that died while there was no controller stayed in them until its leader noticed.",
        "KAFKA-3143, ReplicaStateMachine.startup",
        meaning="a new controller takes dead replicas out of the ISRs",
        before=(("2.3", False),),
        guards=(*guards.LOGS, "failover-shrinks-isr"),
        repair=Repair(
            name="KAFKA-3143",
            since="2.3",
            text="a new controller takes the replicas of dead brokers out of the ISRs",
        ),
        mutant=Mutant(
            name="dead-replicas-stay-in-isr",
            doc="A new controller leaves brokers that died while there was none in the ISRs.",
            source="KAFKA-3143; Kafka up to 2.2",
            noticed_by=("failover-shrinks-isr",),
        ),
    )
    shutdown_awaits_controller: bool = _switch(
        "A broker that stops asks again later while there is no controller. Before, it gave up at once "
        "(ZkUtils.getController threw).",
        "KafkaServer.controlledShutdown",
        of=SHUTDOWN,
        meaning="a broker that stops waits for a controller",
        before=(("1.1", False),),
        is_met=False,
    )
    shutting_down_leader_is_offline: bool = _switch(
        "When some broker fails, partitions are offline too whose leader is in controlled shutdown: with unclean "
        "elections a replica outside the ISR is elected although the leader is still alive.",
        "KIP-112, KafkaController.onReplicasBecomeOffline",
        of=SHUTDOWN,
        meaning="a leader in controlled shutdown counts as gone when some broker fails",
        before=(("1.0", False),),
    )
    shutdown_request_preempted: bool = _switch(
        "A controller whose session expires refuses the controlled shutdowns that wait in its queue. Before, it "
        "forgot them, and the broker that had asked waited for the socket's timeout.",
        "KAFKA-5692, KafkaController.preemptControlledShutdown",
        of=SHUTDOWN,
        meaning="a controller that is deposed refuses the shutdowns that it has not begun",
        before=(("2.2", False),),
    )
    controller_epoch_fencing: bool = _switch(
        "Brokers refuse control requests with an older controller epoch (STALE_CONTROLLER_EPOCH).",
        "ReplicaManager.becomeLeaderOrFollower",
        meaning="brokers refuse a controller of an older epoch",
        guards=(*guards.LEADERS, *guards.LOGS, "controller-epoch-monotonic", "leader-epoch-monotonic"),
        mutant=Mutant(
            name="stale-controller-accepted",
            doc="Brokers obey a controller that has been succeeded: a paused one that wakes appoints leaders of its own.",
            source="ReplicaManager.becomeLeaderOrFollower (STALE_CONTROLLER_EPOCH)",
            noticed_by=("controller-epoch-monotonic",),
        ),
    )
    leader_epoch_fencing: bool = _switch(
        "Brokers ignore a LeaderAndIsr whose leader epoch is not newer than their own.",
        "ReplicaManager.becomeLeaderOrFollower",
        of=REPLICATION,
        meaning="brokers refuse a leader epoch that is not newer than their own",
        guards=(*guards.LEADERS, *guards.LOGS, "leader-epoch-monotonic"),
        mutant=Mutant(
            name="stale-leader-epoch-accepted",
            doc="Brokers obey a LeaderAndIsr of an older leader epoch: a delayed one makes a former leader lead again.",
            source="ReplicaManager.becomeLeaderOrFollower",
            noticed_by=("leader-epoch-monotonic", "lost-write"),
        ),
    )
    isr_altered_by_controller: bool = _switch(
        "With ZooKeeper a leader asks the controller for another ISR (AlterPartition, AlterIsr up to 3.1), which writes the znode, knows it "
        "at once and tells all brokers. Before, the leader wrote it itself, and the controller heard of it later "
        "(/isr_change_notification). In KRaft it is so in every release.",
        "KIP-497 (KAFKA-8836), DefaultAlterPartitionManager, KafkaController.processAlterPartition",
        meaning="the controller writes the ISRs that leaders want (KIP-497)",
        before=(("2.7", False),),
        is_repair=False,
        is_always_in_kraft=True,
    )
    repeated_isr_write_recognised: bool = _switch(
        "With ZooKeeper a controller whose write of an ISR is refused looks whether the znode has that ISR already, and takes it for "
        "written. No release does that since leaders have asked the controller (2.7): where the connection to ZooKeeper breaks before the answer, "
        "the write is repeated and refused, and the leader waits for news until the partition has another leader.",
        "KafkaZkClient.updateLeaderAndIsr, KafkaController.processAlterPartition, Partition.handleAlterPartitionError",
        of=REPEATED_WRITES,
        meaning="a controller recognises an ISR that it has written before it repeats the write",
        latest=False,
        safe=True,
        guards=("unavailable",),
        mutant=Mutant(
            name="repeated-isr-write-refused",
            kafka="2.8",
            doc=(
                "A controller repeats the write of an ISR after it has lost its connection to ZooKeeper, and refuses the ISR that it has written: "
                "the leader waits for another ISR until the next election."
            ),
            source="KafkaController.processAlterPartition; Kafka 2.7 to 3.9 with ZooKeeper",
            noticed_by=("unavailable",),
        ),
    )
    isr_write_conditional: bool = _switch(
        "A leader writes an ISR only if the znode has not been written since. Off is a mutant: a leader that has been "
        "succeeded writes itself back into it.",
        "ReplicationUtils.updateLeaderAndIsr",
        meaning="a leader writes no ISR over its successor's",
        guards=(*guards.LOGS, "two-leaders", "controller-writes-fenced"),
        mutant=Mutant(
            name="unconditional-isr-write",
            doc="A leader that has been succeeded writes its ISR, and with it itself and its epoch, over its successor.",
            source="ReplicationUtils.updateLeaderAndIsr (conditional update)",
            noticed_by=("lost-write", "two-leaders", "log-matching", "controller-writes-fenced"),
        ),
    )
