"""The commands: their options, and one session of each."""
