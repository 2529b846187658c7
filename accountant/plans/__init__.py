"""Plans: what will be released, as trees of sequences, repetitions and parallel parts.

Parallel composition is McSherry (2009), Theorem 4. The room knows no loss formula. It imports
`numerics`, its neighbours and `errors`; `losses` and every room above may import it.
"""
