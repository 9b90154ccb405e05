{{ config(materialized='table', persist_docs={'relation': true, 'columns': true}) }}

select c.id as customer_id, c.name, sum(o.amount) as total
from {{ ref('customers') }} c
join {{ ref('stg_orders') }} o on o.customer_id = c.id
group by c.id, c.name
