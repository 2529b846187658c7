"""Planning: calibration of noise, allocation of a budget, capacity, and plain interpretations.

Calibration searches on the exact profile (Balle & Wang 2018); allocation is a geometric program
(Boyd & Vandenberghe 2004, Section 4.5). The room imports `accountants`, `amplification` and the
rooms below, not `ledger`; `formats`, `book`, `reports` and `cli` may import it.
"""
