"""What the compiler says of its reasons: the lines of its log, and the decisions in them."""
