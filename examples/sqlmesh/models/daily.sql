MODEL (
  name sales.daily,
  kind INCREMENTAL_BY_TIME_RANGE (time_column day),
  grain (day, country),
  audits (not_null(columns := (day, country)), forall(criteria := (amount > 0)))
);

SELECT
  day,
  country,
  COUNT(*) AS orders,
  SUM(amount) AS amount
FROM DELTA_SCAN(@lake || '/orders')
WHERE
  day BETWEEN @start_date AND @end_date
GROUP BY
  day,
  country
