"""Live views of runs and sweeps."""
