"""Wide: attention and linear attention, one problem in each family and the configurations of a tuner.

Sizes in lower case that a configuration does not give are those of the docstring; smaller ones are for checks.
"""

from __future__ import annotations
