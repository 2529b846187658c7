"""Dense linear models by a trusted curator, who clips each record's gradient and adds noise.

Behind it stand Song, Chaudhuri & Sarwate (2013) and Abadi et al. (2016).  It imports
`algorithms.base` and no other family; only the packages above and users import it.
"""
