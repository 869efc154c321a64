"""Live views of runs and sweeps on a terminal."""
