"""What a broker has on disk, read and cut by harrow: segments and checkpoints."""
