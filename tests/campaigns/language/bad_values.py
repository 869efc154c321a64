"""Campaign files with mistakes in their YAML, their keys, single values and settings."""

# Each text with all of its problems, as "line:column" and an excerpt of the message.
BAD_VALUES: dict[str, tuple[str, list[tuple[str, str]]]] = {
    # YAML
    "empty": ("", [("1:1", "the file is empty")]),
    "comments only": ("# nothing\n", [("1:1", "the file is empty")]),
    "a resource of Strimzi": (
        "apiVersion: v1\nkind: Kafka\n",
        [("1:1", "it is no campaign; `harrow import`")],
    ),
    "no mapping": ("- kafka\n", [("1:1", "a campaign is a mapping")]),
    "not closed": ("cluster: {brokers: 3\n", [("1:21", "not valid YAML")]),
    "colon in text": ("description: a: b\n", [("1:15", "put the value in quotes")]),
    "reserved character": ("description: @home\n", [("1:14", "put the text in quotes")]),
    "duplicate keys": (
        "kafka: '2.4'\ncluster: {brokers: 1, brokers: 2}\nkafka: '2.0'\n",
        [("2:23", "duplicate key `brokers`; the first is on line 2"), ("3:1", "the first is on line 1")],
    ),
    "key that is a list": ("[a]: 1\n", [("1:1", "a key must be text, not a list")]),
    "key that is a mapping": ("{a: b}: 1\n", [("1:1", "a key must be text, not a mapping")]),
    "no key": ("~: 1\n", [("1:1", "a value without a key")]),
    "merge key": ("<<: {kafka: '2.4'}\n", [("1:1", "merge keys")]),
    "tags": (
        "kafka: !!str 2.4\ndescription: !x y\n",
        [("1:8", "the tag `!!str`"), ("2:14", "the tag `!x`")],
    ),
    "two documents": ("kafka: '2.4'\n---\nkafka: '2.0'\n", [("2:1", "a second document begins here")]),
    "tab": ("cluster:\n\tbrokers: 3\n", [("2:1", "a tab at the beginning of a line")]),
    "tab after spaces": ("cluster:\n  \tbrokers: 3\n", [("2:3", "a tab at the beginning of a line")]),
    "control character": ("kafka: '2.4'\n# \x07\n", [("2:3", "does not allow the character U+0007")]),
    "alias without anchor": ("cluster: *c\n", [("1:10", "the alias *c has no anchor &c before it")]),
    "alias inside of itself": ("script: &s [*s]\n", [("1:13", "is inside its own anchor")]),
    "aliases that explode": (
        "a: &a [1, 2, 3, 4, 5, 6, 7, 8, 9, 0]\n"
        + "".join(f"{k}: &{k} [{', '.join(10 * [f'*{a}'])}]\n" for a, k in zip("abcd", "bcde", strict=True)),
        [("5:36", "more than 100000 keys and values")],
    ),
    "too deep": ("a: " + "[" * 70 + "]" * 70, [("1:68", "nested more than 64 levels deep")]),
    "too deep through aliases": (
        "a: &a " + "[" * 40 + "]" * 40 + "\nb: " + "[" * 40 + "*a" + "]" * 40,
        [("2:44", "through the alias *a")],
    ),
    "too large": ("# " + "x" * (1 << 20), [("1:1", "larger than 1 MiB")]),
    # Keys
    "unknown keys": (
        "kafkka: '2.4'\ncluster:\n  broker: 3\n",
        [("1:1", "unknown key `kafkka`; did you mean `kafka`?"), ("3:3", "did you mean `brokers`?")],
    ),
    "keys in the wrong place": (
        "topics: []\nduration: 3s\nacks: all\n",
        [
            ("1:1", "unknown key `topics`; it belongs under `cluster`"),
            ("2:1", "unknown key `duration`; it belongs under `workload`"),
            ("3:1", "unknown key `acks`; a setting belongs under `settings`"),
        ],
    ),
    "no value": ("kafka:\ncluster:\n", [("1:1", "kafka: there is no value"), ("2:1", "there is no value")]),
    "wrong shapes": (
        "name: [x]\ndescription: {a: b}\ncluster: [3]\nscript: {}\nworkload: []\n",
        [
            ("1:7", "name: expected text"),
            ("2:14", "description: expected a single value, not a mapping"),
            ("3:10", "cluster: expected a mapping (`key: value`), not a list"),
            ("4:9", "script: expected a list"),
            ("5:11", "workload: expected a mapping (`key: value`), not a list"),
        ],
    ),
    "name": ("name: a/b\n", [("1:7", "name: `a/b` is not a valid campaign name")]),
    # Values
    "releases": (
        "kafka: 2.1\n",
        [
            (
                "1:8",
                "release `2.1` is not modelled; there are 0.10.2, 0.11, 1.1, 2.0, 2.4, 2.8, 3.6, 3.9, 4.0, 4.3, 4.4 and latest; 2.0 is the newest before it",
            )
        ],
    ),
    "patch release": ("kafka: 2.4.1\n", [("1:8", "write 2.4")]),
    "booleans": (
        "settings:\n  unclean.leader.election.enable: on\n  auto.leader.rebalance.enable: nope\n",
        [("2:35", "write true or false, not `on` (did you mean true?)"), ("3:33", "write true or false")],
    ),
    "numbers": (
        "settings:\n  min.insync.replicas: 012\n  retries: 1_000\n  batch.size: 0x10\n  max.poll.records: 1.0\n",
        [
            ("2:24", "write 12"),
            ("3:12", "write 1000"),
            ("4:15", "expected a whole number"),
            ("5:21", "write 1"),
        ],
    ),
    "number of many digits": (
        f"settings: {{retries: {'9' * 5000}}}\n",
        [("1:21", "expected a whole number")],
    ),
    "number too large": ("settings: {retries: 2147483648}\n", [("1:21", "at most 2147483647")]),
    "durations": (
        """\
        script:
          - at: 10
          - at: 1:30
          - at: -5s
          - at: 10 s
          - at: 1s..2s
          - at: 0.0000001s
          - at: 25h
          - at: 2001-12-14
        """,
        [
            ("2:9", "10 has no unit: write `10s` or `10ms`"),
            ("3:9", "`1:30` is not a duration: write it with a unit, such as `90s`"),
            ("4:9", "a duration cannot be negative"),
            ("5:9", "`10 s` is not a duration: write one such as"),
            ("6:9", "expected one duration, not a range"),
            ("7:9", "is not a duration"),
            ("8:9", "25h is too long: at most 24h"),
            ("9:9", "`2001-12-14` is not a duration"),
        ],
    ),
    "ranges": (
        "cluster: {network: {latency: 2ms..1ms}}\n",
        [("1:30", "the range `2ms..1ms` is empty: 2ms is more than 1ms")],
    ),
    "rates": (
        (
            "workload:\n  duration: 1s\n  producers:\n"
            "    - rate: 10\n    - rate: 0/s\n    - rate: 10001/s\n    - rate: fast\n"
            "    - rate: 1/0s\n    - rate: 2/100us\n    - rate: 1/1000001h\n    - rate: 1/90\n"
        ),
        [
            ("4:13", "write `10/s`, `10/m` or `10/h`"),
            ("5:13", "a rate must be more than 0"),
            ("6:13", "10001/s is too fast: at most 10000/s"),
            ("7:13", "write one such as `10/s`"),
            ("8:13", "the time in `1/0s` must be more than 0"),
            ("9:13", "2/100us is too fast"),
            ("10:13", "1/1000001h is too slow: at least 1/1000000h"),
            ("11:13", "`1/90` is not a rate"),
        ],
    ),
    "zero where it is senseless": (
        (
            "cluster: {disk: {writeback: 0s}, zookeeper: {tick: 0s}}\nlimits: {script: 0s}\n"
            "faults: [{every: 0s, do: controller_failover}]\n"
        ),
        [("1:29", "more than 0"), ("1:52", "more than 0"), ("2:18", "more than 0"), ("3:18", "more than 0")],
    ),
    "times of settings": (
        "settings: {linger.ms: 10us, replica.lag.time.max.ms: 1:30, retry.backoff.ms: soon}\n",
        [
            ("1:23", "10us is finer than the setting"),
            ("1:54", "such as `90s`"),
            ("1:78", "a number of milliseconds"),
        ],
    ),
    # Settings
    "settings": (
        "settings:\n  acs: all\n  num.replica.fetchers: 8\n  acks: 2\n  min.insync.replicas: 0\n",
        [
            ("2:3", "unknown setting `acs`; did you mean `acks`?"),
            ("3:3", "unknown setting `num.replica.fetchers`"),
            ("4:9", "acks: `2` is not one of 0, 1, all"),
            ("5:24", "min.insync.replicas: 0 is too small: at least 1"),
        ],
    ),
    "settings of other clients": (
        (
            "cluster:\n  topics: [{name: t, settings: {acks: all}}]\n"
            "workload:\n  producers: [{settings: {auto.offset.reset: none}}]\n"
        ),
        [
            ("2:33", "unknown setting `acks`; it is a producer's setting"),
            ("4:27", "it is a consumer's setting"),
        ],
    ),
    "settings of a later release": (
        "kafka: '0.10.2'\nsettings:\n  enable.idempotence: true\n  delivery.timeout.ms: 2m\n",
        [("3:3", "Kafka 0.10.2 has no enable.idempotence; it came with 0.11"), ("4:3", "it came with 2.1")],
    ),
    "idempotence": (
        """\
        kafka: 0.11
        settings:
          enable.idempotence: true
          retries: 0
        workload:
          producers:
            - settings:
                acks: 1
                max.in.flight.requests.per.connection: 2
        """,
        [
            ("4:12", "enable.idempotence (line 3) needs retries of more than 0"),
            ("8:15", "enable.idempotence (line 3) needs acks=all, not acks=1"),
            ("9:48", "needs max.in.flight.requests.per.connection of at most 1 in Kafka 0.11, not 2"),
        ],
    ),
    "idempotence in 2.4": (
        "settings: {enable.idempotence: true, max.in.flight.requests.per.connection: 6}\n",
        [("1:77", "at most 5 in Kafka 2.4, not 6")],
    ),
    "idempotence switched off": (
        "behaviours: {idempotence: false}\nsettings: {enable.idempotence: true}\n",
        [("2:32", "there is no idempotent producer")],
    ),
    "delivery timeout": (
        "settings: {delivery.timeout.ms: 30s, linger.ms: 5}\n",
        [("1:33", "at least linger.ms + request.timeout.ms (30.005s)")],
    ),
    "acks=all that cannot be": (
        (
            "settings: {acks: all, min.insync.replicas: 3}\n"
            "cluster: {topics: [{name: t, replication_factor: 2}, {name: u}]}\n"
        ),
        [("1:44", "with min.insync.replicas=3 and 2 replicas of topic t, acks=all (line 1)")],
    ),
    "a partition of nothing": (
        """\
        cluster: {brokers: 2, topics: [{name: t}]}
        workload: {duration: 5s, producers: [{name: p}]}
        faults:
          - {at: 1s, do: {partition: {between: [0], and: [0]}}}
        """,
        [("4:30", "there is no link: both sides are the same")],
    ),
    "znodes": (
        """\
        cluster: {brokers: 2, topics: [{name: t}]}
        workload: {duration: 5s, producers: [{name: p}]}
        faults:
          - {at: 1s, do: {message: {action: drop, znode: /}}}
          - {at: 1s, do: {message: {action: drop, znode: controller}}}
          - {at: 1s, do: {message: {action: drop, znode: /controller/}}}
          - {at: 1s, do: {message: {action: drop, znode: /controller, api: Fetch}}}
        """,
        [
            ("4:50", "`/` is not the path of a znode; write one such as `/controller`"),
            ("5:50", "`controller` is not the path of a znode"),
            ("6:50", "`/controller/` is not the path of a znode"),
            ("7:28", "no Fetch request is about a znode"),
        ],
    ),
    "behaviours by other names": (
        "behaviours: {no-dedup: true, zzz: true}\n",
        [
            ("1:14", "unknown behaviour `no-dedup`; the mutant `no-dedup` is `producer_batches_retained: 0`"),
            ("1:30", "unknown behaviour `zzz`; `harrow list behaviours` shows all"),
        ],
    ),
    "behaviours": (
        "behaviours: {follower_truncation: hw, idempotenc: true, producer_batches_retained: 3}\n",
        [
            ("1:35", "`hw` is not one of high_watermark, leader_epoch, answered_epoch, none"),
            ("1:39", "unknown behaviour `idempotenc`; did you mean `idempotence`?"),
            ("1:84", "`3` is not one of 0, 1, 5"),
        ],
    ),
}
