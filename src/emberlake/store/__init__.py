"""Load and save metadata: schemas, snapshots, tags, manifests."""
