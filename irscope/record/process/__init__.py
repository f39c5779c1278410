"""The processes of a recording: requests to a child, its events, its end, and the captures made of them."""
