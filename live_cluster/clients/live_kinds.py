"""The classes of clients on real brokers, which run in their own processes."""

from typing import Final

from harrow.campaigns.clients.clients import APPLICATIONS, CLIENTS, CONSUMERS, PRODUCERS
from harrow.live_cluster.clients.live_applications import LiveApplication
from harrow.live_cluster.clients.live_clients import LiveConsumer, LiveProducer

LIVE: Final = "kafka"
"""The kind of target whose clients run in their own processes."""

CLIENTS[PRODUCERS].made_on[LIVE] = LiveProducer
CLIENTS[CONSUMERS].made_on[LIVE] = LiveConsumer
CLIENTS[APPLICATIONS].made_on[LIVE] = LiveApplication
