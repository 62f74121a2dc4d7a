CREATE TABLE open_payments_migrations (
  version integer NOT NULL,
  name text NOT NULL
);
--
CREATE TABLE open_payments_records (
  kind text COLLATE "C" NOT NULL,
  id text COLLATE "C" NOT NULL,
  version bigint NOT NULL,
  value text NOT NULL,
  due_at bigint,
  list_1 text COLLATE "C",
  list_1_at bigint,
  list_2 text COLLATE "C",
  list_2_at bigint,
  list_3 text COLLATE "C",
  list_3_at bigint,
  quote_account text COLLATE "C" GENERATED ALWAYS AS (
CASE
    WHEN (kind = 'quote'::text) THEN ((value)::jsonb ->> 'walletAddress'::text)
    ELSE NULL::text
END) STORED,
  quote_created_at timestamp with time zone GENERATED ALWAYS AS (
CASE
    WHEN (kind = 'quote'::text) THEN
    CASE
        WHEN ((((value)::jsonb ->> 'createdAt'::text))::bigint >= '-210866803200000'::bigint) THEN to_timestamp((((((value)::jsonb ->> 'createdAt'::text))::bigint)::double precision / (1000)::double precision))
        ELSE NULL::timestamp with time zone
    END
    ELSE NULL::timestamp with time zone
END) STORED,
  payment_receiver text COLLATE "C" GENERATED ALWAYS AS (
CASE
    WHEN (kind = 'outgoing-payment'::text) THEN ((value)::jsonb ->> 'receiver'::text)
    ELSE NULL::text
END) STORED
) WITH (fillfactor=70, autovacuum_vacuum_scale_factor=0.05, autovacuum_analyze_scale_factor=0.05);
--
CREATE TABLE open_payments_report_migrations (
  version integer NOT NULL,
  name text NOT NULL
);
--
ALTER TABLE open_payments_migrations ADD CONSTRAINT open_payments_migrations_pkey PRIMARY KEY (version);
--
ALTER TABLE open_payments_records ADD CONSTRAINT open_payments_records_pkey PRIMARY KEY (kind, id);
--
ALTER TABLE open_payments_report_migrations ADD CONSTRAINT open_payments_report_migrations_pkey PRIMARY KEY (version);
--
CREATE INDEX open_payments_records_due ON open_payments_records USING btree (kind, "left"(id, 8), due_at, id) WHERE (due_at IS NOT NULL);
--
CREATE INDEX open_payments_records_list_1 ON open_payments_records USING btree (kind, list_1, list_1_at, id) WHERE (list_1 IS NOT NULL);
--
CREATE INDEX open_payments_records_list_2 ON open_payments_records USING btree (kind, list_2, list_2_at, id) WHERE (list_2 IS NOT NULL);
--
CREATE INDEX open_payments_records_list_3 ON open_payments_records USING btree (kind, list_3, list_3_at, id) WHERE (list_3 IS NOT NULL);
--
CREATE INDEX open_payments_report_budget_grant ON open_payments_records USING btree (split_part(substr(id, 9), '.'::text, 1)) WHERE (kind = 'budget'::text);
--
CREATE INDEX open_payments_report_incoming_account ON open_payments_records USING btree (substr(list_1, 10), (
CASE
    WHEN (list_1_at >= '-210866803200000'::bigint) THEN to_timestamp(((list_1_at)::double precision / (1000)::double precision))
    ELSE NULL::timestamp with time zone
END), substr(id, 9)) WHERE (kind = 'incoming-payment'::text);
--
CREATE INDEX open_payments_report_incoming_time ON open_payments_records USING btree ((
CASE
    WHEN (list_1_at >= '-210866803200000'::bigint) THEN to_timestamp(((list_1_at)::double precision / (1000)::double precision))
    ELSE NULL::timestamp with time zone
END), substr(id, 9)) WHERE (kind = 'incoming-payment'::text);
--
CREATE INDEX open_payments_report_outgoing_account ON open_payments_records USING btree (substr(list_1, 10), (
CASE
    WHEN (list_1_at >= '-210866803200000'::bigint) THEN to_timestamp(((list_1_at)::double precision / (1000)::double precision))
    ELSE NULL::timestamp with time zone
END), substr(id, 9)) WHERE (kind = 'outgoing-payment'::text);
--
CREATE INDEX open_payments_report_outgoing_receiver ON open_payments_records USING btree (payment_receiver, (
CASE
    WHEN (list_1_at >= '-210866803200000'::bigint) THEN to_timestamp(((list_1_at)::double precision / (1000)::double precision))
    ELSE NULL::timestamp with time zone
END), substr(id, 9)) WHERE (kind = 'outgoing-payment'::text);
--
CREATE INDEX open_payments_report_outgoing_time ON open_payments_records USING btree ((
CASE
    WHEN (list_1_at >= '-210866803200000'::bigint) THEN to_timestamp(((list_1_at)::double precision / (1000)::double precision))
    ELSE NULL::timestamp with time zone
END), substr(id, 9)) WHERE (kind = 'outgoing-payment'::text);
--
CREATE INDEX open_payments_report_quote_account ON open_payments_records USING btree (quote_account, quote_created_at, id) WHERE (kind = 'quote'::text);
--
CREATE INDEX open_payments_report_quote_time ON open_payments_records USING btree (quote_created_at) WHERE (kind = 'quote'::text);
--
CREATE VIEW open_payments_grants AS
 SELECT "left"(stored.id, 8) AS server,
    stored.id AS grant_id,
    COALESCE((read.client ->> 'walletAddress'::text), ('urn:ietf:params:oauth:jwk-thumbprint:sha-256:'::text || (read.client ->> 'thumbprint'::text))) AS client,
        CASE
            WHEN (read.finalized IS NOT NULL) THEN (read.finalized ->> 'reason'::text)
            WHEN ((read.granted IS NULL) AND (own.now >= (to_timestamp(((latest.asked / 1000))::double precision) + (((latest.asked % (1000)::bigint))::double precision * '00:00:00.001'::interval)))) THEN 'interaction-expired'::text
            WHEN (read.granted IS NULL) THEN 'pending'::text
            WHEN (own.now >= own.expires_at) THEN 'expired'::text
            ELSE 'approved'::text
        END AS status,
    (read.consent ->> 'resourceOwner'::text) AS resource_owner,
    ARRAY( SELECT DISTINCT (item.value ->> 'identifier'::text) AS identifier
           FROM jsonb_array_elements(COALESCE(read.granted, read.requested)) item(value)
          WHERE ((item.value ->> 'identifier'::text) IS NOT NULL)
          ORDER BY (item.value ->> 'identifier'::text)) AS accounts,
    COALESCE(read.granted, read.requested) AS access,
    (to_timestamp(((read."createdAt" / 1000))::double precision) + (((read."createdAt" % (1000)::bigint))::double precision * '00:00:00.001'::interval)) AS created_at,
    (to_timestamp(((GREATEST(latest.changed, latest.closed) / 1000))::double precision) + (((GREATEST(latest.changed, latest.closed) % (1000)::bigint))::double precision * '00:00:00.001'::interval)) AS updated_at,
    (to_timestamp(((latest.approved / 1000))::double precision) + (((latest.approved % (1000)::bigint))::double precision * '00:00:00.001'::interval)) AS approved_at,
    (to_timestamp(((read."issuedAt" / 1000))::double precision) + (((read."issuedAt" % (1000)::bigint))::double precision * '00:00:00.001'::interval)) AS issued_at,
        CASE
            WHEN (read.finalized IS NULL) THEN own.expires_at
            ELSE NULL::timestamp with time zone
        END AS expires_at
   FROM (((((( SELECT date_trunc('milliseconds'::text, now()) AS date_trunc) clock(now)
     CROSS JOIN open_payments_records stored)
     CROSS JOIN LATERAL jsonb_to_record((stored.value)::jsonb) read(client jsonb, finalized jsonb, "createdAt" bigint, requested jsonb, granted jsonb, "expiresAt" bigint, consent jsonb, interaction jsonb, continuation jsonb, tokens jsonb, "issuedAt" bigint))
     CROSS JOIN LATERAL ( SELECT max(((token.value ->> 'issuedAt'::text))::bigint) AS max,
            max(((token.value ->> 'revokedAt'::text))::bigint) AS max
           FROM jsonb_array_elements(read.tokens) token(value)) tokens(issued, revoked))
     CROSS JOIN LATERAL ( SELECT ((read.consent ->> 'at'::text))::bigint AS int8,
            ((read.interaction ->> 'expiresAt'::text))::bigint AS int8,
            GREATEST(read."createdAt", ((read.consent ->> 'at'::text))::bigint, read."issuedAt", tokens.issued, tokens.revoked) AS "greatest",
            GREATEST(((read.finalized ->> 'at'::text))::bigint, ((read.continuation ->> 'acceptedAt'::text))::bigint) AS "greatest") latest(approved, asked, changed, closed))
     CROSS JOIN LATERAL ( SELECT GREATEST(clock.now, (to_timestamp(((latest.changed / 1000))::double precision) + (((latest.changed % (1000)::bigint))::double precision * '00:00:00.001'::interval))) AS "greatest",
            (to_timestamp(((read."expiresAt" / 1000))::double precision) + (((read."expiresAt" % (1000)::bigint))::double precision * '00:00:00.001'::interval)) AS "?column?") own(now, expires_at))
  WHERE ((stored.kind = ANY (ARRAY['grant'::text, 'ended-grant'::text])) AND ((stored.kind = 'grant'::text) OR (NOT (EXISTS ( SELECT
           FROM open_payments_records same
          WHERE ((same.kind = 'grant'::text) AND (same.id = stored.id)))))));
--
CREATE VIEW open_payments_incoming_payments AS
 SELECT "left"(stored.id, 8) AS server,
    substr(stored.id, 9) AS payment_id,
    substr(stored.list_1, 10) AS account,
    read.client,
        CASE
            WHEN read.completed THEN 'completed'::text
            WHEN (read."expiryRecorded" OR (clock.now > (to_timestamp(((read."expiresAt" / 1000))::double precision) + (((read."expiresAt" % (1000)::bigint))::double precision * '00:00:00.001'::interval)))) THEN 'expired'::text
            ELSE 'open'::text
        END AS status,
    ((read."incomingAmount" ->> 'value'::text))::numeric AS incoming_value,
    read.received AS received_value,
    (read.asset ->> 'assetCode'::text) AS asset_code,
    ((read.asset ->> 'assetScale'::text))::integer AS asset_scale,
        CASE
            WHEN (stored.list_1_at >= '-210866803200000'::bigint) THEN to_timestamp(((stored.list_1_at)::double precision / (1000)::double precision))
            ELSE NULL::timestamp with time zone
        END AS created_at,
    (to_timestamp(((read."updatedAt" / 1000))::double precision) + (((read."updatedAt" % (1000)::bigint))::double precision * '00:00:00.001'::interval)) AS updated_at,
    (to_timestamp(((read."expiresAt" / 1000))::double precision) + (((read."expiresAt" % (1000)::bigint))::double precision * '00:00:00.001'::interval)) AS expires_at,
    read.metadata,
        CASE
            WHEN read.completed THEN 'completed'::text
            WHEN read."expiryRecorded" THEN 'expired'::text
            ELSE 'open'::text
        END AS state,
    (read.cancellation IS NOT NULL) AS cancelled,
    (read.cancellation ->> 'reason'::text) AS cancellation_reason
   FROM ((( SELECT date_trunc('milliseconds'::text, now()) AS date_trunc) clock(now)
     CROSS JOIN open_payments_records stored)
     CROSS JOIN LATERAL jsonb_to_record((stored.value)::jsonb) read(client text, completed boolean, "expiryRecorded" boolean, "expiresAt" bigint, "updatedAt" bigint, "incomingAmount" jsonb, received numeric, asset jsonb, metadata jsonb, cancellation jsonb))
  WHERE (stored.kind = 'incoming-payment'::text);
--
CREATE VIEW open_payments_outgoing_payments AS
 SELECT "left"(stored.id, 8) AS server,
    substr(stored.id, 9) AS payment_id,
    substr(stored.list_1, 10) AS account,
    read.client,
    read."grantId" AS grant_id,
    read."itemId" AS item_id,
    read."quoteId" AS quote_id,
    stored.payment_receiver AS receiver,
        CASE
            WHEN ((read.state = 'created'::text) AND (clock.now >= (to_timestamp(((read."holdUntil" / 1000))::double precision) + (((read."holdUntil" % (1000)::bigint))::double precision * '00:00:00.001'::interval)))) THEN 'failed'::text
            ELSE read.state
        END AS status,
    ((read."debitAmount" ->> 'value'::text))::numeric AS debit_value,
    (read."debitAmount" ->> 'assetCode'::text) AS debit_asset_code,
    ((read."debitAmount" ->> 'assetScale'::text))::integer AS debit_asset_scale,
    ((read."receiveAmount" ->> 'value'::text))::numeric AS receive_value,
    (read."receiveAmount" ->> 'assetCode'::text) AS receive_asset_code,
    ((read."receiveAmount" ->> 'assetScale'::text))::integer AS receive_asset_scale,
    read.sent AS sent_value,
    read.delivered AS delivered_value,
        CASE
            WHEN (stored.list_1_at >= '-210866803200000'::bigint) THEN to_timestamp(((stored.list_1_at)::double precision / (1000)::double precision))
            ELSE NULL::timestamp with time zone
        END AS created_at,
    (to_timestamp(((read."updatedAt" / 1000))::double precision) + (((read."updatedAt" % (1000)::bigint))::double precision * '00:00:00.001'::interval)) AS updated_at,
    (to_timestamp(((read."holdUntil" / 1000))::double precision) + (((read."holdUntil" % (1000)::bigint))::double precision * '00:00:00.001'::interval)) AS hold_until,
    (to_timestamp(((read."endedAt" / 1000))::double precision) + (((read."endedAt" % (1000)::bigint))::double precision * '00:00:00.001'::interval)) AS ended_at,
    read.failure,
    read.metadata,
    read.state
   FROM ((( SELECT date_trunc('milliseconds'::text, now()) AS date_trunc) clock(now)
     CROSS JOIN open_payments_records stored)
     CROSS JOIN LATERAL jsonb_to_record((stored.value)::jsonb) read(client text, "grantId" text, "itemId" text, "quoteId" text, state text, "debitAmount" jsonb, "receiveAmount" jsonb, sent numeric, delivered numeric, "updatedAt" bigint, "holdUntil" bigint, "endedAt" bigint, failure text, metadata jsonb))
  WHERE ((stored.kind = 'outgoing-payment'::text) AND (read.state <> ALL (ARRAY['reserved'::text, 'declined'::text])));
--
CREATE VIEW open_payments_quotes AS
 SELECT "left"(stored.id, 8) AS server,
    substr(stored.id, 9) AS quote_id,
    stored.quote_account AS account,
    read.client,
    read.receiver,
        CASE
            WHEN (clock.now >= (to_timestamp(((read."expiresAt" / 1000))::double precision) + (((read."expiresAt" % (1000)::bigint))::double precision * '00:00:00.001'::interval))) THEN 'expired'::text
            ELSE 'valid'::text
        END AS status,
    ((read."debitAmount" ->> 'value'::text))::numeric AS debit_value,
    (read."debitAmount" ->> 'assetCode'::text) AS debit_asset_code,
    ((read."debitAmount" ->> 'assetScale'::text))::integer AS debit_asset_scale,
    ((read."receiveAmount" ->> 'value'::text))::numeric AS receive_value,
    (read."receiveAmount" ->> 'assetCode'::text) AS receive_asset_code,
    ((read."receiveAmount" ->> 'assetScale'::text))::integer AS receive_asset_scale,
    stored.quote_created_at AS created_at,
    (to_timestamp(((read."expiresAt" / 1000))::double precision) + (((read."expiresAt" % (1000)::bigint))::double precision * '00:00:00.001'::interval)) AS expires_at
   FROM ((( SELECT date_trunc('milliseconds'::text, now()) AS date_trunc) clock(now)
     CROSS JOIN open_payments_records stored)
     CROSS JOIN LATERAL jsonb_to_record((stored.value)::jsonb) read(client text, receiver text, "debitAmount" jsonb, "receiveAmount" jsonb, "expiresAt" bigint))
  WHERE (stored.kind = 'quote'::text);
--
CREATE VIEW open_payments_spending AS
 SELECT "left"(stored.id, 8) AS server,
    split_part(substr(stored.id, 9), '.'::text, 1) AS grant_id,
    read."itemId" AS item_id,
    COALESCE((granted.client ->> 'walletAddress'::text), ('urn:ietf:params:oauth:jwk-thumbprint:sha-256:'::text || (granted.client ->> 'thumbprint'::text))) AS client,
    (item.value ->> 'identifier'::text) AS account,
    (of_item.limits ->> 'interval'::text) AS limit_interval,
    (to_timestamp(((read."windowStart" / 1000))::double precision) + (((read."windowStart" % (1000)::bigint))::double precision * '00:00:00.001'::interval)) AS window_start,
    (to_timestamp(((read."windowEnd" / 1000))::double precision) + (((read."windowEnd" % (1000)::bigint))::double precision * '00:00:00.001'::interval)) AS window_end,
    COALESCE(((clock.now >= (to_timestamp(((read."windowStart" / 1000))::double precision) + (((read."windowStart" % (1000)::bigint))::double precision * '00:00:00.001'::interval))) AND (clock.now < (to_timestamp(((read."windowEnd" / 1000))::double precision) + (((read."windowEnd" % (1000)::bigint))::double precision * '00:00:00.001'::interval)))), true) AS is_open,
        CASE
            WHEN (of_item.limits ? 'debitAmount'::text) THEN 'debit'::text
            WHEN (of_item.limits ? 'receiveAmount'::text) THEN 'receive'::text
            ELSE NULL::text
        END AS limited,
    ((of_item.counted ->> 'value'::text))::numeric AS limit_value,
    (of_item.counted ->> 'assetCode'::text) AS limit_asset_code,
    ((of_item.counted ->> 'assetScale'::text))::integer AS limit_asset_scale,
    ((of_item.debit ->> 'value'::text))::numeric AS spent_debit_value,
    (of_item.debit ->> 'assetCode'::text) AS spent_debit_asset_code,
    ((of_item.debit ->> 'assetScale'::text))::integer AS spent_debit_asset_scale,
    ((of_item.receive ->> 'value'::text))::numeric AS spent_receive_value,
    (of_item.receive ->> 'assetCode'::text) AS spent_receive_asset_code,
    ((of_item.receive ->> 'assetScale'::text))::integer AS spent_receive_asset_scale
   FROM ((((((( SELECT date_trunc('milliseconds'::text, now()) AS date_trunc) clock(now)
     CROSS JOIN open_payments_records stored)
     CROSS JOIN LATERAL jsonb_to_record((stored.value)::jsonb) read("itemId" text, "windowStart" bigint, "windowEnd" bigint, spent jsonb))
     LEFT JOIN open_payments_records grants ON (((grants.kind = 'grant'::text) AND (grants.id = split_part(substr(stored.id, 9), '.'::text, 1)))))
     LEFT JOIN LATERAL jsonb_to_record((grants.value)::jsonb) granted(client jsonb, granted jsonb) ON (true))
     LEFT JOIN LATERAL jsonb_array_elements(granted.granted) item(value) ON (((item.value ->> 'itemId'::text) = read."itemId")))
     CROSS JOIN LATERAL ( SELECT (item.value -> 'limits'::text) AS "?column?",
            COALESCE(((item.value -> 'limits'::text) -> 'debitAmount'::text), ((item.value -> 'limits'::text) -> 'receiveAmount'::text)) AS "coalesce",
            NULLIF((read.spent -> 'debitAmount'::text), 'null'::jsonb) AS "nullif",
            NULLIF((read.spent -> 'receiveAmount'::text), 'null'::jsonb) AS "nullif") of_item(limits, counted, debit, receive))
  WHERE ((stored.kind = 'budget'::text) AND (read."itemId" IS NOT NULL));
--
CREATE OR REPLACE FUNCTION open_payments_grants_at(timestamp with time zone)
 RETURNS TABLE(server text, grant_id text, client text, status text, resource_owner text, accounts text[], access jsonb, created_at timestamp with time zone, updated_at timestamp with time zone, approved_at timestamp with time zone, issued_at timestamp with time zone, expires_at timestamp with time zone)
 LANGUAGE sql
 STABLE
AS $function$
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
$function$
;
--
CREATE OR REPLACE FUNCTION open_payments_incoming_payments_at(timestamp with time zone)
 RETURNS TABLE(server text, payment_id text, account text, client text, status text, incoming_value numeric, received_value numeric, asset_code text, asset_scale integer, created_at timestamp with time zone, updated_at timestamp with time zone, expires_at timestamp with time zone, metadata jsonb, state text, cancelled boolean, cancellation_reason text)
 LANGUAGE sql
 STABLE
AS $function$
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
$function$
;
--
CREATE OR REPLACE FUNCTION open_payments_outgoing_payments_at(timestamp with time zone)
 RETURNS TABLE(server text, payment_id text, account text, client text, grant_id text, item_id text, quote_id text, receiver text, status text, debit_value numeric, debit_asset_code text, debit_asset_scale integer, receive_value numeric, receive_asset_code text, receive_asset_scale integer, sent_value numeric, delivered_value numeric, created_at timestamp with time zone, updated_at timestamp with time zone, hold_until timestamp with time zone, ended_at timestamp with time zone, failure text, metadata jsonb, state text)
 LANGUAGE sql
 STABLE
AS $function$
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
$function$
;
--
CREATE OR REPLACE FUNCTION open_payments_quotes_at(timestamp with time zone)
 RETURNS TABLE(server text, quote_id text, account text, client text, receiver text, status text, debit_value numeric, debit_asset_code text, debit_asset_scale integer, receive_value numeric, receive_asset_code text, receive_asset_scale integer, created_at timestamp with time zone, expires_at timestamp with time zone)
 LANGUAGE sql
 STABLE
AS $function$
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
$function$
;
--
CREATE OR REPLACE FUNCTION open_payments_spending_at(timestamp with time zone)
 RETURNS TABLE(server text, grant_id text, item_id text, client text, account text, limit_interval text, window_start timestamp with time zone, window_end timestamp with time zone, is_open boolean, limited text, limit_value numeric, limit_asset_code text, limit_asset_scale integer, spent_debit_value numeric, spent_debit_asset_code text, spent_debit_asset_scale integer, spent_receive_value numeric, spent_receive_asset_code text, spent_receive_asset_scale integer)
 LANGUAGE sql
 STABLE
AS $function$
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
$function$
;
--
INSERT INTO open_payments_migrations (version, name) VALUES (0, 'lock');
--
INSERT INTO open_payments_migrations (version, name) VALUES (1, 'records');
--
INSERT INTO open_payments_report_migrations (version, name) VALUES (0, 'lock');
--
INSERT INTO open_payments_report_migrations (version, name) VALUES (1, 'reports');
