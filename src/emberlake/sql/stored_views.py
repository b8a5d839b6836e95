"""Views that a catalog with a server keeps: queries in Spark's SQL."""

from dataclasses import dataclass

from emberlake.catalog import Catalog
from emberlake.catalog.served import ServedCatalog
from emberlake.errors import DatabaseNotFound, InvalidIdentifier, Unsupported, ViewNotFound
from emberlake.spec.identifier import Identifier
from emberlake.types import DataField

_SPARK = "spark"


@dataclass(frozen=True)
class StoredView:
    """A view: its query sees names of its own database."""

    identifier: Identifier
    fields: tuple[DataField, ...]
    query: str

    def check_present(self, travels: object) -> None:
        """Refuse another version of the view.

        Args:
            travels: True, or anything that counts as true, if the statement asks for one.

        Raises:
            Unsupported: it does.
        """
        if travels:
            raise Unsupported(
                f"{self.identifier} is a view, which has no versions: its tables have them"
            )


def find_view(catalog: Catalog, identifier: Identifier | None) -> StoredView | None:
    """The view of that name; None if the catalog has none."""
    if identifier is None or not isinstance(catalog, ServedCatalog):
        return None
    try:
        view = catalog.get_view(identifier)
    except (ViewNotFound, DatabaseNotFound, InvalidIdentifier):
        return None
    return StoredView(identifier, tuple(view.fields), view.dialects.get(_SPARK, view.query))
