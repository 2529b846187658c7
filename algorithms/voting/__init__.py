"""Sign selection by a private vote of machines.

Behind it stands Liu, Tu, Mao & Chen (2022), Algorithms 1 to 4.  It imports `algorithms.base` and
no other family; only the packages above and users import it.
"""
