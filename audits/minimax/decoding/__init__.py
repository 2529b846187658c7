"""Decoding: from information to the largest probability of decoding a point of a family.

Fano's and Le Cam's inequalities; proofs in `docs/proofs/decoding_records.md`.  It may import
`families` and `information`; `bounds` and the rooms above import it.
"""
