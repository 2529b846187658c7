"""What can be asked of a frame: each statistic makes a question."""
