"""Making the tables: by `create_schema()`, or by statements for those who run migrations."""

from sqlalchemy import Connection, Dialect, Index, Table, insert, select
from sqlalchemy.dialects import mysql, postgresql, sqlite
from sqlalchemy.schema import CreateIndex, CreateTable

from persistence.sql.tables import DEFAULT_PREFIX, VERSION, Tables

__all__ = ["create_tables", "ddl"]

_DIALECTS: dict[str, type[Dialect]] = {
    "sqlite": sqlite.dialect,
    "postgresql": postgresql.dialect,
    "mysql": mysql.dialect,
    "mariadb": mysql.dialect,
}


def ddl(dialect: str, prefix: str = DEFAULT_PREFIX) -> str:
    """The statements that make the store's tables: ``sqlite``, ``postgresql``, ``mysql`` or ``mariadb``.

    Raises ValueError for another dialect.
    """
    if dialect not in _DIALECTS:
        raise ValueError(f"{dialect!r} is not a dialect: use one of {', '.join(_DIALECTS)}")
    words, tables = _DIALECTS[dialect](), Tables(prefix)
    statements: list[str] = []
    for table in tables.metadata.sorted_tables:
        statements.append(str(CreateTable(table).compile(dialect=words)))
        statements += [str(CreateIndex(index).compile(dialect=words)) for index in _indexes(table)]
    version = f"INSERT INTO {tables.schema.name} (version) VALUES ({VERSION})"  # noqa: S608 - our own name and number
    return "".join(f"{statement.strip()};\n" for statement in (*statements, version))


def create_tables(connection: Connection, tables: Tables) -> None:
    """Make what is missing. The version comes last, so that what was left half-made is completed the next time."""
    for table in tables.metadata.sorted_tables:
        table.create(connection, checkfirst=True)
        for index in _indexes(table):
            index.create(connection, checkfirst=True)
    if connection.execute(select(tables.schema.c.version)).first() is None:
        connection.execute(insert(tables.schema), {"version": VERSION})


def _indexes(table: Table) -> list[Index]:
    return sorted(table.indexes, key=lambda index: str(index.name))
