"""The command line, which alone prints."""
