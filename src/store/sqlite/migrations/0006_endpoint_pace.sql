-- What is known of an endpoint's pace, so that a restart does not forget who hangs. Null: it was never tried.

ALTER TABLE webhook_endpoints ADD COLUMN pace TEXT CHECK (pace IN ('quick', 'slow'));
ALTER TABLE webhook_endpoints ADD COLUMN timed_out_at INTEGER;
