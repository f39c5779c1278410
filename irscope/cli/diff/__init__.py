"""`irscope diff`."""
