-- The CRM's tables. Ids of deals are never reused; a stage always belongs to the deal's pipeline.

CREATE TABLE owners (
    id INTEGER PRIMARY KEY,
    name TEXT NOT NULL,
    email TEXT NOT NULL UNIQUE
) STRICT;

CREATE TABLE pipelines (
    id TEXT PRIMARY KEY,
    label TEXT NOT NULL UNIQUE,
    display_order INTEGER NOT NULL
) STRICT;

CREATE TABLE stages (
    id TEXT PRIMARY KEY,
    pipeline_id TEXT NOT NULL REFERENCES pipelines (id),
    label TEXT NOT NULL,
    display_order INTEGER NOT NULL,
    closed INTEGER NOT NULL CHECK (closed IN (0, 1)),
    UNIQUE (pipeline_id, id),
    UNIQUE (pipeline_id, label)
) STRICT;

CREATE TABLE companies (
    id INTEGER PRIMARY KEY,
    name TEXT NOT NULL UNIQUE,
    domain TEXT NOT NULL UNIQUE,
    industry TEXT NOT NULL,
    city TEXT NOT NULL,
    employees INTEGER NOT NULL,
    owner_id INTEGER NOT NULL REFERENCES owners (id),
    created_at TEXT NOT NULL
) STRICT;

CREATE TABLE contacts (
    id INTEGER PRIMARY KEY,
    first_name TEXT NOT NULL,
    last_name TEXT NOT NULL,
    email TEXT NOT NULL UNIQUE,
    job_title TEXT NOT NULL,
    company_id INTEGER NOT NULL REFERENCES companies (id),
    created_at TEXT NOT NULL
) STRICT;

CREATE TABLE deals (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    name TEXT NOT NULL,
    amount_cents INTEGER,
    pipeline_id TEXT NOT NULL,
    stage_id TEXT NOT NULL,
    close_date TEXT,
    owner_id INTEGER REFERENCES owners (id),
    company_id INTEGER NOT NULL REFERENCES companies (id),
    created_at TEXT NOT NULL,
    updated_at TEXT NOT NULL,
    revision INTEGER NOT NULL DEFAULT 1,
    FOREIGN KEY (pipeline_id, stage_id) REFERENCES stages (pipeline_id, id)
) STRICT;

CREATE INDEX deals_of_company ON deals (company_id);

-- One row per property that really changed. A created deal has rows with old NULL, a deleted one rows with new NULL.
CREATE TABLE audit (
    seq INTEGER PRIMARY KEY AUTOINCREMENT,
    deal_id INTEGER NOT NULL,
    property TEXT NOT NULL,
    old TEXT,
    new TEXT,
    idempotency_key TEXT,
    at TEXT NOT NULL
) STRICT;

CREATE INDEX audit_of_deal ON audit (deal_id, seq);

-- The reply to a write, kept in the same transaction as its effect.
CREATE TABLE idempotency_keys (
    key TEXT PRIMARY KEY,
    fingerprint TEXT NOT NULL,
    status INTEGER NOT NULL,
    body TEXT NOT NULL,
    at TEXT NOT NULL
) STRICT;

-- Every request, in the order of arrival. status stays NULL if the server died before it answered.
CREATE TABLE request_log (
    seq INTEGER PRIMARY KEY AUTOINCREMENT,
    method TEXT NOT NULL,
    path TEXT NOT NULL,
    operation TEXT,
    idempotency_key TEXT,
    body_sha256 TEXT,
    status INTEGER,
    replayed INTEGER NOT NULL DEFAULT 0 CHECK (replayed IN (0, 1))
) STRICT;

CREATE TABLE tokens (
    sha256 TEXT PRIMARY KEY,
    issued_at TEXT NOT NULL
) STRICT;
