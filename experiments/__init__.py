"""Figures of the papers that the algorithms come from: ``python -m experiments --list``."""
