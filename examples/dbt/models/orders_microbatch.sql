{{ config(
    materialized='incremental',
    incremental_strategy='microbatch',
    event_time='ordered_at',
    begin='2026-01-01',
    batch_size='year',
    partition_by=['year']
) }}

select order_id, amount, ordered_at, year from {{ ref('stg_orders') }}
