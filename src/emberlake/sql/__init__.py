"""SQL: text becomes a statement, and a statement becomes an operation of the API.

The parser executes nothing, and no text is ever evaluated as Python. ``lexer`` and ``cursor`` split
text as Spark's grammar does, and ``parse`` turns it into a ``statements.Statement``. ``session``
hands statements that move rows to an ``engine.Engine``, and all others to ``commands``, which need
only a catalog.
"""
