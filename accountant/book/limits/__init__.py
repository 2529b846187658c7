"""What limits a data set of a book: terms, windows of time, buckets of people, users."""
