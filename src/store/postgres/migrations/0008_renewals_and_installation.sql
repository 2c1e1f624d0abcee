-- The platform's cycles of the contract's renewals: JSON list of [renewal, cycle], one for each renewal whose cycle does
-- not follow the cycle of the renewal before. NULL if each renewal has its cycle's number.
ALTER TABLE contract_reads ADD COLUMN renewals text;

-- Which process exchanges an ID token of a shop for tokens, and until when no other process does. The shop may be new.
CREATE TABLE token_exchanges (
  domain text PRIMARY KEY,
  process text NOT NULL,
  ends_at bigint NOT NULL
);

-- A warning about a shop's new domain outlives the connection: after an uninstallation, requests about personal data
-- name that domain.
ALTER TABLE platform_warnings DROP CONSTRAINT platform_warnings_shop_id_fkey;
ALTER TABLE platform_warnings ADD CONSTRAINT platform_warnings_shop_id_fkey
  FOREIGN KEY (shop_id) REFERENCES shops (id) ON DELETE CASCADE;

-- Which process loads the shop, and until when no other process does; null if no process does.
ALTER TABLE syncs ADD COLUMN holder text;
ALTER TABLE syncs ADD COLUMN held_until bigint;
-- JSON: how far the load is, for the settings page and commands.
ALTER TABLE syncs ADD COLUMN progress text;
