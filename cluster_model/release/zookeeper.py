"""Declares the switches of the ZooKeeper controller, and of the brokers that obey it."""

from functools import partial
from typing import Final

from harrow.cluster_model.lazy_dataclass import dataclass
from harrow.cluster_model.release import guards
from harrow.cluster_model.release.subjects import REPEATED_WRITES, REPLICATION, SHUTDOWN, ZOOKEEPER
from harrow.cluster_model.release.switch import Mutant, Repair, switch

_switch: Final = partial(switch, subject=ZOOKEEPER)


@dataclass(frozen=True, slots=True, kw_only=True)
class ZooKeeperSwitches:
    """Each field is a switch. Its default is the value that the default release has."""

    control_requests_carry_broker_epoch: bool = _switch(
        "Control requests carry the broker epoch, and the controller notices a broker that restarted "
        "between two of its reads of /brokers/ids.",
        "KIP-380 (KAFKA-7235), KAFKA-1120",
        meaning="control requests carry the broker epoch (KIP-380)",
        since="2.2",
        guards=(*guards.LEADERS, *guards.LOGS, "registrations-known"),
        repair=Repair(
            "KIP-380", "control requests carry the broker epoch, so a broker that restarts is noticed"
        ),
        mutant=Mutant(
            "bounce-unnoticed",
            "The controller does not notice a broker that restarts between two of its reads, and sends it "
            "nothing. The leader of that broker's partitions does not lead.",
            source="KIP-380 (KAFKA-7235), KAFKA-1120; Kafka before 2.2",
            noticed_by=("registrations-known", "unavailable"),
        ),
    )
    requests_wait_for_registration: bool = _switch(
        "A starting broker handles no request before it has registered in ZooKeeper, so none that was sent "
        "to its previous incarnation.",
        "KAFKA-6772, KafkaServer.startup (SocketServer.startProcessors)",
        meaning="a starting broker handles no request before it has registered in ZooKeeper",
        since="2.0",
        guards=(*guards.LEADERS, *guards.LOGS, "controller-epoch-monotonic", "registered-before-control"),
        repair=Repair("KAFKA-6772"),
        mutant=Mutant(
            "requests-before-registration",
            "A starting broker obeys requests that were sent to its previous incarnation.",
            source="KAFKA-6772, KafkaServer.startup (SocketServer.startProcessors); Kafka up to 1.1",
            noticed_by=("registered-before-control",),
        ),
    )
    controller_writes_fenced: bool = _switch(
        "The controller's writes to ZooKeeper are conditional on the version of /controller_epoch.",
        "KAFKA-6082",
        meaning="a deposed controller cannot write to ZooKeeper (KAFKA-6082)",
        since="2.1",
        guards=(*guards.LEADERS, *guards.LOGS, "controller-writes-fenced"),
        repair=Repair("KAFKA-6082"),
        mutant=Mutant(
            "zombie-controller-writes",
            "A deposed controller still writes to ZooKeeper. It elects leaders that no broker hears of, and "
            "its successor uses the state from before.",
            source="KAFKA-6082; Kafka up to 2.0",
            noticed_by=("controller-writes-fenced",),
        ),
    )
    failover_removes_dead_replicas: bool = _switch(
        "A new controller removes replicas of dead brokers from ISRs. Before, a broker that died while "
        "there was no controller stayed in them until its leader noticed.",
        "KAFKA-3143, ReplicaStateMachine.startup",
        meaning="a new controller removes replicas of dead brokers from ISRs",
        since="2.3",
        guards=(*guards.LOGS, "failover-shrinks-isr"),
        repair=Repair("KAFKA-3143"),
        mutant=Mutant(
            "dead-replicas-stay-in-isr",
            "A new controller leaves brokers in ISRs that died while there was no controller.",
            source="KAFKA-3143; Kafka up to 2.2",
            noticed_by=("failover-shrinks-isr",),
        ),
    )
    shutdown_awaits_controller: bool = _switch(
        "A broker that shuts down retries while there is no controller. Before, it gave up at once "
        "(ZkUtils.getController threw).",
        "KafkaServer.controlledShutdown",
        subject=SHUTDOWN,
        meaning="a broker that shuts down waits for a controller",
        since="1.1",
        is_read_in_campaign=False,
    )
    shutting_down_leader_counts_as_offline: bool = _switch(
        "When any broker fails, partitions whose leader is in controlled shutdown count as offline too. "
        "With unclean elections a replica outside the ISR is elected although the leader is still alive.",
        "KIP-112, KafkaController.onReplicasBecomeOffline",
        subject=SHUTDOWN,
        meaning="a leader in controlled shutdown counts as dead when any broker fails",
        since="1.0",
    )
    shutdown_request_preempted: bool = _switch(
        "A controller whose session expires refuses the controlled shutdowns in its queue. Before, it "
        "forgot them, and the broker waited for the socket timeout.",
        "KAFKA-5692, KafkaController.preemptControlledShutdown",
        subject=SHUTDOWN,
        meaning="a deposed controller refuses the shutdowns in its queue",
        since="2.2",
    )
    controller_epoch_fencing: bool = _switch(
        "Brokers refuse control requests with an older controller epoch (STALE_CONTROLLER_EPOCH).",
        "ReplicaManager.becomeLeaderOrFollower",
        meaning="brokers refuse a controller of an older epoch",
        guards=(*guards.LEADERS, *guards.LOGS, "controller-epoch-monotonic", "leader-epoch-monotonic"),
        mutant=Mutant(
            "stale-controller-accepted",
            "Brokers obey a deposed controller, so a paused one that resumes appoints its own leaders.",
            source="ReplicaManager.becomeLeaderOrFollower (STALE_CONTROLLER_EPOCH)",
            noticed_by=("controller-epoch-monotonic",),
        ),
    )
    leader_epoch_fencing: bool = _switch(
        "Brokers ignore a LeaderAndIsr whose leader epoch is not newer than their own.",
        "ReplicaManager.becomeLeaderOrFollower",
        subject=REPLICATION,
        meaning="brokers refuse a leader epoch that is not newer than their own",
        guards=(*guards.LEADERS, *guards.LOGS, "leader-epoch-monotonic"),
        mutant=Mutant(
            "stale-leader-epoch-accepted",
            "Brokers obey a LeaderAndIsr of an older leader epoch, so a delayed one makes a former leader "
            "lead again.",
            noticed_by=("leader-epoch-monotonic", "lost-write"),
        ),
    )
    isr_altered_by_controller: bool = _switch(
        "With ZooKeeper a leader asks the controller for another ISR (AlterPartition, AlterIsr up to 3.1). "
        "The controller writes the znode, uses the new ISR at once and tells all brokers. Before, the "
        "leader wrote the znode itself, and the controller learned of it later (/isr_change_notification). "
        "KRaft does it this way in every release.",
        "KIP-497 (KAFKA-8836), DefaultAlterPartitionManager, KafkaController.processAlterPartition",
        meaning="the controller writes ISR changes for leaders (KIP-497)",
        since="2.7",
        is_repair=False,
        is_always_in_kraft=True,
    )
    repeated_isr_write_recognised: bool = _switch(
        "With ZooKeeper a controller whose ISR write is refused checks whether the znode has that ISR "
        "already, and then counts it as written. No release has done that since leaders ask the controller "
        "(2.7). If the connection to ZooKeeper breaks before the answer, the write is repeated and refused, "
        "and the leader waits until the partition has another leader.",
        "KafkaZkClient.updateLeaderAndIsr, KafkaController.processAlterPartition, "
        "Partition.handleAlterPartitionError",
        subject=REPEATED_WRITES,
        meaning="a controller recognises an ISR that it has written itself when it repeats the write",
        latest=False,
        safe=True,
        guards=("unavailable",),
        mutant=Mutant(
            "repeated-isr-write-refused",
            "A controller repeats an ISR write after it has lost its connection to ZooKeeper, and refuses "
            "the ISR that it wrote itself. The leader waits for an ISR change until the next election.",
            source="KafkaController.processAlterPartition; Kafka 2.7 to 3.9 with ZooKeeper",
            noticed_by=("unavailable",),
            kafka="2.8",
        ),
    )
    isr_write_conditional: bool = _switch(
        "A leader writes an ISR only if the znode has not changed since it was read.",
        "ReplicationUtils.updateLeaderAndIsr",
        meaning="a leader writes no ISR over its successor's",
        guards=(*guards.LOGS, "two-leaders", "controller-writes-fenced"),
        mutant=Mutant(
            "unconditional-isr-write",
            "A deposed leader writes its ISR, together with itself and its epoch, over its successor's "
            "state.",
            source="ReplicationUtils.updateLeaderAndIsr (conditional update)",
            noticed_by=("lost-write", "two-leaders", "log-matching", "controller-writes-fenced"),
        ),
    )
