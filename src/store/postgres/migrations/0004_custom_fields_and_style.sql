-- What merchants define for their storefront: custom fields of subscriptions, and the stylesheet of the widget.

CREATE TABLE custom_fields (
  shop_id bigint PRIMARY KEY REFERENCES shops (id) ON DELETE CASCADE,
  -- JSON array of all definitions, in the order in which they were added.
  definitions text NOT NULL,
  -- JSON array: the keys of archived fields with values. Pages leave these values out.
  hidden_keys text NOT NULL
);

-- Values of a subscription. A table of its own, so that pages without custom fields read as few bytes as before.
CREATE TABLE subscription_fields (
  shop_id bigint NOT NULL,
  id text COLLATE "C" NOT NULL,
  started_at bigint NOT NULL,
  -- JSON object: values by key, in the order of the definitions. Values of archived fields stay.
  json text NOT NULL,
  PRIMARY KEY (shop_id, id)
);

CREATE TABLE widget_styles (
  shop_id bigint PRIMARY KEY REFERENCES shops (id) ON DELETE CASCADE,
  -- As the merchant wrote it. The program scopes it again before it serves it.
  source text NOT NULL,
  -- SHA-256 of source.
  hash text NOT NULL
);

CREATE TRIGGER removed_shop BEFORE INSERT ON custom_fields FOR EACH ROW EXECUTE FUNCTION refuse_removed_shop();
CREATE TRIGGER removed_shop BEFORE INSERT ON widget_styles FOR EACH ROW EXECUTE FUNCTION refuse_removed_shop();
