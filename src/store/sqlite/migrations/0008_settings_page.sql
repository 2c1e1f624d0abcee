-- What the settings page keeps from one request to the next.

-- The forms that were posted, of those that are accepted once.
CREATE TABLE admin_forms (
  session BLOB NOT NULL REFERENCES admin_sessions (hash) ON DELETE CASCADE,
  -- The SHA-256 of what tells the form from others.
  form BLOB NOT NULL,
  PRIMARY KEY (session, form)
) STRICT, WITHOUT ROWID;

-- Notices for the next page of a session at a path. New keys are among them, so they are sealed for the session.
CREATE TABLE admin_notices (
  -- In the order in which they are shown.
  number INTEGER PRIMARY KEY,
  session BLOB NOT NULL REFERENCES admin_sessions (hash) ON DELETE CASCADE,
  path TEXT NOT NULL,
  sealed BLOB NOT NULL,
  expires_at INTEGER NOT NULL
) STRICT;
CREATE INDEX admin_notices_of_session ON admin_notices (session, path);

-- Wrong sign-in tokens of the last minute, by the network of the client.
CREATE TABLE admin_wrong_tokens (
  network TEXT PRIMARY KEY,
  -- JSON array: when they came.
  times TEXT NOT NULL,
  last_at INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
