"""Writes a traced run as one self-contained HTML page, without scripts, fonts or requests."""
