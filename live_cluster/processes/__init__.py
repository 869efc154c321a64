"""Processes and ports on this machine: every process ends with harrow, whatever ends harrow."""
