"""`irscope layout`: the command, where its layouts come from, and the compiler's count of bank conflicts."""
