"""Operations on the rows of a table, each of them one commit of a write session."""
