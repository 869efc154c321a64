"""Brokers that harrow starts on this machine, with their control plane and disks."""
