"""`irscope mcp`: a server of the Model Context Protocol."""
