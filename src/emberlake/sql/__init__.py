"""SQL: text becomes a statement, and a statement an operation of the API.

Nothing is carried out by the parser, and no text is ever evaluated as Python. ``lexer`` and
``cursor`` take text apart as Spark's grammar does, ``parse`` makes a ``statements.Statement`` of
it. ``session`` hands statements that move rows to an ``engine.Engine``, and all others to
``commands``, which need nothing but a catalog.
"""
