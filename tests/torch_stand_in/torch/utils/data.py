"""As in PyTorch: what datasets are, and which worker of a loader this is."""

from typing import Any


class Dataset:
    """Rows by their number."""


class IterableDataset(Dataset):
    """Rows as they come."""


def get_worker_info() -> Any:
    return None
