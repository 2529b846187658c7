"""The runner: every case that ``dp-attest audit run`` audits, and their execution on any executor.

It may import `libraries`, `papers`, `zoo`, `minimax` and the rooms below; only `formats`,
`report`, `pytest_support` and `cli` may import it.
"""
