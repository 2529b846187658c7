"""Audits of whole algorithms: record a run, replay it, couple two runs, sample privacy losses.

The chapter on privacy loss random variables (Dwork & Roth 2014, section 3.5; Dong, Roth & Su
2022); importance sampling after Veach & Guibas (1995).  It may import `classifiers`,
`known_densities`, `claims`, `runs`, `neighbours`, `statistics` and `values`; it does not know
`attacks`.
"""
