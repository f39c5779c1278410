"""The steps of a reduction: each names the places of a program that it may shrink, and shrinks those chosen."""
