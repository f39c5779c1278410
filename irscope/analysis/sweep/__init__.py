"""What the table of a sweep says: the best compile of each kernel, what fails where, how figures are spread."""
