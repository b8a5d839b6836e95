"""Storage on object stores: S3 and its compatibles, GCS, Azure and OSS.

Each needs the extra of its name (``s3``, ``gcs``, ``azure``, ``oss``). All of them install obstore,
which is loaded when the first store is used.
"""

from emberlake.io.object.storage import ObjectStorage, open_storage

__all__ = ["ObjectStorage", "open_storage"]
