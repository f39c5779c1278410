"""All of Triton and libtriton: every difference between its versions stands here."""
