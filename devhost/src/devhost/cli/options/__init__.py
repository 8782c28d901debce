"""Options that several commands have, each group as one frozen value."""
