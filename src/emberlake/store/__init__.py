"""Load and save of metadata: schemas, snapshots, tags, manifests."""
