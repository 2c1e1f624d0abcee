-- A body of the intake is one commit from now on. A node with the older program cannot store a larger one any more: its
-- sender gets 503, and tries again. What it stored whole before is applied when a node with this program opens the
-- database (left-over-bodies.ts). The tables stay for the older program, which reads them. A later version may drop them
-- where they are empty.

CREATE FUNCTION refuse_large_body() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  -- The code of a lock that is not available: the older program says that the database is busy.
  RAISE EXCEPTION 'a node with a newer program takes no large bodies' USING ERRCODE = '55P03';
END $$;

CREATE TRIGGER no_new_body BEFORE INSERT ON intake_bodies FOR EACH ROW EXECUTE FUNCTION refuse_large_body();
CREATE TRIGGER no_complete_body BEFORE UPDATE OF complete ON intake_bodies
  FOR EACH ROW WHEN (NEW.complete) EXECUTE FUNCTION refuse_large_body();
