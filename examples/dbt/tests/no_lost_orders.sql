select * from {{ ref('orders') }} o
where not exists (select 1 from {{ ref('orders_merged') }} m where m.order_id = o.order_id)
