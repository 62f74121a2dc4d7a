CREATE TABLE open_payments_migrations (
  version INTEGER PRIMARY KEY,
  name TEXT NOT NULL
) STRICT;
--
CREATE TABLE open_payments_records (
  kind TEXT NOT NULL,
  id TEXT NOT NULL,
  version INTEGER NOT NULL,
  value TEXT NOT NULL,
  due_at INTEGER,
  list_1 TEXT,
  list_1_at INTEGER,
  list_2 TEXT,
  list_2_at INTEGER,
  list_3 TEXT,
  list_3_at INTEGER,
  namespace TEXT GENERATED ALWAYS AS (substr(id, 1, 8)) VIRTUAL,
  PRIMARY KEY (kind, id)
) STRICT;
--
CREATE INDEX open_payments_records_due
  ON open_payments_records (kind, namespace, due_at, id) WHERE due_at IS NOT NULL;
--
CREATE INDEX open_payments_records_list_1
  ON open_payments_records (kind, list_1, list_1_at, id) WHERE list_1 IS NOT NULL;
--
CREATE INDEX open_payments_records_list_2
  ON open_payments_records (kind, list_2, list_2_at, id) WHERE list_2 IS NOT NULL;
--
CREATE INDEX open_payments_records_list_3
  ON open_payments_records (kind, list_3, list_3_at, id) WHERE list_3 IS NOT NULL;
--
INSERT INTO open_payments_migrations (version, name) VALUES (1, 'records');
