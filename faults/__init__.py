"""The fault catalogue: what can happen to processes, disks, links, clocks and sessions."""
