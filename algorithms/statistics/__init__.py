"""Private means, histograms and selections, by a trusted curator or in the local model.

Behind it stand the textbook mechanisms (Dwork & Roth 2014, Chapter 3) and their optimal local
versions (Ye & Barg 2018; Asi, Feldman & Talwar 2022).  It imports `algorithms.base` and no other
family; only the packages above and users import it.
"""
