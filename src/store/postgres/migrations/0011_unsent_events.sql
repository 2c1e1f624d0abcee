-- Events for which no delivery was queued, and why: the last one of each day, subject, topic and cycle.
CREATE TABLE unsent_events (
  shop_id bigint NOT NULL,
  -- Days since 1970 in UTC. It comes first in the key, so that old events are removed as a range.
  day bigint NOT NULL,
  -- As in `delivery_subjects`.
  subject text COLLATE "C" NOT NULL,
  topic text COLLATE "C" NOT NULL,
  -- Which renewal of the contract; 0 for a checkout, -1 for events that name no order.
  cycle bigint NOT NULL,
  at bigint NOT NULL,
  reason text COLLATE "C" NOT NULL,
  PRIMARY KEY (shop_id, day, subject, topic, cycle)
);
