"""Processes and ports on this machine. Every process ends with harrow, even if harrow is killed."""
