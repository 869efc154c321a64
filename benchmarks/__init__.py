"""What measures speed, for anyone to run."""
