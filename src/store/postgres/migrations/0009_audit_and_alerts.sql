-- Who made the key, as the settings page names people: "staff 42", "session", "command line". NULL for older keys.
ALTER TABLE api_keys ADD COLUMN created_by text;

-- Finds the newest test event of a shop.
CREATE INDEX deliveries_test ON deliveries (shop_id, number) WHERE test;

-- What fails in a shop, or failed before, by its cause: see `Alert`.
CREATE TABLE alerts (
  shop_id bigint NOT NULL REFERENCES shops (id) ON DELETE CASCADE,
  cause text COLLATE "C" NOT NULL CHECK (cause IN ('connection', 'endpoint', 'dead')),
  since bigint NOT NULL,
  failures bigint NOT NULL,
  last_at bigint NOT NULL,
  host text,
  error text,
  -- When it was well again; NULL while it fails.
  well_at bigint,
  -- Whether somebody was told that it fails, and was not told yet that it is well again.
  told boolean NOT NULL DEFAULT false,
  -- When somebody was told last that it fails.
  told_at bigint,
  PRIMARY KEY (shop_id, cause)
);

CREATE TRIGGER removed_shop BEFORE INSERT ON alerts FOR EACH ROW EXECUTE FUNCTION refuse_removed_shop();
