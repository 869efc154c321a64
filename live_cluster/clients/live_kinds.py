"""How each kind of client is made on real brokers: with processes of its own."""

from typing import Final

from harrow.campaigns.clients.clients import APPLICATIONS, CLIENTS, CONSUMERS, PRODUCERS
from harrow.live_cluster.clients.live_applications import LiveApplication
from harrow.live_cluster.clients.live_clients import LiveConsumer, LiveProducer

LIVE: Final = "kafka"
"""The kind of target whose clients are processes of their own."""

CLIENTS[PRODUCERS].made_on[LIVE] = LiveProducer
CLIENTS[CONSUMERS].made_on[LIVE] = LiveConsumer
CLIENTS[APPLICATIONS].made_on[LIVE] = LiveApplication
