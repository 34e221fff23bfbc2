"""Tools: what they declare, which of them are sent, what policy says of a call. Knows no front end."""
