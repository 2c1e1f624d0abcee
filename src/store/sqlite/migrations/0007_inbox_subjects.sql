-- All that waits about one subject is taken together, whenever each of it is due.
CREATE INDEX inbox_of_subject ON inbox (shop_id, subject, next_attempt_at, number) WHERE next_attempt_at IS NOT NULL;
