"""The daemon's rules for declarations, rule by rule; a fault has the key and the daemon's own words."""
