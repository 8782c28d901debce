"""The order system of another department, as small as it can be: orders over HTTP, each placed once for its key."""
