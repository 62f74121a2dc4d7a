-- Views of payments, quotes, grants and spending, for reports. They follow the tables of dist/migrations.
--
-- A view shows the state at the start of the transaction, and a role can read it without a privilege on the table. The
-- function beside it has the same query for the time of its argument, and PostgreSQL plans it like the view. Its caller
-- needs the privilege to read the table.
--
-- Milliseconds become an instant in two ways: `to_timestamp(ms / 1000) + ms % 1000 * interval '1 millisecond'` is
-- exact; `to_timestamp(ms::double precision / 1000)` is allowed in an index, and exact until the year 2242. A place in
-- a list may be any safe integer; -210866803200000 is the first instant that PostgreSQL supports, in 4713 BC.

-- An index on `value` would prevent heap-only updates, because each update changes `value`. The lists of a payment
-- contain its account and the time of its creation, and do not change. A quote is in no list. Neither does the receiver
-- of a payment change. Its state does: an index of it would cost each payment two updates that are not heap-only.
ALTER TABLE open_payments_records
  ADD COLUMN IF NOT EXISTS quote_account text COLLATE "C" GENERATED ALWAYS AS (
    CASE WHEN kind = 'quote' THEN value::jsonb ->> 'walletAddress' END) STORED,
  ADD COLUMN IF NOT EXISTS quote_created_at timestamptz GENERATED ALWAYS AS (
    CASE WHEN kind = 'quote' THEN
      CASE WHEN (value::jsonb ->> 'createdAt')::bigint >= -210866803200000
        THEN to_timestamp((value::jsonb ->> 'createdAt')::bigint::double precision / 1000) END
    END) STORED,
  ADD COLUMN IF NOT EXISTS payment_receiver text COLLATE "C" GENERATED ALWAYS AS (
    CASE WHEN kind = 'outgoing-payment' THEN value::jsonb ->> 'receiver' END) STORED;

-- A list is read page by page, by `(created_at, payment_id)`, which ends each of these indexes.

CREATE INDEX IF NOT EXISTS open_payments_report_incoming_account ON open_payments_records (
  (substr(list_1, 10)),
  (CASE WHEN list_1_at >= -210866803200000 THEN to_timestamp(list_1_at::double precision / 1000) END),
  (substr(id, 9))
) WHERE kind = 'incoming-payment';

CREATE INDEX IF NOT EXISTS open_payments_report_incoming_time ON open_payments_records (
  (CASE WHEN list_1_at >= -210866803200000 THEN to_timestamp(list_1_at::double precision / 1000) END),
  (substr(id, 9))
) WHERE kind = 'incoming-payment';

CREATE INDEX IF NOT EXISTS open_payments_report_outgoing_account ON open_payments_records (
  (substr(list_1, 10)),
  (CASE WHEN list_1_at >= -210866803200000 THEN to_timestamp(list_1_at::double precision / 1000) END),
  (substr(id, 9))
) WHERE kind = 'outgoing-payment';

CREATE INDEX IF NOT EXISTS open_payments_report_outgoing_time ON open_payments_records (
  (CASE WHEN list_1_at >= -210866803200000 THEN to_timestamp(list_1_at::double precision / 1000) END),
  (substr(id, 9))
) WHERE kind = 'outgoing-payment';

CREATE INDEX IF NOT EXISTS open_payments_report_outgoing_receiver ON open_payments_records (
  payment_receiver,
  (CASE WHEN list_1_at >= -210866803200000 THEN to_timestamp(list_1_at::double precision / 1000) END),
  (substr(id, 9))
) WHERE kind = 'outgoing-payment';

CREATE INDEX IF NOT EXISTS open_payments_report_quote_account
  ON open_payments_records (quote_account, quote_created_at, id) WHERE kind = 'quote';

CREATE INDEX IF NOT EXISTS open_payments_report_quote_time
  ON open_payments_records (quote_created_at) WHERE kind = 'quote';

CREATE INDEX IF NOT EXISTS open_payments_report_budget_grant
  ON open_payments_records ((split_part(substr(id, 9), '.', 1))) WHERE kind = 'budget';

CREATE VIEW open_payments_incoming_payments AS
  SELECT left(stored.id, 8) AS server,
    substr(stored.id, 9) AS payment_id,
    substr(stored.list_1, 10) AS account,
    read.client AS client,
    CASE WHEN read.completed THEN 'completed'
      WHEN read."expiryRecorded"
        OR clock.now > to_timestamp(read."expiresAt" / 1000) + read."expiresAt" % 1000 * interval '1 millisecond'
        THEN 'expired'
      ELSE 'open' END AS status,
    (read."incomingAmount" ->> 'value')::numeric AS incoming_value,
    read.received AS received_value,
    read.asset ->> 'assetCode' AS asset_code,
    (read.asset ->> 'assetScale')::integer AS asset_scale,
    CASE WHEN stored.list_1_at >= -210866803200000
      THEN to_timestamp(stored.list_1_at::double precision / 1000) END AS created_at,
    to_timestamp(read."updatedAt" / 1000) + read."updatedAt" % 1000 * interval '1 millisecond' AS updated_at,
    to_timestamp(read."expiresAt" / 1000) + read."expiresAt" % 1000 * interval '1 millisecond' AS expires_at,
    read.metadata AS metadata,
    CASE WHEN read.completed THEN 'completed' WHEN read."expiryRecorded" THEN 'expired' ELSE 'open' END AS state,
    read.cancellation IS NOT NULL AS cancelled,
    read.cancellation ->> 'reason' AS cancellation_reason
  FROM (SELECT date_trunc('milliseconds', now())) AS clock (now)
    CROSS JOIN open_payments_records AS stored
    CROSS JOIN LATERAL jsonb_to_record(stored.value::jsonb) AS read (
      client text, completed boolean, "expiryRecorded" boolean, "expiresAt" bigint,
      "updatedAt" bigint, "incomingAmount" jsonb, received numeric, asset jsonb, metadata jsonb, cancellation jsonb
    )
  WHERE stored.kind = 'incoming-payment';

CREATE FUNCTION open_payments_incoming_payments_at(timestamptz)
RETURNS TABLE (
  server text,
  payment_id text,
  account text,
  client text,
  status text,
  incoming_value numeric,
  received_value numeric,
  asset_code text,
  asset_scale integer,
  created_at timestamptz,
  updated_at timestamptz,
  expires_at timestamptz,
  metadata jsonb,
  state text,
  cancelled boolean,
  cancellation_reason text
) LANGUAGE sql STABLE AS $$
  SELECT left(stored.id, 8) AS server,
    substr(stored.id, 9) AS payment_id,
    substr(stored.list_1, 10) AS account,
    read.client AS client,
    CASE WHEN read.completed THEN 'completed'
      WHEN read."expiryRecorded"
        OR clock.now > to_timestamp(read."expiresAt" / 1000) + read."expiresAt" % 1000 * interval '1 millisecond'
        THEN 'expired'
      ELSE 'open' END AS status,
    (read."incomingAmount" ->> 'value')::numeric AS incoming_value,
    read.received AS received_value,
    read.asset ->> 'assetCode' AS asset_code,
    (read.asset ->> 'assetScale')::integer AS asset_scale,
    CASE WHEN stored.list_1_at >= -210866803200000
      THEN to_timestamp(stored.list_1_at::double precision / 1000) END AS created_at,
    to_timestamp(read."updatedAt" / 1000) + read."updatedAt" % 1000 * interval '1 millisecond' AS updated_at,
    to_timestamp(read."expiresAt" / 1000) + read."expiresAt" % 1000 * interval '1 millisecond' AS expires_at,
    read.metadata AS metadata,
    CASE WHEN read.completed THEN 'completed' WHEN read."expiryRecorded" THEN 'expired' ELSE 'open' END AS state,
    read.cancellation IS NOT NULL AS cancelled,
    read.cancellation ->> 'reason' AS cancellation_reason
  FROM (SELECT date_trunc('milliseconds', $1)) AS clock (now)
    CROSS JOIN open_payments_records AS stored
    CROSS JOIN LATERAL jsonb_to_record(stored.value::jsonb) AS read (
      client text, completed boolean, "expiryRecorded" boolean, "expiresAt" bigint,
      "updatedAt" bigint, "incomingAmount" jsonb, received numeric, asset jsonb, metadata jsonb, cancellation jsonb
    )
  WHERE stored.kind = 'incoming-payment'
$$;

CREATE VIEW open_payments_outgoing_payments AS
  SELECT left(stored.id, 8) AS server,
    substr(stored.id, 9) AS payment_id,
    substr(stored.list_1, 10) AS account,
    read.client AS client,
    read."grantId" AS grant_id,
    read."itemId" AS item_id,
    read."quoteId" AS quote_id,
    stored.payment_receiver AS receiver,
    CASE WHEN read.state = 'created'
        AND clock.now >= to_timestamp(read."holdUntil" / 1000) + read."holdUntil" % 1000 * interval '1 millisecond'
        THEN 'failed'
      ELSE read.state END AS status,
    (read."debitAmount" ->> 'value')::numeric AS debit_value,
    read."debitAmount" ->> 'assetCode' AS debit_asset_code,
    (read."debitAmount" ->> 'assetScale')::integer AS debit_asset_scale,
    (read."receiveAmount" ->> 'value')::numeric AS receive_value,
    read."receiveAmount" ->> 'assetCode' AS receive_asset_code,
    (read."receiveAmount" ->> 'assetScale')::integer AS receive_asset_scale,
    read.sent AS sent_value,
    read.delivered AS delivered_value,
    CASE WHEN stored.list_1_at >= -210866803200000
      THEN to_timestamp(stored.list_1_at::double precision / 1000) END AS created_at,
    to_timestamp(read."updatedAt" / 1000) + read."updatedAt" % 1000 * interval '1 millisecond' AS updated_at,
    to_timestamp(read."holdUntil" / 1000) + read."holdUntil" % 1000 * interval '1 millisecond' AS hold_until,
    to_timestamp(read."endedAt" / 1000) + read."endedAt" % 1000 * interval '1 millisecond' AS ended_at,
    read.failure AS failure,
    read.metadata AS metadata,
    read.state AS state
  FROM (SELECT date_trunc('milliseconds', now())) AS clock (now)
    CROSS JOIN open_payments_records AS stored
    CROSS JOIN LATERAL jsonb_to_record(stored.value::jsonb) AS read (
      client text, "grantId" text, "itemId" text, "quoteId" text, state text,
      "debitAmount" jsonb, "receiveAmount" jsonb, sent numeric, delivered numeric,
      "updatedAt" bigint, "holdUntil" bigint, "endedAt" bigint, failure text, metadata jsonb
    )
  WHERE stored.kind = 'outgoing-payment' AND read.state NOT IN ('reserved', 'declined');

CREATE FUNCTION open_payments_outgoing_payments_at(timestamptz)
RETURNS TABLE (
  server text,
  payment_id text,
  account text,
  client text,
  grant_id text,
  item_id text,
  quote_id text,
  receiver text,
  status text,
  debit_value numeric,
  debit_asset_code text,
  debit_asset_scale integer,
  receive_value numeric,
  receive_asset_code text,
  receive_asset_scale integer,
  sent_value numeric,
  delivered_value numeric,
  created_at timestamptz,
  updated_at timestamptz,
  hold_until timestamptz,
  ended_at timestamptz,
  failure text,
  metadata jsonb,
  state text
) LANGUAGE sql STABLE AS $$
  SELECT left(stored.id, 8) AS server,
    substr(stored.id, 9) AS payment_id,
    substr(stored.list_1, 10) AS account,
    read.client AS client,
    read."grantId" AS grant_id,
    read."itemId" AS item_id,
    read."quoteId" AS quote_id,
    stored.payment_receiver AS receiver,
    CASE WHEN read.state = 'created'
        AND clock.now >= to_timestamp(read."holdUntil" / 1000) + read."holdUntil" % 1000 * interval '1 millisecond'
        THEN 'failed'
      ELSE read.state END AS status,
    (read."debitAmount" ->> 'value')::numeric AS debit_value,
    read."debitAmount" ->> 'assetCode' AS debit_asset_code,
    (read."debitAmount" ->> 'assetScale')::integer AS debit_asset_scale,
    (read."receiveAmount" ->> 'value')::numeric AS receive_value,
    read."receiveAmount" ->> 'assetCode' AS receive_asset_code,
    (read."receiveAmount" ->> 'assetScale')::integer AS receive_asset_scale,
    read.sent AS sent_value,
    read.delivered AS delivered_value,
    CASE WHEN stored.list_1_at >= -210866803200000
      THEN to_timestamp(stored.list_1_at::double precision / 1000) END AS created_at,
    to_timestamp(read."updatedAt" / 1000) + read."updatedAt" % 1000 * interval '1 millisecond' AS updated_at,
    to_timestamp(read."holdUntil" / 1000) + read."holdUntil" % 1000 * interval '1 millisecond' AS hold_until,
    to_timestamp(read."endedAt" / 1000) + read."endedAt" % 1000 * interval '1 millisecond' AS ended_at,
    read.failure AS failure,
    read.metadata AS metadata,
    read.state AS state
  FROM (SELECT date_trunc('milliseconds', $1)) AS clock (now)
    CROSS JOIN open_payments_records AS stored
    CROSS JOIN LATERAL jsonb_to_record(stored.value::jsonb) AS read (
      client text, "grantId" text, "itemId" text, "quoteId" text, state text,
      "debitAmount" jsonb, "receiveAmount" jsonb, sent numeric, delivered numeric,
      "updatedAt" bigint, "holdUntil" bigint, "endedAt" bigint, failure text, metadata jsonb
    )
  WHERE stored.kind = 'outgoing-payment' AND read.state NOT IN ('reserved', 'declined')
$$;

CREATE VIEW open_payments_quotes AS
  SELECT left(stored.id, 8) AS server,
    substr(stored.id, 9) AS quote_id,
    stored.quote_account AS account,
    read.client AS client,
    read.receiver AS receiver,
    CASE WHEN clock.now >= to_timestamp(read."expiresAt" / 1000) + read."expiresAt" % 1000 * interval '1 millisecond'
        THEN 'expired'
      ELSE 'valid' END AS status,
    (read."debitAmount" ->> 'value')::numeric AS debit_value,
    read."debitAmount" ->> 'assetCode' AS debit_asset_code,
    (read."debitAmount" ->> 'assetScale')::integer AS debit_asset_scale,
    (read."receiveAmount" ->> 'value')::numeric AS receive_value,
    read."receiveAmount" ->> 'assetCode' AS receive_asset_code,
    (read."receiveAmount" ->> 'assetScale')::integer AS receive_asset_scale,
    stored.quote_created_at AS created_at,
    to_timestamp(read."expiresAt" / 1000) + read."expiresAt" % 1000 * interval '1 millisecond' AS expires_at
  FROM (SELECT date_trunc('milliseconds', now())) AS clock (now)
    CROSS JOIN open_payments_records AS stored
    CROSS JOIN LATERAL jsonb_to_record(stored.value::jsonb) AS read (
      client text, receiver text, "debitAmount" jsonb, "receiveAmount" jsonb, "expiresAt" bigint
    )
  WHERE stored.kind = 'quote';

CREATE FUNCTION open_payments_quotes_at(timestamptz)
RETURNS TABLE (
  server text,
  quote_id text,
  account text,
  client text,
  receiver text,
  status text,
  debit_value numeric,
  debit_asset_code text,
  debit_asset_scale integer,
  receive_value numeric,
  receive_asset_code text,
  receive_asset_scale integer,
  created_at timestamptz,
  expires_at timestamptz
) LANGUAGE sql STABLE AS $$
  SELECT left(stored.id, 8) AS server,
    substr(stored.id, 9) AS quote_id,
    stored.quote_account AS account,
    read.client AS client,
    read.receiver AS receiver,
    CASE WHEN clock.now >= to_timestamp(read."expiresAt" / 1000) + read."expiresAt" % 1000 * interval '1 millisecond'
        THEN 'expired'
      ELSE 'valid' END AS status,
    (read."debitAmount" ->> 'value')::numeric AS debit_value,
    read."debitAmount" ->> 'assetCode' AS debit_asset_code,
    (read."debitAmount" ->> 'assetScale')::integer AS debit_asset_scale,
    (read."receiveAmount" ->> 'value')::numeric AS receive_value,
    read."receiveAmount" ->> 'assetCode' AS receive_asset_code,
    (read."receiveAmount" ->> 'assetScale')::integer AS receive_asset_scale,
    stored.quote_created_at AS created_at,
    to_timestamp(read."expiresAt" / 1000) + read."expiresAt" % 1000 * interval '1 millisecond' AS expires_at
  FROM (SELECT date_trunc('milliseconds', $1)) AS clock (now)
    CROSS JOIN open_payments_records AS stored
    CROSS JOIN LATERAL jsonb_to_record(stored.value::jsonb) AS read (
      client text, receiver text, "debitAmount" jsonb, "receiveAmount" jsonb, "expiresAt" bigint
    )
  WHERE stored.kind = 'quote'
$$;

-- The clock of a grant is never before its last change.
CREATE VIEW open_payments_grants AS
  SELECT left(stored.id, 8) AS server,
    stored.id AS grant_id,
    coalesce(read.client ->> 'walletAddress',
      'urn:ietf:params:oauth:jwk-thumbprint:sha-256:' || (read.client ->> 'thumbprint')) AS client,
    CASE WHEN read.finalized IS NOT NULL THEN read.finalized ->> 'reason'
      WHEN read.granted IS NULL
        AND own.now >= to_timestamp(latest.asked / 1000) + latest.asked % 1000 * interval '1 millisecond'
        THEN 'interaction-expired'
      WHEN read.granted IS NULL THEN 'pending'
      WHEN own.now >= own.expires_at THEN 'expired'
      ELSE 'approved' END AS status,
    read.consent ->> 'resourceOwner' AS resource_owner,
    ARRAY(SELECT DISTINCT item ->> 'identifier' AS identifier
      FROM jsonb_array_elements(coalesce(read.granted, read.requested)) AS item
      WHERE item ->> 'identifier' IS NOT NULL ORDER BY identifier) AS accounts,
    coalesce(read.granted, read.requested) AS access,
    to_timestamp(read."createdAt" / 1000) + read."createdAt" % 1000 * interval '1 millisecond' AS created_at,
    to_timestamp(GREATEST(latest.changed, latest.closed) / 1000)
      + GREATEST(latest.changed, latest.closed) % 1000 * interval '1 millisecond' AS updated_at,
    to_timestamp(latest.approved / 1000) + latest.approved % 1000 * interval '1 millisecond' AS approved_at,
    to_timestamp(read."issuedAt" / 1000) + read."issuedAt" % 1000 * interval '1 millisecond' AS issued_at,
    CASE WHEN read.finalized IS NULL THEN own.expires_at END AS expires_at
  FROM (SELECT date_trunc('milliseconds', now())) AS clock (now)
    CROSS JOIN open_payments_records AS stored
    CROSS JOIN LATERAL jsonb_to_record(stored.value::jsonb) AS read (
      client jsonb, finalized jsonb, "createdAt" bigint, requested jsonb,
      granted jsonb, "expiresAt" bigint, consent jsonb, interaction jsonb, continuation jsonb,
      tokens jsonb, "issuedAt" bigint
    )
    CROSS JOIN LATERAL (
      SELECT max((token ->> 'issuedAt')::bigint), max((token ->> 'revokedAt')::bigint)
      FROM jsonb_array_elements(read.tokens) AS token
    ) AS tokens (issued, revoked)
    CROSS JOIN LATERAL (
      SELECT (read.consent ->> 'at')::bigint, (read.interaction ->> 'expiresAt')::bigint,
        GREATEST(read."createdAt", (read.consent ->> 'at')::bigint, read."issuedAt", tokens.issued,
          tokens.revoked),
        GREATEST((read.finalized ->> 'at')::bigint, (read.continuation ->> 'acceptedAt')::bigint)
    ) AS latest (approved, asked, changed, closed)
    CROSS JOIN LATERAL (
      SELECT
        GREATEST(
          clock.now,
          to_timestamp(latest.changed / 1000) + latest.changed % 1000 * interval '1 millisecond'
        ),
        to_timestamp(read."expiresAt" / 1000) + read."expiresAt" % 1000 * interval '1 millisecond'
    ) AS own (now, expires_at)
  WHERE stored.kind IN ('grant', 'ended-grant')
    AND (stored.kind = 'grant' OR NOT EXISTS (
      SELECT FROM open_payments_records AS same WHERE same.kind = 'grant' AND same.id = stored.id
    ));

CREATE FUNCTION open_payments_grants_at(timestamptz) RETURNS TABLE (
  server text,
  grant_id text,
  client text,
  status text,
  resource_owner text,
  accounts text[],
  access jsonb,
  created_at timestamptz,
  updated_at timestamptz,
  approved_at timestamptz,
  issued_at timestamptz,
  expires_at timestamptz
) LANGUAGE sql STABLE AS $$
  SELECT left(stored.id, 8) AS server,
    stored.id AS grant_id,
    coalesce(read.client ->> 'walletAddress',
      'urn:ietf:params:oauth:jwk-thumbprint:sha-256:' || (read.client ->> 'thumbprint')) AS client,
    CASE WHEN read.finalized IS NOT NULL THEN read.finalized ->> 'reason'
      WHEN read.granted IS NULL
        AND own.now >= to_timestamp(latest.asked / 1000) + latest.asked % 1000 * interval '1 millisecond'
        THEN 'interaction-expired'
      WHEN read.granted IS NULL THEN 'pending'
      WHEN own.now >= own.expires_at THEN 'expired'
      ELSE 'approved' END AS status,
    read.consent ->> 'resourceOwner' AS resource_owner,
    ARRAY(SELECT DISTINCT item ->> 'identifier' AS identifier
      FROM jsonb_array_elements(coalesce(read.granted, read.requested)) AS item
      WHERE item ->> 'identifier' IS NOT NULL ORDER BY identifier) AS accounts,
    coalesce(read.granted, read.requested) AS access,
    to_timestamp(read."createdAt" / 1000) + read."createdAt" % 1000 * interval '1 millisecond' AS created_at,
    to_timestamp(GREATEST(latest.changed, latest.closed) / 1000)
      + GREATEST(latest.changed, latest.closed) % 1000 * interval '1 millisecond' AS updated_at,
    to_timestamp(latest.approved / 1000) + latest.approved % 1000 * interval '1 millisecond' AS approved_at,
    to_timestamp(read."issuedAt" / 1000) + read."issuedAt" % 1000 * interval '1 millisecond' AS issued_at,
    CASE WHEN read.finalized IS NULL THEN own.expires_at END AS expires_at
  FROM (SELECT date_trunc('milliseconds', $1)) AS clock (now)
    CROSS JOIN open_payments_records AS stored
    CROSS JOIN LATERAL jsonb_to_record(stored.value::jsonb) AS read (
      client jsonb, finalized jsonb, "createdAt" bigint, requested jsonb,
      granted jsonb, "expiresAt" bigint, consent jsonb, interaction jsonb, continuation jsonb,
      tokens jsonb, "issuedAt" bigint
    )
    CROSS JOIN LATERAL (
      SELECT max((token ->> 'issuedAt')::bigint), max((token ->> 'revokedAt')::bigint)
      FROM jsonb_array_elements(read.tokens) AS token
    ) AS tokens (issued, revoked)
    CROSS JOIN LATERAL (
      SELECT (read.consent ->> 'at')::bigint, (read.interaction ->> 'expiresAt')::bigint,
        GREATEST(read."createdAt", (read.consent ->> 'at')::bigint, read."issuedAt", tokens.issued,
          tokens.revoked),
        GREATEST((read.finalized ->> 'at')::bigint, (read.continuation ->> 'acceptedAt')::bigint)
    ) AS latest (approved, asked, changed, closed)
    CROSS JOIN LATERAL (
      SELECT
        GREATEST(
          clock.now,
          to_timestamp(latest.changed / 1000) + latest.changed % 1000 * interval '1 millisecond'
        ),
        to_timestamp(read."expiresAt" / 1000) + read."expiresAt" % 1000 * interval '1 millisecond'
    ) AS own (now, expires_at)
  WHERE stored.kind IN ('grant', 'ended-grant')
    AND (stored.kind = 'grant' OR NOT EXISTS (
      SELECT FROM open_payments_records AS same WHERE same.kind = 'grant' AND same.id = stored.id
    ))
$$;

-- The budgets of items in windows in which a payment was created, with the limits of the items.
CREATE VIEW open_payments_spending AS
  SELECT left(stored.id, 8) AS server,
    split_part(substr(stored.id, 9), '.', 1) AS grant_id,
    read."itemId" AS item_id,
    coalesce(granted.client ->> 'walletAddress',
      'urn:ietf:params:oauth:jwk-thumbprint:sha-256:' || (granted.client ->> 'thumbprint')) AS client,
    item.value ->> 'identifier' AS account,
    of_item.limits ->> 'interval' AS limit_interval,
    to_timestamp(read."windowStart" / 1000) + read."windowStart" % 1000 * interval '1 millisecond' AS window_start,
    to_timestamp(read."windowEnd" / 1000) + read."windowEnd" % 1000 * interval '1 millisecond' AS window_end,
    coalesce(
      clock.now >= to_timestamp(read."windowStart" / 1000) + read."windowStart" % 1000 * interval '1 millisecond'
      AND clock.now < to_timestamp(read."windowEnd" / 1000) + read."windowEnd" % 1000 * interval '1 millisecond',
      true) AS is_open,
    CASE WHEN of_item.limits ? 'debitAmount' THEN 'debit'
      WHEN of_item.limits ? 'receiveAmount' THEN 'receive' END AS limited,
    (of_item.counted ->> 'value')::numeric AS limit_value,
    of_item.counted ->> 'assetCode' AS limit_asset_code,
    (of_item.counted ->> 'assetScale')::integer AS limit_asset_scale,
    (of_item.debit ->> 'value')::numeric AS spent_debit_value,
    of_item.debit ->> 'assetCode' AS spent_debit_asset_code,
    (of_item.debit ->> 'assetScale')::integer AS spent_debit_asset_scale,
    (of_item.receive ->> 'value')::numeric AS spent_receive_value,
    of_item.receive ->> 'assetCode' AS spent_receive_asset_code,
    (of_item.receive ->> 'assetScale')::integer AS spent_receive_asset_scale
  FROM (SELECT date_trunc('milliseconds', now())) AS clock (now)
    CROSS JOIN open_payments_records AS stored
    CROSS JOIN LATERAL jsonb_to_record(stored.value::jsonb) AS read (
      "itemId" text, "windowStart" bigint, "windowEnd" bigint, spent jsonb
    )
    LEFT JOIN open_payments_records AS grants
      ON grants.kind = 'grant' AND grants.id = split_part(substr(stored.id, 9), '.', 1)
    LEFT JOIN LATERAL jsonb_to_record(grants.value::jsonb) AS granted (client jsonb, granted jsonb) ON true
    LEFT JOIN LATERAL jsonb_array_elements(granted.granted) AS item
      ON item.value ->> 'itemId' = read."itemId"
    CROSS JOIN LATERAL (
      SELECT item.value -> 'limits',
        coalesce(item.value -> 'limits' -> 'debitAmount', item.value -> 'limits' -> 'receiveAmount'),
        nullif(read.spent -> 'debitAmount', 'null'),
        nullif(read.spent -> 'receiveAmount', 'null')
    ) AS of_item (limits, counted, debit, receive)
  WHERE stored.kind = 'budget' AND read."itemId" IS NOT NULL;

CREATE FUNCTION open_payments_spending_at(timestamptz)
RETURNS TABLE (
  server text,
  grant_id text,
  item_id text,
  client text,
  account text,
  limit_interval text,
  window_start timestamptz,
  window_end timestamptz,
  is_open boolean,
  limited text,
  limit_value numeric,
  limit_asset_code text,
  limit_asset_scale integer,
  spent_debit_value numeric,
  spent_debit_asset_code text,
  spent_debit_asset_scale integer,
  spent_receive_value numeric,
  spent_receive_asset_code text,
  spent_receive_asset_scale integer
) LANGUAGE sql STABLE AS $$
  SELECT left(stored.id, 8) AS server,
    split_part(substr(stored.id, 9), '.', 1) AS grant_id,
    read."itemId" AS item_id,
    coalesce(granted.client ->> 'walletAddress',
      'urn:ietf:params:oauth:jwk-thumbprint:sha-256:' || (granted.client ->> 'thumbprint')) AS client,
    item.value ->> 'identifier' AS account,
    of_item.limits ->> 'interval' AS limit_interval,
    to_timestamp(read."windowStart" / 1000) + read."windowStart" % 1000 * interval '1 millisecond' AS window_start,
    to_timestamp(read."windowEnd" / 1000) + read."windowEnd" % 1000 * interval '1 millisecond' AS window_end,
    coalesce(
      clock.now >= to_timestamp(read."windowStart" / 1000) + read."windowStart" % 1000 * interval '1 millisecond'
      AND clock.now < to_timestamp(read."windowEnd" / 1000) + read."windowEnd" % 1000 * interval '1 millisecond',
      true) AS is_open,
    CASE WHEN of_item.limits ? 'debitAmount' THEN 'debit'
      WHEN of_item.limits ? 'receiveAmount' THEN 'receive' END AS limited,
    (of_item.counted ->> 'value')::numeric AS limit_value,
    of_item.counted ->> 'assetCode' AS limit_asset_code,
    (of_item.counted ->> 'assetScale')::integer AS limit_asset_scale,
    (of_item.debit ->> 'value')::numeric AS spent_debit_value,
    of_item.debit ->> 'assetCode' AS spent_debit_asset_code,
    (of_item.debit ->> 'assetScale')::integer AS spent_debit_asset_scale,
    (of_item.receive ->> 'value')::numeric AS spent_receive_value,
    of_item.receive ->> 'assetCode' AS spent_receive_asset_code,
    (of_item.receive ->> 'assetScale')::integer AS spent_receive_asset_scale
  FROM (SELECT date_trunc('milliseconds', $1)) AS clock (now)
    CROSS JOIN open_payments_records AS stored
    CROSS JOIN LATERAL jsonb_to_record(stored.value::jsonb) AS read (
      "itemId" text, "windowStart" bigint, "windowEnd" bigint, spent jsonb
    )
    LEFT JOIN open_payments_records AS grants
      ON grants.kind = 'grant' AND grants.id = split_part(substr(stored.id, 9), '.', 1)
    LEFT JOIN LATERAL jsonb_to_record(grants.value::jsonb) AS granted (client jsonb, granted jsonb) ON true
    LEFT JOIN LATERAL jsonb_array_elements(granted.granted) AS item
      ON item.value ->> 'itemId' = read."itemId"
    CROSS JOIN LATERAL (
      SELECT item.value -> 'limits',
        coalesce(item.value -> 'limits' -> 'debitAmount', item.value -> 'limits' -> 'receiveAmount'),
        nullif(read.spent -> 'debitAmount', 'null'),
        nullif(read.spent -> 'receiveAmount', 'null')
    ) AS of_item (limits, counted, debit, receive)
  WHERE stored.kind = 'budget' AND read."itemId" IS NOT NULL
$$;
