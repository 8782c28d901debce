"""One model turn: the request, the stream as it comes, its calls, and what the user sees of it."""
