-- Times are milliseconds since 1970 in UTC. JSON that is only handed on is stored as text.

CREATE TABLE catalogs (
  name TEXT PRIMARY KEY,        -- the warehouse that clients ask for, and the prefix of paths
  location TEXT NOT NULL UNIQUE,
  created_at BIGINT NOT NULL
);

CREATE TABLE databases (
  id TEXT PRIMARY KEY,
  catalog TEXT NOT NULL REFERENCES catalogs (name),
  name TEXT NOT NULL,
  options TEXT NOT NULL,
  owner TEXT NOT NULL,
  created_at BIGINT NOT NULL,
  created_by TEXT NOT NULL,
  updated_at BIGINT NOT NULL,
  updated_by TEXT NOT NULL,
  UNIQUE (catalog, name)
);

CREATE TABLE tables (
  id TEXT PRIMARY KEY,
  database_id TEXT NOT NULL REFERENCES databases (id),
  name TEXT NOT NULL,
  path TEXT NOT NULL UNIQUE,
  is_external INTEGER NOT NULL,
  owner TEXT NOT NULL,
  created_at BIGINT NOT NULL,
  created_by TEXT NOT NULL,
  updated_at BIGINT NOT NULL,
  updated_by TEXT NOT NULL,
  UNIQUE (database_id, name)
);

CREATE TABLE branches (
  table_id TEXT NOT NULL REFERENCES tables (id) ON DELETE CASCADE,
  name TEXT NOT NULL,
  schema_id BIGINT NOT NULL,
  schema TEXT NOT NULL,         -- as answers have it: without its id, without the path
  type TEXT NOT NULL,           -- table, format-table ...
  snapshot_id BIGINT,
  snapshot TEXT,                -- as it came, with keys that nobody knows
  totals TEXT,                  -- rows, bytes, files, newest file; null: not counted yet
  pending_since BIGINT,         -- something was begun; files may be ahead of this row
  PRIMARY KEY (table_id, name)
);

CREATE TABLE objects (
  id TEXT PRIMARY KEY,
  database_id TEXT NOT NULL REFERENCES databases (id),
  kind TEXT NOT NULL,           -- view, function
  name TEXT NOT NULL,
  content TEXT NOT NULL,
  owner TEXT NOT NULL,
  created_at BIGINT NOT NULL,
  created_by TEXT NOT NULL,
  updated_at BIGINT NOT NULL,
  updated_by TEXT NOT NULL,
  UNIQUE (database_id, kind, name)
);

CREATE TABLE done_partitions (
  table_id TEXT NOT NULL REFERENCES tables (id) ON DELETE CASCADE,
  branch TEXT NOT NULL,
  name TEXT NOT NULL,           -- dt=a/h=1
  done_at BIGINT NOT NULL,
  done_by TEXT NOT NULL,
  PRIMARY KEY (table_id, branch, name)
);

CREATE TABLE dropped (          -- tables that can be restored until their files are deleted
  id TEXT PRIMARY KEY,
  catalog TEXT NOT NULL,
  database_name TEXT NOT NULL,
  name TEXT NOT NULL,
  path TEXT NOT NULL,           -- where the files were, and are unless they could be moved
  kept_at TEXT,                 -- where they were moved to
  is_external INTEGER NOT NULL,
  owner TEXT NOT NULL,
  dropped_at BIGINT NOT NULL,
  dropped_by TEXT NOT NULL
);

CREATE TABLE unfinished (       -- folders of tables that are being created
  path TEXT PRIMARY KEY,
  since BIGINT NOT NULL
);

CREATE TABLE principals (
  name TEXT PRIMARY KEY,
  is_admin INTEGER NOT NULL,
  created_at BIGINT NOT NULL,
  created_by TEXT NOT NULL
);

CREATE TABLE tokens (
  hash TEXT PRIMARY KEY,        -- SHA-256 of the token, which is random and nowhere stored
  id TEXT NOT NULL UNIQUE,      -- names the token where it is listed or revoked
  principal TEXT NOT NULL REFERENCES principals (name) ON DELETE CASCADE,
  created_at BIGINT NOT NULL,
  created_by TEXT NOT NULL,
  expires_at BIGINT,
  revoked_at BIGINT
);

CREATE TABLE grants (
  id TEXT PRIMARY KEY,
  catalog TEXT NOT NULL,
  principal TEXT NOT NULL,
  resource_type TEXT NOT NULL,
  database_name TEXT NOT NULL,  -- empty where the resource has none
  object_name TEXT NOT NULL,
  access TEXT NOT NULL,
  columns TEXT,                 -- of COLUMN: {"columnNames": [...]} or {"excludedColumnNames": [...]}
  expires_at BIGINT,
  created_at BIGINT NOT NULL,
  created_by TEXT NOT NULL,
  UNIQUE (catalog, principal, resource_type, database_name, object_name, access)
);

CREATE INDEX grants_of_object ON grants (catalog, database_name, object_name);

CREATE TABLE audit_log (
  id TEXT PRIMARY KEY,
  at BIGINT NOT NULL,
  principal TEXT NOT NULL,
  request_id TEXT NOT NULL,
  action TEXT NOT NULL,
  catalog TEXT NOT NULL,
  resource TEXT NOT NULL,
  outcome INTEGER NOT NULL      -- the code of the answer
);

CREATE INDEX audit_log_by_time ON audit_log (at)
