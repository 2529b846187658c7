"""Checks: every inequality against private channels that can be enumerated or simulated.

It may import `problems`, `bounds` and the rooms below; it does not know `performance`.
"""
