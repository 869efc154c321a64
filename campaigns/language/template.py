"""Contains the campaign that `harrow new` writes, an example with a comment for each part."""

from harrow.campaigns.language.literals import LiteralError, campaign_name
from harrow.cluster_model.release.profiles import NEWEST_RELEASE

_TEXT = """\
# A campaign for harrow: a cluster, a workload, faults, and what you expect of them.
{commands}
# Editors with a YAML language server read the first line and complete keys. They download the schema
# once; without a network, run `harrow schema > campaign.schema.json` and name that file there.
{name}description: >-
  A broker crashes now and then, and a producer that waits for all replicas in the ISR
  must not lose what was acknowledged.

kafka: "{kafka}"                 # the release whose behaviour and defaults are modelled
settings:                    # Kafka's own names; each setting goes where Kafka has it
  acks: all                  # producers: an acknowledged record is in every replica of the ISR
  min.insync.replicas: 2     # topics: and the ISR has at least two replicas

cluster:
  brokers: 3                 # ids 0, 1 and 2
  topics:
    - name: t
      partitions: 1
      replication_factor: 3

workload:
  duration: 60s              # producers send and faults strike for this long
  producers:
    - name: producer-0
      rate: 10/s
  consumers:
    - name: consumer-0

faults:
  - rate: 6/m                # at random, six times a minute on average
    until: 50s
    any_of:                  # each time one of these is chosen at random
      - broker_crash: {{broker: any, restart_after: 1s..10s}}
      - broker_pause: {{broker: leader of t-0, duration: 1s..10s}}

# After the last fault everything is healed, given time to recover, and read back.
expect:
  rules:
    lost-write: held         # nothing that was acknowledged is gone

variants:                    # the same campaign with other settings, each with what it expects
  acks-1:
    description: With acks=1 a record is acked when only the leader has it, so it can be lost with the leader.
    settings:
      acks: 1
    expect: {{}}
"""


def new_campaign(name: str) -> str:
    """Return the text of a campaign file called *name*."""
    try:
        key = f"name: {campaign_name(name)}\n"
    except LiteralError:
        # Without a name the loader derives one from the name of the file.
        key = ""
    commands = {
        f"harrow validate {name}.yaml": "check this file",
        f"harrow run {name}.yaml --seeds 0..20": "run it with twenty seeds, each with its own random choices",
        "harrow list faults": "list what else can go wrong; also: rules, releases, campaigns",
    }
    width = max(map(len, commands))
    lines = [f"#   {command:{width}}  {meaning}" for command, meaning in commands.items()]
    return _TEXT.format(name=key, kafka=NEWEST_RELEASE, commands="\n".join(lines))
