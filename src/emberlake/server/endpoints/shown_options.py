"""Options of tables and databases are shown to everybody who may get them."""

from collections.abc import Iterable

from emberlake.errors import InvalidInput
from emberlake.io.object.spellings import is_secret_option
from emberlake.rest.option_names import is_secret_rest_option


def refuse_secrets(keys: Iterable[str]) -> None:
    """Refuse options that are credentials, by their names.

    Raises:
        InvalidInput: the message has the names, not the values.
    """
    found = sorted(key for key in keys if is_secret_option(key) or is_secret_rest_option(key))
    if found:
        raise InvalidInput(
            f"{', '.join(found)}: whoever may get this would read a secret; credentials are "
            "options of the client's catalog"
        )
