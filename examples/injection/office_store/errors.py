"""What goes wrong, each as one sentence."""


class OfficeError(Exception):
    pass


class RequestError(OfficeError):
    """A call that the model can correct."""


class StoreUnavailableError(OfficeError):
    """A directory or a document that only the operator can correct."""
