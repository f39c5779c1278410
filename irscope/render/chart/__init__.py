"""Charts of figures, as SVG."""
