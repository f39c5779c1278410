"""Planted kernels of the forms that libraries have: normalisations, gates, gathers, attention, quantised products."""
