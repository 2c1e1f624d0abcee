-- The queue of a shop's webhooks and the queue of its workflow triggers: the sender claims from each one alone.
-- `deliveries_due` stays for older nodes.
CREATE INDEX deliveries_due_by_queue ON deliveries (shop_id, kind, claimable_at, number)
  WHERE claimable_at IS NOT NULL;

-- Shops that uninstalled the app, until they are connected again. The platform cancels their contracts two days later.
CREATE TABLE uninstallations (
  shop_id bigint PRIMARY KEY REFERENCES shops (id) ON DELETE CASCADE,
  uninstalled_at bigint NOT NULL,
  -- Of the connection before: see `connections.events_since`.
  events_since bigint NOT NULL,
  -- Whether the mirror has the contracts as cancelled.
  contracts_ended boolean NOT NULL DEFAULT false
);

CREATE TRIGGER removed_shop BEFORE INSERT ON uninstallations FOR EACH ROW EXECUTE FUNCTION refuse_removed_shop();

-- A fourth kind of connection. Its tokens are stored with the app's own private key.
ALTER TABLE connections DROP CONSTRAINT connections_kind_check;
ALTER TABLE connections ADD CONSTRAINT connections_kind_check
  CHECK (kind IN ('client_credentials', 'token', 'refresh', 'app_key'));

-- When `trouble` began.
ALTER TABLE connections ADD COLUMN trouble_since bigint;

-- What the operator has to know about a connection that works: see `WarningKind`.
CREATE TABLE platform_warnings (
  shop_id bigint NOT NULL REFERENCES connections (shop_id) ON DELETE CASCADE,
  kind text NOT NULL,
  text text NOT NULL,
  since bigint NOT NULL,
  logged_at bigint NOT NULL,
  PRIMARY KEY (shop_id, kind)
);

CREATE TRIGGER removed_shop BEFORE INSERT ON platform_warnings FOR EACH ROW EXECUTE FUNCTION refuse_removed_shop();

-- The domain with which a renamed shop was added: internal ids are derived from it. null for a shop that was not renamed.
ALTER TABLE shops ADD COLUMN first_domain text;
CREATE UNIQUE INDEX shops_by_first_domain ON shops (first_domain) WHERE first_domain IS NOT NULL;

-- When a contract changed last, as its last reading showed it. NULL if an earlier version noted the reading.
ALTER TABLE contract_reads ADD COLUMN updated_at bigint;
