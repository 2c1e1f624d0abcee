-- What merchants define for their storefront: custom fields of subscriptions, and the stylesheet of the widget.

CREATE TABLE custom_fields (
  shop_id INTEGER PRIMARY KEY REFERENCES shops (id) ON DELETE CASCADE,
  -- JSON array of all definitions, in the order in which they were added.
  definitions TEXT NOT NULL,
  -- JSON array: the keys of archived fields with values. Pages leave these values out.
  hidden_keys TEXT NOT NULL
) STRICT;

-- Values of a subscription. A table of its own, so that pages without custom fields read as few bytes as before.
CREATE TABLE subscription_fields (
  shop_id INTEGER NOT NULL REFERENCES shops (id),
  started_at INTEGER NOT NULL,
  id TEXT NOT NULL,
  -- JSON object: values by key, in the order of the definitions. Values of archived fields stay.
  json TEXT NOT NULL,
  PRIMARY KEY (shop_id, started_at, id)
) STRICT, WITHOUT ROWID;

CREATE TABLE widget_styles (
  shop_id INTEGER PRIMARY KEY REFERENCES shops (id) ON DELETE CASCADE,
  -- As the merchant wrote it. The program scopes it again before it serves it.
  source TEXT NOT NULL,
  -- SHA-256 of source.
  hash TEXT NOT NULL
) STRICT;

CREATE TRIGGER custom_fields_of_removed_shop BEFORE INSERT ON custom_fields
WHEN EXISTS (SELECT 1 FROM shops WHERE id = NEW.shop_id AND removal_started_at IS NOT NULL)
BEGIN SELECT RAISE(ABORT, 'the shop is being removed'); END;
CREATE TRIGGER widget_styles_of_removed_shop BEFORE INSERT ON widget_styles
WHEN EXISTS (SELECT 1 FROM shops WHERE id = NEW.shop_id AND removal_started_at IS NOT NULL)
BEGIN SELECT RAISE(ABORT, 'the shop is being removed'); END;
