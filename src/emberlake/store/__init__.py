"""Layer 4: load and save of metadata: schemas, snapshots, tags, manifests."""
