"""A module for each command. Its function ``session`` executes the command."""
