"""The processes of a recording: what a child is asked, what it tells as events, how it ends, the captures it makes."""
