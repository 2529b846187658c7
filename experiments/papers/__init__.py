"""One paper, one file or a few: its figures run again, and the numbers of its page in docs/."""
