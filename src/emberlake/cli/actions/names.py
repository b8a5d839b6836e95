"""Names of tables as they are typed."""

from emberlake.cli.failures import UsageError
from emberlake.spec.identifier import Identifier


def parse_plain_table(text: str, action: str) -> Identifier:
    """The name of a table for what is done to whole tables only.

    Raises:
        UsageError: it names a branch or a system table.
        InvalidIdentifier: it is no name of a table.
    """
    identifier = Identifier.parse(text)
    if identifier.branch is not None or identifier.system_table is not None:
        raise UsageError(f"{identifier} cannot be {action}: give a table, without a $ part")
    return identifier
