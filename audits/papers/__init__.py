"""Published claims: the constants as printed, what can be proved, and what an attack shows.

Each claim cites its paper.  It may import `results`, `adapters`, `attacks`,
`algorithm_runs` and the rooms below; it does not know `libraries`, `zoo` or `minimax`.
"""
