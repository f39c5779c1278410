"""Linear layouts: their algebra, the maps they are, conversions between them."""
