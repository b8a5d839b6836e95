"""Catalogs find databases and tables by name and open them."""

import importlib
from typing import TYPE_CHECKING, Any

from emberlake.catalog.catalog import Catalog, Database, GetTagResponse
from emberlake.catalog.factory import CatalogFactory
from emberlake.catalog.filesystem import FileSystemCatalog
from emberlake.spec.listing import PagedList, Partition

if TYPE_CHECKING:
    from emberlake.catalog.rest import RestCatalog

__all__ = [
    "Catalog",
    "CatalogFactory",
    "Database",
    "FileSystemCatalog",
    "GetTagResponse",
    "PagedList",
    "Partition",
    "RestCatalog",
]


def __getattr__(name: str) -> Any:
    # It loads the client of REST servers, which takes a while.
    if name == "RestCatalog":
        return importlib.import_module("emberlake.catalog.rest").RestCatalog
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
