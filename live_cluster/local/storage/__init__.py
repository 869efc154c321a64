"""The files of a broker that harrow reads and truncates: segments and checkpoints."""
