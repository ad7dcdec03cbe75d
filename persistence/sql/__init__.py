"""The store in SQLite, PostgreSQL and MariaDB or MySQL, by SQLAlchemy Core."""

from persistence.sql.mapped import MappedRecords, RecordColumns
from persistence.sql.schema import ddl
from persistence.sql.store import SqlPersistence
from persistence.sql.tables import Tables

__all__ = ["MappedRecords", "RecordColumns", "SqlPersistence", "Tables", "ddl"]
