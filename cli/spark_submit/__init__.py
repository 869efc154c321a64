"""The file for spark-submit, alone, because Python searches the folder of a file first."""
