"""Minimal campaigns, each of which notices a mutant that no library campaign notices."""

from typing import Final

SCRIPTED: Final[dict[str, str]] = {
    "min-isr-ignored": """
        settings: {acks: all, min.insync.replicas: 2, retries: 0}
        cluster: {brokers: 3, controller: 2, topics: [{name: t, assignment: [[0, 1]]}]}
        script:
          - at: 1s
            do: {send: m0}
          - when: {acked: m0}
            do: {broker_crash: {broker: 1}}
          - when: {event: {leader: {broker: 0, isr: [0]}}}
            do: {send: m1}
          - after: 1s
            do: {expect: {not_acked: m1, replicas: {t-0: {0: {log: [m0]}}}}}
        """,
    # A request waits for a paused leader while its batch expires. When the leader resumes, the
    # request has the records of the next batch.
    "expired-memory-reused": """
        settings: {acks: all, retry.backoff.ms: 3s, request.timeout.ms: 10s, delivery.timeout.ms: 11s}
        cluster: {brokers: 2, topics: [{name: t, assignment: [[0]]}, {name: u, assignment: [[1]]}]}
        script:
          - at: 1s
            do: [{network_ack_loss: {client: producer-0, broker: 0, count: 1}}, {send: {value: a, partition: t-0}}]
          - after: 1s
            do: {broker_pause: {broker: 0, duration: 11500ms}}
          - at: 12500ms
            do: {send: {value: b, partition: u-0}}
          - when: {acked: b}
          - at: 20s
            do: {expect: {replicas: {u-0: {1: {log: [b]}}}}}
        """,
    # The answers to m1 and m2 are lost when both records are in the log. The producer repeats m1
    # first.
    "dedup-window-of-one": """
        settings: {acks: all, enable.idempotence: true}
        cluster: {brokers: 2, topics: [{name: t, assignment: [[0, 1]]}]}
        script:
          - at: 1s
            do: {send: m0}
          - when: {acked: m0}
            do:
              - network_ack_loss: {client: producer-0, broker: 0, count: 1}
              - send: m1
              - send: m2
          - after: 5s
            do: {expect: {acked: [m1, m2], replicas: {t-0: {0: {log: [m0, m1, m2]}}}}}
        """,
    "no-epoch-entry-on-election": """
        settings: {acks: all}
        cluster: {brokers: 3, controller: 2, topics: [{name: t, assignment: [[0, 1]]}]}
        script:
          - at: 1s
            do: {send: m0}
          - when: {acked: m0}
            do: {broker_crash: {broker: 0}}
          - when: {event: {leader: {broker: 1}}}
            do: {expect: {replicas: {t-0: {1: {epochs: [[0, 0], [1, 1]]}}}}}
        """,
    "dead-replicas-stay-in-isr": """
        settings: {acks: all}
        cluster: {brokers: 4, controller: 3, topics: [{name: t, assignment: [[0, 1]]}]}
        script:
          - at: 1s
            do: {send: m0}
          - when: {acked: m0}
            do: [{broker_crash: {broker: 3}}, {broker_crash: {broker: 1}}]
          - when: {event: {controller_elected: {controller_epoch: 2}}}
          - after: 1s
            do: {expect: {registered: {1: false}, isr: {t-0: [0]}}}
        """,
    # The controller notices that a broker is gone. Another controller is elected before it has
    # written the election.
    "zombie-controller-writes": """
        settings: {acks: all}
        cluster: {brokers: 4, controller: 3, topics: [{name: t, assignment: [[0, 1]]}]}
        script:
          - at: 1s
            do: {send: m0}
          - when: {acked: m0}
            do: [{session_expiry: {broker: 0}}, {controller_failover: {how: delete_znode}}]
        """,
    # The controller is paused while the leader restarts.
    "bounce-unnoticed": """
        settings: {acks: all}
        cluster:
          brokers:
            - {id: 0, settings: {zookeeper.session.timeout.ms: 2000}}
            - {id: 1, settings: {zookeeper.session.timeout.ms: 2000}}
            - {id: 2, settings: {zookeeper.session.timeout.ms: 30000}}
          controller: 2
          topics: [{name: t, assignment: [[0, 1]]}]
        script:
          - at: 1s
            do: {send: m0}
          - when: {acked: m0}
            do: [{broker_pause: {broker: 2}}, {broker_crash: {broker: 0}}]
          - when: {event: {session_expired: {broker: 0}}}
            do: {broker_restart: {broker: 0}}
          - when: {event: {broker_registered: {broker: 0}}}
            do: {broker_resume: {broker: 2}}
          - after: 5s
            do: {expect: {leader: {t-0: 1}, controller: 2}}
        limits: {recovery: 20s}
        """,
    # Broker 2 dies too. So the controller has a request for broker 1, which it repeats until that
    # broker is back.
    "requests-before-registration": """
        settings: {acks: all}
        cluster:
          brokers:
            - id: 0
            - {id: 1, settings: {zookeeper.session.timeout.ms: 30000}}
            - {id: 2, settings: {zookeeper.session.timeout.ms: 2000}}
            - id: 3
          controller: 3
          topics: [{name: t, assignment: [[1, 0, 2]]}]
        script:
          - at: 1s
            do: {send: m0}
          - when: {acked: m0}
            do: [{broker_crash: {broker: 1}}, {broker_crash: {broker: 2}}]
          - when: {event: {isr_reduced: {partition: t-0}}}
            do: {broker_restart: {broker: 1}}
          - after: 3s
            do: {expect: {no_event: {leader: {broker: 1}}}}
        """,
    # Broker 1 leads with a high watermark of 1 although m1 is committed, because broker 3 cannot
    # fetch.
    "early-isr-expansion": """
        settings: {acks: all}
        cluster: {brokers: 5, controller: 4, topics: [{name: t, assignment: [[0, 1, 2, 3]]}]}
        script:
          - at: 1s
            do: {send: m0}
          - when: {replicas: {t-0: {0: {hw: 1}, 1: {hw: 1}, 2: {hw: 1}, 3: {hw: 1}}}}
            do: {message: {action: hold, api: Fetch, kind: request, from: 2, to: 0, id: fetch-of-2}}
          - when: {event: {message_rule: {rule: fetch-of-2}}}
            do: {send: m1}
          - when: {isr: {t-0: [0, 1, 3]}, replicas: {t-0: {0: {hw: 2}}}}
            do:
              - expect: {replicas: {t-0: {1: {leo: 2, hw: 1}, 2: {leo: 1}, 3: {leo: 2, hw: 1}}}}
              - message: {action: hold, kind: request, from: 3, to: 1, id: of-3}
              - message: {action: hold, api: Fetch, kind: response, from: 1, to: 2, id: answer-to-2}
              - broker_crash: {broker: 0}
              - release: {id: fetch-of-2}
          - when: {event: {fetch: {broker: 1, replica: 2, offset: 1}}}
          - after: 1s
            do: [{release: {id: of-3}}, {release: {id: answer-to-2}}]
        """,
    # Five voters with slow links run for election at once.
    "two-votes-an-epoch": """
        kafka: "4.3"
        settings: {acks: all, controller.quorum.election.timeout.ms: 100, controller.quorum.fetch.timeout.ms: 600}
        cluster:
          brokers: 3
          kraft: {voters: 5}
          network: {latency: 1ms..60ms}
          topics: [{name: t, assignment: [[0, 1, 2]]}]
        workload: {duration: 60s, producers: [{name: p, rate: 2/s}]}
        faults:
          - rate: 30/m
            any_of: [{controller_failover: {how: crash, restart_after: 100ms..1s}}]
        """,
    # A whole quorum restarts, and each voter has only its latest snapshot.
    "snapshot-cuts-log": """
        kafka: "4.3"
        settings: {acks: all, metadata.log.max.record.bytes.between.snapshots: 500}
        cluster: {brokers: 3, topics: [{name: t, assignment: [[0, 1, 2]]}]}
        script:
          - at: 1s
            do: {broker_crash: {broker: 1}}
          - when: {event: {isr_reduced: {partition: t-0}}}
            do: {broker_restart: {broker: 1}}
          - when: {isr: {t-0: [0, 1, 2]}}
            do:
              - broker_crash: {broker: followers of zookeeper, restart_after: 1s}
              - broker_crash: {broker: leader of zookeeper, restart_after: 1s}
          - after: 20s
            do: {send: m0}
          - when: {acked: m0}
        """,
    # Two sessions expire at once: the fencing of the second broker is uncommitted when that of the
    # first is committed.
    "snapshot-of-uncommitted": """
        kafka: "4.3"
        settings: {acks: all, metadata.log.max.record.bytes.between.snapshots: 1}
        cluster: {brokers: 4, network: {latency: 5ms}, topics: [{name: t, assignment: [[0, 1, 2, 3]]}]}
        script:
          - at: 1s
            do: [{broker_crash: {broker: 1}}, {broker_crash: {broker: 2}}]
          - when: {isr: {t-0: [0, 3]}}
            do: [{broker_restart: {broker: 1}}, {broker_restart: {broker: 2}}]
          - when: {isr: {t-0: [0, 1, 2, 3]}}
            do: {send: m0}
          - when: {acked: m0}
        """,
    # The request for the ISR arrives when broker 1 has restarted with an empty log.
    "former-life-joins-isr": """
        kafka: "4.3"
        settings: {acks: all, replica.lag.time.max.ms: 2s}
        cluster: {brokers: 3, disk: {writeback: never}, topics: [{name: t, assignment: [[0, 1, 2]]}]}
        script:
          - at: 1s
            do: {message: {action: hold, api: Fetch, kind: request, from: 1, to: 0, id: fetch-of-1}}
          - when: {event: {message_rule: {rule: fetch-of-1}}}
            do: {send: m0}
          - when: {isr: {t-0: [0, 2]}, acked: m0}
            do:
              - message: {action: hold, api: AlterPartition, kind: request, from: 0, id: expand}
              - release: {id: fetch-of-1}
          - when: {event: {message_rule: {rule: expand}}}
            do:
              - message: {action: hold, api: Fetch, kind: request, from: 1, to: 0, id: new-fetch-of-1}
              - broker_crash: {broker: 1, kind: power_loss}
              - broker_restart: {broker: 1}
          - when: {event: {broker_registered: {broker: 1}}}
          - after: 1s
            do: {release: {id: expand}}
          - after: 1s
            do: [{expect: {isr: {t-0: [0, 2]}}}, {release: {id: new-fetch-of-1}}]
        """,
    # The marker of the first transaction has not reached the leader when the second one starts.
    "next-transaction-unverified": """
        kafka: "4.3"
        settings: {acks: all, min.insync.replicas: 2, auto.leader.rebalance.enable: false, transaction.state.log.num.partitions: 1}
        cluster:
          brokers: 3
          topics:
            - {name: t, assignment: [[1, 2, 0]]}
            - {name: __transaction_state, assignment: [[0, 1, 2]], settings: {cleanup.policy: compact, min.insync.replicas: 2}}
        workload:
          producers: [{name: app, settings: {transactional.id: app}}]
          consumers: [{settings: {isolation.level: read_committed}}]
        script:
          - at: 1s
            do: [begin_transaction, {send: {value: first, partition: t-0}}]
          - when: {event: {acknowledged: {values: first}}}
            do:
              - message: {action: hold, api: WriteTxnMarkers, kind: request, from: 0, to: 1, id: marker}
              - commit_transaction
          - when: {acked: first, event: {message_rule: {rule: marker}}}
            do: [begin_transaction, {send: {value: next, partition: t-0}}]
          - after: 2s
            do: {release: {id: marker}}
          - after: 2s
            do: abort_transaction
          - when: {failed: next}
        """,
}
"""Campaigns by mutant. Each has its expected outcome on its release without the mutant."""
