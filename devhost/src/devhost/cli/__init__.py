"""The commands of `devhost`, with one module for each kind. The module `commands` contains `main`."""
