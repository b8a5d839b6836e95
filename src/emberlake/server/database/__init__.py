"""The server's own database: SQLite, or PostgreSQL for several servers."""
