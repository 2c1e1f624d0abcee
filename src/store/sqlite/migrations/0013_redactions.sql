-- Imports leave out the personal data of people who were redacted after the file changed, or after the import began.
ALTER TABLE customers ADD COLUMN redacted_at INTEGER;
-- The shop's change count before the commit of the redaction.
ALTER TABLE customers ADD COLUMN redacted_after INTEGER;
-- Whether the body named a person at their redaction. Answers to such a delivery are not kept.
ALTER TABLE deliveries ADD COLUMN redacted INTEGER NOT NULL DEFAULT 0 CHECK (redacted IN (0, 1));
