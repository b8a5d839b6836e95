"""Opens the catalog that options describe."""

import importlib
from collections.abc import Iterable, Mapping
from typing import Final

from emberlake.base.names import nearest
from emberlake.catalog.catalog import Catalog
from emberlake.catalog.filesystem import FileSystemCatalog
from emberlake.errors import InvalidInput, InvalidOption, Unsupported

_METASTORE: Final = "metastore"
_WAREHOUSE: Final = "warehouse"
_FILESYSTEM: Final = "filesystem"
_REST: Final = "rest"
_NOT_YET: Final = ("jdbc", "hive")


class CatalogFactory:
    """``CatalogFactory.create({"warehouse": "/data"})``."""

    @staticmethod
    def create(options: Mapping[str, object]) -> Catalog:
        """Open the catalog with these options.

        Args:
            options: ``warehouse`` is the folder of the databases; ``metastore`` is by default
                ``filesystem``; ``table-default.<key>`` is an option that new tables get. With
                ``metastore=rest``, ``uri`` is the address of a server, ``warehouse`` a name that
                the server knows, and ``token`` identifies the caller.
                Options of object stores begin with ``s3.``, ``gs.``, ``azure.`` or ``fs.oss.``.

        Raises:
            InvalidOption: ``warehouse`` is missing, or an option has no usable value.
            Unsupported: emberlake does not have this kind of catalog or storage.
            ServerError: the server of a REST catalog cannot be reached, or refuses.
        """
        texts = _option_texts(options)
        metastore = texts.get(_METASTORE, _FILESYSTEM).strip().lower()
        if metastore in _NOT_YET:
            raise Unsupported(
                f"{_METASTORE}={metastore}: emberlake has {_FILESYSTEM} and {_REST} catalogs"
            )
        # Only storages use functions, such as a provider of credentials.
        functions = {key: value for key, value in options.items() if callable(value)}
        given = {**texts, **functions}
        if metastore == _REST:
            # The client of REST servers is loaded only if it is needed.
            served: Catalog = importlib.import_module("emberlake.catalog.rest").RestCatalog.connect(
                given
            )
            return served
        if metastore != _FILESYSTEM:
            raise InvalidOption(f"{_METASTORE}={metastore}: expected {_FILESYSTEM} or {_REST}")
        if not texts.get(_WAREHOUSE, "").strip():
            raise InvalidOption(
                f"a {_FILESYSTEM} catalog needs the option {_WAREHOUSE!r}: "
                f"the folder of its databases{_meant_instead(texts)}"
            )
        return FileSystemCatalog.open(texts[_WAREHOUSE], given, texts)


def _option_texts(options: Mapping[str, object]) -> dict[str, str]:
    if not isinstance(options, Mapping):
        raise InvalidInput(
            "a catalog is described by a dictionary of options, such as "
            f'{{"warehouse": "/data/lake"}}, not by {options!r}'
        )
    unset = [str(key) for key, value in options.items() if value is None]
    if unset:
        raise InvalidOption(f"options without a value: {', '.join(unset)}")
    return {
        str(key): str(value).lower() if isinstance(value, bool) else str(value)
        for key, value in options.items()
        if not callable(value)
    }


def _meant_instead(keys: Iterable[str]) -> str:
    misspelled = nearest(_WAREHOUSE, keys)
    return f", not {misspelled[0]!r}" if misspelled else ""
