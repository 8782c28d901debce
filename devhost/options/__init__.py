"""The options of devhost's commands, a module for what belongs together."""
