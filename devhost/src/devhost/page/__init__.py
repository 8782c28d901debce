"""A traced run as one self-contained HTML page: no script, no font, no request."""
