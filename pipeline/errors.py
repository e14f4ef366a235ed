"""Every refusal is one of these: it names the input and says what to do."""


class BagbasisError(Exception):
    """Base of all errors raised on purpose by this package."""


class DataError(BagbasisError, ValueError):
    """Points, targets or ids that can not be used; names the bag and the row."""


class BagError(DataError):
    """A bag that can not be used; ``bag`` is its position among those that were given."""

    def __init__(self, bag: int, reason: str) -> None:
        super().__init__(bag, reason)
        self.bag = bag
        self.reason = reason

    def __str__(self) -> str:
        return f"bag {self.bag}: {self.reason}"


class ParameterError(BagbasisError, ValueError):
    """A parameter of a spec or an estimator outside its range."""


class StoreError(BagbasisError, OSError):
    """A store that is missing, damaged, or can not be written; names the URL and array."""


class InterruptedStoreError(StoreError):
    """A store whose making was killed before it was one; `BagStore.create` replaces it."""


class WriterBusyError(StoreError):
    """Another writer holds the store."""


class ModelError(BagbasisError, ValueError):
    """A saved model that can not be read, or that does not fit the bags it was given."""


class ConfigError(BagbasisError, ValueError):
    """A wrong key or value in a job's config; names the key."""


class ClusterError(BagbasisError, RuntimeError):
    """A cluster that can not be reached or that lost a computation."""


class BusyError(BagbasisError, RuntimeError):
    """Another process is doing the same; nothing was done."""


class RunError(BagbasisError, RuntimeError):
    """A run that is not there, that failed or died, or that can not do what was asked of it."""
