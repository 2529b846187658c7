"""The independent reading of a book: what each entry must say, computed from the first one on."""
