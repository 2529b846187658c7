"""The zoo: honest and deliberately broken specimens of known truth, and the auditor's scorecard.

Faults as in Lyu, Su & Li (2017) and Mironov (2012).  It may import `results`, `attacks`,
`algorithm_runs` and the rooms below; it does not know `libraries`, `papers` or `minimax`.
"""
