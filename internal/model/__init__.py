"""One model turn: the request, the stream, the calls in it, and what the user sees."""
