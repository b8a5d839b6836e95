"""Storage on object stores: S3 and its compatibles, GCS, Azure and OSS.

Each needs the extra of its name (``s3``, ``gcs``, ``azure``, ``oss``), which is obstore for all of
them. obstore is loaded when the first store is used.
"""

from emberlake.io.object.storage import ObjectStorage, open_storage

__all__ = ["ObjectStorage", "open_storage"]
