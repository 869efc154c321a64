"""The logs of brokers and controllers, with the reasons of truncations and elections."""
