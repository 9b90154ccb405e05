{{ config(
    materialized='incremental',
    incremental_strategy='insert_overwrite',
    partition_by=['day']
) }}

-- The columns that the table is partitioned by come last.
select count(*) as orders, sum(amount) as amount, day
from {{ ref('stg_orders') }}
{% if is_incremental() %}
where day >= (select max(day) from {{ this }})
{% endif %}
group by day
