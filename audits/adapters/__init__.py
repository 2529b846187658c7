"""Adapters: any object that estimates, as one function of data, generator and noise factor.

For audits of accuracy and of tracing, which need estimates from data of their own.  It may import
`algorithm_runs`, `attacks` and the rooms below; `minimax`, `utility`, `runner` and `cli` import it.
"""
