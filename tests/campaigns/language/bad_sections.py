"""Campaign files whose sections do not fit together."""

# Each text with all of its problems, as "line:column" and an excerpt of the message.
BAD_SECTIONS: dict[str, tuple[str, list[tuple[str, str]]]] = {
    # Cluster
    "number of brokers": ("cluster: {brokers: 101}\n", [("1:20", "101 is too large: at most 100")]),
    "no brokers": ("cluster: {brokers: []}\n", [("1:20", "a cluster needs a broker")]),
    "brokers": (
        "cluster:\n  brokers:\n    - id: 0\n    - id: 0\n    - rack: a\n    - id: 1001\n",
        [
            ("4:11", "duplicate broker 0; it is already defined at line 3"),
            ("5:7", "brokers: `id` is missing"),
            ("6:11", "id: 1001 is too large"),
        ],
    ),
    "a fault beside its time": (
        "workload: {duration: 9s}\nfaults:\n  - at: 1s\n    broker_crash: {broker: 0}\n",
        [("4:5", "unknown key `broker_crash`; `broker_crash` belongs under `do`")],
    ),
    "controller": ("cluster: {controller: 3}\n", [("1:23", "unknown broker 3; the brokers are 0, 1, 2")]),
    "topics": (
        """\
        cluster:
          brokers: 2
          topics:
            - name: t
              replication_factor: 3
            - name: t
            - name: u/v
            - partitions: 10001
              name: w
        """,
        [
            ("5:27", "replication factor 3 is larger than the number of brokers, 2"),
            ("6:13", "duplicate topic t; it is already defined at line 4"),
            ("7:13", "`u/v` is not a valid topic name"),
            ("8:19", "10001 is too large: at most 10000"),
        ],
    ),
    "no topics": ("cluster: {topics: []}\n", [("1:19", "a cluster needs a topic")]),
    "too many partitions": (
        "cluster:\n  topics:\n    - {name: t, partitions: 6000}\n    - {name: u, partitions: 6000}\n",
        [("4:7", "too many partitions in all: at most 10000")],
    ),
    "assignments": (
        """\
        cluster:
          topics:
            - {name: a, assignment: [[0, 0]]}
            - {name: b, assignment: [[0, 7]]}
            - {name: c, assignment: [[0, 1], [2]]}
            - {name: d, assignment: [[0, 1]], partitions: 2}
            - {name: e, assignment: [[0, 1]], replication_factor: 3}
            - {name: f, assignment: []}
        """,
        [
            ("3:34", "broker 0 has two replicas of the same partition"),
            ("4:34", "unknown broker 7; the brokers are 0, 1, 2"),
            ("5:38", "partition 1 has 1 replica, but partition 0 has 2"),
            ("6:29", "the assignment has 1 partition, but `partitions` is 2"),
            ("7:30", "partition 0 has 2 replicas, but `replication_factor` is 3"),
            ("8:29", "an assignment needs a list of brokers for each partition"),
        ],
    ),
    # Workload
    "clients": (
        """\
        workload:
          duration: 60s
          producers:
            - name: p
            - name: p
            - name: zookeeper
            - rate: 1/s
              start: 10s
              stop: 5s
            - rate: 1/s
              start: 60s
            - rate: 1/s
              stop: 70s
            - partitions: [t-0, t-1, t-0, t, u-0]
            - partitions: []
          consumers:
            - name: p
            - {poll_interval: 0s}
        """,
        [
            ("5:13", "duplicate client name p; it is already defined at line 4"),
            ("6:13", "`zookeeper` is not a valid client name"),
            ("9:13", "the producer stops at 5s, which is not after its start at 10s"),
            ("11:14", "the producer starts at 60s, which is not before the workload's end at 60s"),
            ("13:13", "the producer stops at 70s, after the workload's end at 60s"),
            ("14:25", "unknown partition `t-1`; topic t has only t-0"),
            ("14:30", "t-0 is listed twice"),
            ("14:35", "`t` is a topic; write a partition of it such as `t-0`"),
            ("14:38", "unknown partition `u-0`; known: t-0"),
            ("15:19", "the list of partitions is empty"),
            ("17:13", "duplicate client name p; it is already defined at line 4"),
            ("18:23", "more than 0"),
        ],
    ),
    "rate without an end": (
        "workload: {producers: [{rate: 1/s}]}\n",
        [("1:25", "records are generated for the workload's `duration`, which is missing")],
    ),
    "too many clients": (
        f"workload: {{producers: [{', '.join(101 * ['{}'])}]}}\n",
        [("1:23", "101 producers are too many: at most 100")],
    ),
    # Script
    "steps": (
        """\
        script:
          - {}
          - {note: only words}
          - {at: 1s, do: []}
          - {do: {}}
          - {do: {send: a, elect_preferred_leaders: {}}}
          - {at: 5s}
          - {at: 4s}
          - {wen: {}}
        """,
        [
            ("2:5", "a step needs a condition"),
            ("3:5", "a step needs a condition"),
            ("4:18", "`do` is empty"),
            ("5:10", "name one action or fault"),
            ("6:10", "name one action or fault, not 2 (send, elect_preferred_leaders)"),
            ("8:10", "an earlier one waits until 5s (line 7)"),
            ("9:6", "unknown key `wen`; did you mean `when`?"),
        ],
    ),
    "actions": (
        """\
        script:
          - do: sned
          - do: {brker_crash: {broker: 1}}
          - do: {send: {partition: t-0}}
          - do: {send: {value: a, partition: t-3, producer: bob}}
          - do: {restart_producer: producer-1}
          - do: [broker_crash, {broker_crash: {broker: 3, kind: power, restart_after: 2s..1s}}]
          - do: {expect: {}}
        """,
        [
            ("2:9", "unknown action or fault `sned`; did you mean `send`?"),
            ("3:10", "unknown action or fault `brker_crash`; did you mean `broker_crash`?"),
            ("4:16", "send: `value` is missing"),
            ("5:38", "unknown partition `t-3`"),
            ("5:53", "unknown producer `bob`; known: producer-0"),
            ("6:28", "unknown producer `producer-1`; did you mean `producer-0`?"),
            ("7:10", "broker_crash: there is no value"),
            ("7:48", "unknown broker 3"),
            ("7:57", "kind: `power` is not one of process, power_loss"),
            ("7:79", "the range `2s..1s` is empty"),
            ("8:18", "the condition is empty"),
        ],
    ),
    "which producer": (
        "workload: {producers: [{name: a}, {name: b}]}\nscript: [{do: {send: m}}]\n",
        [("2:22", "name the `producer`: a, b")],
    ),
    "no producer": (
        "workload: {producers: []}\nscript: [{do: {send: m}}]\n",
        [("2:22", "there is no producer to send it")],
    ),
    "references of faults": (
        """\
        script:
          - do: {broker_pause: {broker: leader of t-9}}
          - do: {broker_pause: {broker: leader}}
          - do: {partition: {between: [0, 5], and: [zookeper, producer-0]}}
          - do: {partition: {between: 0, and: []}}
          - do: {message: {action: hold, api: Fech, from: 9, to: 1}}
          - do: {network_ack_loss: {client: bob, probability: 1.5, count: 0, skip: -1}}
          - do: {release: {id: massage}}
          - do: {partition: {and: 0}}
        """,
        [
            ("2:33", "unknown partition `t-9`"),
            ("3:33", "`leader` is not a broker: write an id, `any`, `controller`, `leader of t-0`"),
            ("4:35", "unknown broker 5"),
            ("4:45", "unknown end of a link `zookeper`; did you mean `zookeeper`?"),
            ("5:39", "and: the list is empty"),
            ("6:39", "api: `Fech` is not one of"),
            ("6:51", "unknown broker 9"),
            ("7:37", "unknown client `bob`"),
            ("7:55", "a probability is a number from 0 to 1"),
            ("7:67", "count: 0 is too small"),
            ("7:76", "skip: -1 is too small"),
            ("9:21", "partition: `between` is missing"),
        ],
    ),
    "unknown message rule": (
        "script:\n  - do: {message: {action: hold, id: answer}}\n  - do: {release: {id: anser}}\n",
        [("3:24", "unknown message rule `anser`; did you mean `answer`?")],
    ),
    "conditions": (
        """\
        cluster: {topics: [{name: t, assignment: [[0, 1]]}]}
        script:
          - when: {leeder: {t-0: 1}}
          - when: {leader: {t-0: 2, u-0: 1}}
          - when: {isr: {t-0: [0, 9]}, leader_epoch: {t-5: 1}}
          - when: {replicas: {t-0: {2: {}, x: {}, 1: {hww: 1, hw: -1, epochs: [[0]], remote: {7: 1}}}}}
          - when: {brokers: {3: up, 1: sleeping}, registered: {1: yes}, controller: 8}
          - when: {event: truncat}
          - when: {no_event: [{truncate: {brokr: 1, broker: 8, partition: t-7, to_offset: x}}]}
          - when: {leader: {}, acked: }
          - when: {replicas: []}
        """,
        [
            ("3:12", "unknown key `leeder`; did you mean `leader`?"),
            ("4:26", "broker 2 has no replica of t-0; its assignment is [0, 1]"),
            ("4:29", "unknown partition `u-0`"),
            ("5:27", "unknown broker 9"),
            ("5:47", "unknown partition `t-5`"),
            ("6:29", "broker 2 has no replica of t-0"),
            ("6:36", "expected a whole number, not `x`"),
            ("6:47", "unknown key `hww`; did you mean `hw`?"),
            ("6:59", "hw: -1 is too small"),
            ("6:72", "write a pair [leader epoch, start offset]"),
            ("6:87", "unknown broker 7"),
            ("7:22", "unknown broker 3"),
            ("7:32", "`sleeping` is not one of up, down, paused"),
            ("7:59", "write true or false, not `yes`"),
            ("7:77", "unknown broker 8"),
            ("8:19", "unknown event `truncat`; did you mean `truncate`?"),
            ("9:35", "unknown field `brokr`; did you mean `broker`?"),
            ("9:53", "unknown broker 8"),
            ("9:67", "unknown partition `t-7`"),
            ("9:83", "expected a whole number, not `x`"),
            ("10:20", "this part of the condition is empty"),
            ("10:24", "acked: there is no value"),
            ("11:22", "this part of the condition is empty"),
        ],
    ),
    # Faults
    "timing": (
        """\
        workload: {duration: 1m}
        faults:
          - do: controller_failover
          - {at: 1s, every: 2s, do: controller_failover}
          - {att: 1s, do: controller_failover}
          - {at: 61s, do: controller_failover}
          - {at: 1s, from: 0s, times: 2, do: controller_failover}
          - {rate: 1/m, until: 10s, from: 20s, do: controller_failover}
          - {rate: 1/m, from: 60s, do: controller_failover}
          - {every: 20s, until: 10s, do: controller_failover}
          - {when: {}, do: controller_failover}
        """,
        [
            ("3:5", "an entry needs one of at, when, every, rate; this has none"),
            ("4:5", "an entry needs one of at, when, every, rate; this has at, every"),
            ("5:6", "unknown key `att`; did you mean `at`?"),
            ("6:10", "this never strikes: the workload ends at 60s"),
            ("7:14", "`from` goes with `every` or `rate`, not with `at`"),
            ("7:24", "`times` goes with `when`, not with `at`"),
            ("8:24", "the end at 10s is not after the start at 20s"),
            ("9:23", "the start at 60s is not before the workload's end at 60s"),
            ("10:13", "this never strikes: the first time would be 20s"),
            ("11:12", "the condition is empty"),
        ],
    ),
    "never": (
        "faults:\n  - {rate: 1/m, do: controller_failover}\n  - {at: 1m, do: controller_failover}\n",
        [("2:5", "this has no end: add `until`"), ("3:5", "this never strikes: there is no script")],
    ),
    "which fault": (
        """\
        workload: {duration: 1m}
        faults:
          - at: 1s
          - {at: 1s, do: controller_failover, any_of: [controller_failover]}
          - {rate: 1/m, do: [controller_failover, controller_failover]}
          - {at: 1s, any_of: []}
          - {at: 1s, do: send}
          - {at: 1s, do: {controller_failover: {}, broker_crash: {broker: 1}}}
          - {at: 1s, do: {controller_failover: {hw: crash}}}
        """,
        [
            ("3:5", "give one of `do` (a fault), `any_of` (a list of faults to choose from at random)"),
            ("4:5", "give one of `do` (a fault), `any_of` (a list of faults to choose from at random)"),
            (
                "5:21",
                "`do` takes several faults only with `every`, or with a single time in `at`; `any_of` chooses one of several",
            ),
            ("6:22", "any_of: name a fault"),
            ("7:18", "unknown fault `send`"),
            ("8:18", "name one fault, not 2 (broker_crash, controller_failover)"),
            ("9:41", "unknown key `hw`"),
        ],
    ),
    # Expectations
    "expect": (
        "expect:\n  verdict: broken\n  rules: {lost-writes: violated, duplicate: hold}\n  final: {controller: 7}\n",
        [
            ("2:12", "verdict: `broken` is not one of held, permitted, violated, inconclusive"),
            ("3:11", "unknown rule `lost-writes`; did you mean `lost-write`?"),
            ("3:45", "duplicate: `hold` is not one of held"),
            ("4:23", "unknown broker 7"),
        ],
    ),
    "unknown probes": (
        """\
        expect:
          probes: [truncated, truncated-below-hwm]
        variants: {one: {expect: {probes: nonsense}}}
        """,
        [
            ("2:23", "did you mean `truncated-below-hw`?"),
            ("3:35", "`nonsense` is not one of controller-changed"),
        ],
    ),
    # Invariants
    "unknown invariants": (
        "invariants:\n  - log-maching\n  - hw-monotonic\n  - two-leaders\n",
        [
            ("2:5", "did you mean `log-matching`?"),
            ("4:5", "`two-leaders` is not one of"),
        ],
    ),
    "all and none stand alone": (
        "invariants: [all, log-matching, none]\n",
        [
            ("1:14", "invariants: `all` cannot be combined with other names"),
            ("1:33", "invariants: `none` cannot be combined with other names"),
        ],
    ),
    "expectation of an unwatched invariant": (
        """\
        invariants: log-matching
        expect: {rules: {log-matching: held, two-leaders: held}}
        variants: {blind: {invariants: none}}
        """,
        [
            ("2:18", "log-matching is not judged, because `invariants` leaves it out (in variant blind)"),
            ("2:38", "two-leaders is not judged, because `invariants` leaves it out"),
        ],
    ),
    # Variants
    "variants": (
        """\
        variants:
          base: {}
          a/b: {}
          c: 3
          d: {name: x, variants: {}, kafka: 0.9, faults: [{at: 1s}]}
        script:
          - {at: 1s, only: [e, base, c]}
        """,
        [
            ("2:3", "`base` is the campaign without a variant"),
            ("3:3", "`a/b` is not a valid variant name"),
            ("4:6", "variant `c`: expected a mapping of changed keys"),
            ("5:7", "`name` belongs to the campaign, not to a variant"),
            ("5:16", "`variants` belongs to the campaign, not to a variant"),
            ("5:37", "release `0.9` is not modelled"),
            ("5:51", "give one of `do` (a fault), `any_of`"),
            ("7:21", "unknown variant `e`"),
        ],
    ),
    "a problem of the base is not repeated for each variant": (
        "settings: {acks: 7}\nvariants: {a: {kafka: '2.0'}, b: {kafka: '0.11'}}\n",
        [("1:18", "acks: `7` is not one of 0, 1, all")],
    ),
    "a key of the base that is wrong only in a variant": (
        "settings: {delivery.timeout.ms: 2m}\nvariants: {old: {kafka: '0.11'}, oldest: {kafka: '0.10.2'}}\n",
        [
            ("1:12", "Kafka 0.11 has no delivery.timeout.ms; it came with 2.1 (in variant old)"),
            ("1:12", "Kafka 0.10.2 has no delivery.timeout.ms; it came with 2.1 (in variant oldest)"),
        ],
    ),
    "too many variants": (
        "variants: {" + ", ".join(f"v{number}: {{}}" for number in range(101)) + "}\n",
        [("1:1", "101 variants are too many: at most 100")],
    ),
    # A mistake is reported alone, without others that would follow from it.
    "a broken topic hides its partitions": (
        "cluster:\n  topics: [{nam: u}]\nscript:\n  - do: {send: {value: a, partition: u-0}}\n",
        [("2:12", "topics: `name` is missing"), ("2:13", "unknown key `nam`; did you mean `name`?")],
    ),
    "broken brokers hide their ids": (
        (
            "cluster:\n  brokers: [{id: 0}, {id: x}]\n  controller: 1\nfaults:\n"
            "  - {rate: 1/s, until: 9s, do: {broker_crash: {broker: 1}}}\n"
        ),
        [("2:27", "id: expected a whole number, not `x`")],
    ),
    "a broken duration is not reported as missing": (
        "workload: {duration: 10, producers: [{rate: 1/s}]}\nfaults: [{rate: 1/s, do: controller_failover}]\n",
        [("1:22", "10 has no unit")],
    ),
    "an unknown release causes no further problems": (
        "kafka: 0.12\nsettings: {enable.idempotence: true, acks: 1}\n",
        [("1:8", "release `0.12` is not modelled")],
    ),
    "shape and meaning at once": (
        "cluster: {brokers: 3, controller: 9}\nscript:\n  - {at: 1, do: {broker_crash: {broker: 8}}}\n",
        [("1:35", "unknown broker 9"), ("3:10", "1 has no unit"), ("3:41", "unknown broker 8")],
    ),
    # Groups
    "a group on too few brokers": (
        "settings: {group.id: g}\ncluster: {brokers: 2}\nworkload:\n  consumers: [{}]\n",
        [
            (
                "4:15",
                "2 brokers cannot create __consumer_offsets with 3 replicas",
            )
        ],
    ),
    "keys that need group.id": (
        "workload:\n  consumers: [{commit: after, topics: [t]}]\n",
        [
            ("2:16", "`commit` applies only to consumers with the setting group.id"),
            (
                "2:31",
                "`topics` applies only to consumers with the setting group.id; add `settings: {group.id: NAME}`",
            ),
        ],
    ),
    "a member that contradicts itself": (
        (
            "settings: {group.id: g}\nworkload:\n  consumers:\n"
            "    - {commit: after, settings: {enable.auto.commit: true}}\n"
            "    - {topics: [t], partitions: [t-0]}\n"
            "    - {start: 3s, stop: 2s, settings: {heartbeat.interval.ms: 10s}}\n"
        ),
        [
            ("4:16", "contradicts enable.auto.commit"),
            ("5:8", "a consumer either subscribes to topics or assigns itself partitions"),
            ("6:25", "the consumer stops at 2s, which is not after its start at 3s"),
            ("6:63", "heartbeat.interval.ms must be less than session.timeout.ms"),
        ],
    ),
    "a partition of an unused internal topic": (
        "script: [{when: {leader: {__consumer_offsets-1: 0}}}]\n",
        [("1:27", "unknown partition `__consumer_offsets-1`")],
    ),
}
