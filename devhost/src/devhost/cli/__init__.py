"""The commands of `devhost`, a module for each kind; `commands` has `main`."""
