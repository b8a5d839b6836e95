"""Databases: list, create, drop."""

from emberlake.base.names import listed
from emberlake.base.texts import count_text
from emberlake.cli.actions.footprint import footprint_of, total
from emberlake.cli.report import Done, Grid, Report, numbers, words
from emberlake.cli.session import Session
from emberlake.errors import DatabaseNotEmpty, DatabaseNotFound


def list_all(session: Session) -> Report:
    """List all databases, with the number of their tables."""
    catalog = session.catalog
    counts = [(name, len(catalog.list_tables(name))) for name in catalog.list_databases()]
    return Report(
        {"databases": [{"name": name, "tables": tables} for name, tables in counts]},
        [
            Grid(
                [words("database"), numbers("tables")],
                [(name, f"{tables:,}") for name, tables in counts],
                empty="no databases; create one with: emberlake db create NAME",
            )
        ],
    )


def create(session: Session, name: str, *, ignore_if_exists: bool) -> Report:
    """Create a database."""
    is_new = name not in session.catalog.list_databases()
    session.catalog.create_database(name, ignore_if_exists=ignore_if_exists)
    text = f"created database {name}" if is_new else f"database {name} already exists"
    return Report({"database": name, "created": is_new}, [Done(text)])


def drop(
    session: Session, name: str, *, cascade: bool, ignore_missing: bool, dry_run: bool, yes: bool
) -> Report:
    """Drop a database, after announcing what is deleted with it."""
    catalog = session.catalog
    try:
        catalog.get_database(name)
    except DatabaseNotFound:
        if not ignore_missing:
            raise
        done = Done(f"there is no database {name}")
        return Report({"database": name, "dropped": False, "dry_run": dry_run}, [done])
    tables = catalog.list_tables(name)
    if tables and not cascade:
        raise DatabaseNotEmpty(
            f"database {name} holds {count_text(len(tables), 'table')}: {listed(tables)}; "
            "drop them first, or drop it with --cascade",
            database=name,
        )
    size = total(footprint_of(catalog, f"`{name}`.`{table}`") for table in tables)
    what = f"database {name} with {count_text(len(tables), 'table')}: {size.text}"
    document = {
        "database": name,
        "tables": tables,
        "files": size.files,
        "bytes": size.bytes,
        "dry_run": dry_run,
        "dropped": not dry_run,
    }
    if dry_run:
        return Report(document, [Done(f"would drop {what}")])
    session.confirm(f"This drops {what}", yes=yes)
    catalog.drop_database(name, cascade=cascade)
    return Report(document, [Done(f"dropped {what}")])
