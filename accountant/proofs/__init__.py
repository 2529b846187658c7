"""Proofs of certificates: numbers that make them quick to check with balls."""
