"""The records of runs: files, reports, and reading them back."""
