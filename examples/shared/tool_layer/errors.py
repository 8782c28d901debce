"""What goes wrong around a tool, each as one sentence."""


class RefusedError(Exception):
    """A call that the model can correct, or must tell the user about; it reads the sentence."""


class SetupError(Exception):
    """What only the operator can correct: a setting of the provider, or a database that cannot be used."""
