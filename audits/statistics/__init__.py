"""Statistics: exact confidence bounds and tests, each with its stated coverage.

Clopper & Pearson (1934), Hoeffding (1963), Ville (1939) for betting, Stouffer (1949) for
combination.  The lowest room: it imports no other room of audits, and every room may import it.
"""
