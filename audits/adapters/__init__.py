"""Adapters: any object that estimates, as one function; canaries in a training by Opacus.

The function, of data, generator and noise factor, is for audits of accuracy and of tracing, which
need estimates from data of their own.  This room may import
`algorithm_runs`, `attacks` and the rooms below; `minimax`, `utility`, `runner` and `cli` import it.
"""
