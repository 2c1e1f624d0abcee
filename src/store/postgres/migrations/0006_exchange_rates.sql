-- The currency of a contract, if it is not the shop's.

-- The contract's currency and the shop's, like JPY/USD.
ALTER TABLE contract_reads ADD COLUMN currency_pair text;
-- JSON object with `from` and `to`: the same money in minor units of both currencies. NULL while no rate is known.
ALTER TABLE contract_reads ADD COLUMN rate text;
-- When the contract's own order with this rate was made. NULL for the rate of another contract.
ALTER TABLE contract_reads ADD COLUMN rated_at bigint;
-- Finds the newest rate of a currency.
CREATE INDEX contract_reads_by_rate ON contract_reads (shop_id, currency_pair, rated_at) WHERE rated_at IS NOT NULL;
-- Finds contracts without a rate.
CREATE INDEX contract_reads_without_rate ON contract_reads (shop_id, contract)
WHERE currency_pair IS NOT NULL AND rate IS NULL;
