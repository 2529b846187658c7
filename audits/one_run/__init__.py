"""Audits of one training run by many canaries, each put in by a coin of its own."""
