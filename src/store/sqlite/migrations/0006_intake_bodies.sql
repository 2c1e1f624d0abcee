-- Large bodies of the intake: stored whole first, and then applied part by part. So an interrupted one is applied to
-- its end after a restart.

CREATE TABLE intake_bodies (
  -- In the order in which they are applied.
  number INTEGER PRIMARY KEY AUTOINCREMENT,
  shop_id INTEGER NOT NULL REFERENCES shops (id) ON DELETE CASCADE,
  -- Whether all of its parts are stored. Nothing of it is applied before.
  complete INTEGER NOT NULL CHECK (complete IN (0, 1))
) STRICT;
CREATE INDEX intake_bodies_of_shop ON intake_bodies (shop_id);

-- What is still to be applied of each body.
CREATE TABLE intake_parts (
  number INTEGER PRIMARY KEY AUTOINCREMENT,
  shop_id INTEGER NOT NULL REFERENCES shops (id) ON DELETE CASCADE,
  body INTEGER NOT NULL REFERENCES intake_bodies (number) ON DELETE CASCADE,
  -- JSON array of records.
  records TEXT NOT NULL
) STRICT;
CREATE INDEX intake_parts_of_body ON intake_parts (shop_id, body, number);
CREATE INDEX intake_parts_by_body ON intake_parts (body);
