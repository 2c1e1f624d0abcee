/** SQL of the number of a shop's last change, in the snapshot of the statement. The shop is $1. */
export const CHANGE_COUNT = `(SELECT change_count FROM shop_changes WHERE shop_id = $1::bigint)::float8
  AS "changeCount"`;
