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

-- A branch is the changes of a shop on one timeline of the server. A failover or a restore goes on from an earlier state,
-- on another timeline. So the next change of the shop begins a new branch.
ALTER TABLE shop_changes
  -- Random; empty until the first branch begins.
  ADD COLUMN branch text COLLATE "C" NOT NULL DEFAULT '',
  -- The timeline on which the branch began: 8 hexadecimal digits. Empty if the next change shall begin a branch.
  ADD COLUMN timeline text COLLATE "C" NOT NULL DEFAULT left(pg_walfile_name(pg_current_wal_lsn()), 8);

-- The last change of each former branch that this database has. Readers with a later one know changes that were lost.
CREATE TABLE former_branches (
  shop_id bigint NOT NULL REFERENCES shops (id) ON DELETE CASCADE,
  branch text COLLATE "C" NOT NULL,
  change_count bigint NOT NULL,
  PRIMARY KEY (shop_id, branch)
);

CREATE FUNCTION begin_branch() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  INSERT INTO former_branches (shop_id, branch, change_count) VALUES (OLD.shop_id, OLD.branch, OLD.change_count)
    ON CONFLICT (shop_id, branch) DO UPDATE SET change_count = least(former_branches.change_count, excluded.change_count);
  NEW.branch := replace(gen_random_uuid()::text, '-', '');
  NEW.timeline := left(pg_walfile_name(pg_current_wal_lsn()), 8);
  RETURN NEW;
END $$;
-- A trigger, so that no writer of a change can forget it, whatever connection and node it has.
CREATE TRIGGER shop_branch BEFORE UPDATE ON shop_changes FOR EACH ROW
  WHEN (NEW.change_count > OLD.change_count AND OLD.timeline <> left(pg_walfile_name(pg_current_wal_lsn()), 8))
  EXECUTE FUNCTION begin_branch();

-- Where the other nodes reach this one (SDS_NODE_URL). NULL: they send it nothing.
ALTER TABLE nodes ADD COLUMN url text;
