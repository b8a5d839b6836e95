"""Hidden columns that say where a row is: queries may name them, and ``*`` leaves them out."""

from typing import Final

PARTITION: Final = "__paimon_partition"
BUCKET: Final = "__paimon_bucket"
FILE_PATH: Final = "__paimon_file_path"
ROW_INDEX: Final = "__paimon_row_index"
