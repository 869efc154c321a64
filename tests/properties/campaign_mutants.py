"""Campaign files with mistakes, made by mutating valid ones."""

import re
from collections.abc import Iterator
from random import Random

from harrow.campaigns.language.library_index import library_names, resolve
from harrow.campaigns.language.template import new_campaign
from tests.campaigns.language.campaign_texts import reference_example

# Values that are easily misread, separated by blanks. A no-break space stands for a blank inside
# a value.
_NASTY = """\
"" '' ~ null true on 0 -1 1 1.5 012 0x10 1e9 .inf .nan 1:30 2001-12-14 99999999999999999999 -0 1_000 10 10s -5s 0s
25h 1s..2s 2s..1s ..1s 1us 0.3us never 10/s 0/s 1/m 1/d any controller zookeeper base t-0 t-99 u-0 -0 t- - leader
all acks acks=all @x `x` %x !!str !x &a *a << : ? | > [] {} [0] [[0]] [[0,0]] {a:\u00a01} {0:\u00a01} # "a\\nb" m0
9999 1000 0.10.2 0.11 2.0 2.4 2.1 high_watermark power_loss 1..2 .. . \u6f22 \U0001f600 "\\ud83d" "\\x07"
{broker:\u00a0any} {broker_crash:\u00a0{broker:\u00a01}} {t-0:\u00a01} {send:\u00a0m0} violated lost-write truncate
"""
NASTY = [word.replace("\u00a0", " ") for word in re.split(r"[ \n]+", _NASTY.strip())]

_KEYS = """\
name description kafka behaviours settings cluster workload script faults limits invariants expect variants brokers controller
topics network disk zookeeper id rack partitions replication_factor assignment latency writeback tick duration
producers consumers rate start stop record_bytes poll_interval note only at after when do send value partition
producer restart_producer elect_preferred_leaders times every from until any_of broker_crash broker between and
message action release verdict rules lost duplicated final replicas leader isr brokers registered acked event t-0 0
min.insync.replicas acks enable.idempotence linger.ms retries unclean.leader.election.enable follower_truncation
"""
KEYS = _KEYS.split()

EVERYTHING = """\
kafka: "2.4"
settings: {acks: all, enable.idempotence: true, min.insync.replicas: 2, linger.ms: 5ms, flush.messages: 1}
cluster:
  brokers:
    - {id: 0, rack: a}
    - {id: 1, rack: b, settings: {replica.lag.time.max.ms: 20s}}
    - &last {id: 2, rack: a}
  topics:
    - {name: t, partitions: 2}
    - {name: u, assignment: [[0, 1], [1, 2]], settings: {min.insync.replicas: 1}}
  disk: {writeback: never}
workload:
  duration: 30s
  producers: [{rate: 5/s}, {name: other, partitions: [u-0], settings: {retries: 5}}]
  consumers: [{partitions: [t-0, t-1], poll_interval: 50ms}]
script:
  - at: 1s
    do:
      - send: {value: m0, partition: t-0, producer: other}
      - message: {action: hold, api: Fetch, kind: response, from: 0, to: 1, id: held}
  - when: {replicas: {t-0: {0: {role: leader, leo: 1, epochs: [[0, 0]], log: [m0]}}}, isr: {u-0: [0, 1]}}
    do: [{release: {id: held}}, {expect: {acked: m0, leader: {u-1: 1}}}, elect_preferred_leaders]
  - after: 2s
    only: [base, slow]
    do: {partition: {between: [0, producer-0], and: [1, zookeeper], one_way: true, duration: 1s..2s}}
  - when: {event: {truncate: {broker: 1, partition: u-0}}, no_event: [election, {isr: {isr: [0, 1]}}]}
  - do: {restart_producer: other}
faults:
  - {when: {brokers: {1: down}, registered: {1: false}}, times: 2, do: {broker_pause: {broker: follower of u-1}}}
  - {every: 5s, from: 1s, do: {network_ack_loss: {client: other, probability: 0.5, count: 3, how: timeout}}}
  - rate: 1/7.5s
    any_of: [{slow_follower: {broker: 2, mode: slow, delay: 10ms, duration: 5s}}, controller_failover]
limits: {script: 5m, recovery: 1m}
invariants: [log-matching, one-leader-per-epoch]
expect: {verdict: held, rules: {lost-write: held}, lost: [], final: {replicas: {t-0: {0: {leo: 1}}}}}
variants:
  slow: {settings: {linger.ms: 10ms}, cluster: {network: {latency: 1ms..20ms}}}
  old: {kafka: "0.11", settings: {max.in.flight.requests.per.connection: 1}, expect: {}}
"""


def sources() -> list[str]:
    paths = [path for name in library_names() for path in resolve(name)]
    library = [path.read_text(encoding="utf-8") for path in paths]
    return [reference_example(), EVERYTHING, new_campaign("first"), *library]


SOURCES = sources()


def delete_line(random: Random, lines: list[str]) -> None:
    del lines[random.randrange(len(lines))]


def duplicate_line(random: Random, lines: list[str]) -> None:
    lines.insert(random.randrange(len(lines)), random.choice(lines))


def swap_lines(random: Random, lines: list[str]) -> None:
    one, other = random.randrange(len(lines)), random.randrange(len(lines))
    lines[one], lines[other] = lines[other], lines[one]


def indent_line(random: Random, lines: list[str]) -> None:
    index = random.randrange(len(lines))
    lines[index] = random.choice(["  ", " ", "\t", "- ", "# "]) + lines[index]


def outdent_line(random: Random, lines: list[str]) -> None:
    index = random.randrange(len(lines))
    lines[index] = lines[index].removeprefix("  ")


def truncate(random: Random, lines: list[str]) -> None:
    index = random.randrange(len(lines))
    lines[index:] = [lines[index][: random.randrange(len(lines[index]) + 1)]]


def insert_characters(random: Random, lines: list[str]) -> None:
    index = random.randrange(len(lines))
    line = lines[index]
    column = random.randrange(len(line) + 1)
    character = random.choice("{}[]:,-#&*!|>'\"%@`?\t\r\x00\x07\x85\u2028\ufeff\u6f22\ud800~<= 0a.")
    lines[index] = line[:column] + character * random.choice([1, 1, 1, 2, 70]) + line[column:]


def delete_characters(random: Random, lines: list[str]) -> None:
    index = random.randrange(len(lines))
    line = lines[index]
    column = random.randrange(len(line) + 1)
    lines[index] = line[:column] + line[column + random.randrange(1, 4) :]


def replace_value(random: Random, lines: list[str]) -> None:
    _replace(random, lines, r"(?<=: )[^\s,{}\[\]]+|(?<=[\[,] )[^\s,{}\[\]:]+", NASTY)


def replace_key(random: Random, lines: list[str]) -> None:
    _replace(random, lines, r"[A-Za-z0-9_.-]+(?=:)", KEYS)


def replace_collection(random: Random, lines: list[str]) -> None:
    _replace(random, lines, r"\{[^{}]*\}|\[[^\[\]]*\]", NASTY)


def _replace(random: Random, lines: list[str], pattern: str, replacements: list[str]) -> None:
    index = random.randrange(len(lines))
    matches = list(re.finditer(pattern, lines[index]))
    if matches:
        match = random.choice(matches)
        new = random.choice(replacements)
        lines[index] = lines[index][: match.start()] + new + lines[index][match.end() :]


MUTATIONS = (
    *(delete_line, duplicate_line, swap_lines, indent_line, outdent_line, truncate),
    *(insert_characters, delete_characters),
    # Most mutations keep the shape valid, so that later checks are reached too.
    *(4 * (replace_value, replace_value, replace_key, replace_collection)),
)


def mutants(random: Random) -> Iterator[str]:
    while True:
        lines = random.choice(SOURCES).split("\n")
        for _ in range(random.choice([1, 1, 2, 3, 5, 10])):
            random.choice(MUTATIONS)(random, lines)
            lines = lines or [""]
        yield random.choice(["\n", "\n", "\n", "\r\n"]).join(lines)
