"""Correlated noise: strategy matrices, patterns of participation, and their sensitivities.

A matrix mechanism releases ``C x + noise``: one Gaussian whose shift is the greatest norm of the
columns of C that one record reaches (Denisov, McMahan, Rush, Smith & Thakurta 2022).  The room
imports `amplification` and the rooms below; mechanisms import it.
"""
