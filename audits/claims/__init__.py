"""Claims and findings: what is claimed of a release, and what an audit returns.

A claim is a privacy profile (Balle, Barthe & Gaboardi 2018) or a sensitivity.  It may import only
`statistics` and `values`; every room above imports it.
"""
