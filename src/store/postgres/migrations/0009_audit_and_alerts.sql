-- Who made the key, as the settings page names people: "staff 42", "session", "command line". NULL for older keys.
ALTER TABLE api_keys ADD COLUMN created_by text;

-- Finds the newest test event of a shop.
CREATE INDEX deliveries_test ON deliveries (shop_id, number) WHERE test;
