"""Catalogs find databases and tables by name and open them."""

from emberlake.catalog.catalog import Catalog, Database, GetTagResponse
from emberlake.catalog.factory import CatalogFactory
from emberlake.catalog.filesystem import FileSystemCatalog
from emberlake.catalog.rest import RestCatalog
from emberlake.spec.listing import PagedList, Partition

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
