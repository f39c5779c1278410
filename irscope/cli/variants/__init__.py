"""`irscope variants`."""
