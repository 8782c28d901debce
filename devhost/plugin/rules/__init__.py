"""The daemon's rules for declarations, rule by rule.

In: a manifest or a provider as JSON without nulls. Out: its faults, each with the key and the daemon's own words.
"""
