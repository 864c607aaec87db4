INSERT INTO sandbox.people (id, name, may_set_price) VALUES
    ('u-li-na',        'Li Na',         true),
    ('u-anna-schmidt', 'Anna Schmidt',  true),
    ('u-wang-wei',     'Wang Wei',      false),
    ('u-tom-becker',   'Tom Becker',    false),
    ('u-mia-chen',     'Mia Chen',      false)
ON CONFLICT (id) DO NOTHING;

INSERT INTO sandbox.products (id, name, price_cents, price_list, status, version, updated_at) VALUES
    ('SKU-4411', 'Pour-over kettle, 0.9 l, gooseneck',   10000, 'retail-eu', 'on_sale',      8, '2026-09-14T08:12:00Z'),
    ('SKU-4412', 'Burr coffee grinder, 40 steps',        14900, 'retail-eu', 'on_sale',      5, '2026-09-02T10:40:00Z'),
    ('SKU-4413', 'Glass carafe, 1.2 l',                   2490, 'retail-eu', 'on_sale',      3, '2026-08-21T15:05:00Z'),
    ('SKU-4418', 'Paper filters, 100 pieces',              590, 'retail-eu', 'on_sale',     12, '2026-10-01T07:30:00Z'),
    ('SKU-4420', 'Espresso machine, single boiler',      64900, 'retail-eu', 'on_sale',      9, '2026-09-28T09:00:00Z'),
    ('SKU-4425', 'Milk jug, 350 ml',                      1995, 'retail-eu', 'on_sale',      2, '2026-05-11T12:00:00Z'),
    ('SKU-4431', 'Gongfu tea set, Jingdezhen porcelain', 12800, 'retail-eu', 'on_sale',      4, '2026-07-19T11:25:00Z'),
    ('SKU-4432', 'Cast-iron teapot, 0.8 l',               7850, 'retail-eu', 'on_sale',      6, '2026-09-05T16:45:00Z'),
    ('SKU-4440', 'Digital kitchen scale, 0.1 g',          3990, 'retail-eu', 'on_sale',      7, '2026-06-30T08:55:00Z'),
    ('SKU-4447', 'Insulated mug, 400 ml',                 2750, 'retail-eu', 'on_sale',      1, '2026-04-02T09:10:00Z'),
    ('SKU-4450', 'House blend, whole bean, 1 kg',         1890, 'retail-eu', 'on_sale',     15, '2026-10-03T06:20:00Z'),
    ('SKU-4399', 'Stovetop moka pot, 6 cups',             3400, 'outlet-eu', 'discontinued', 4, '2026-01-31T17:00:00Z')
ON CONFLICT (id) DO NOTHING;

INSERT INTO sandbox.orders (id, customer_id, customer_name, placed_at, paid_cents, refunded_cents, status, version) VALUES
    ('10070', 'c-2001', 'Julia Hoffmann',   '2026-09-01T09:14:00Z',  14900,     0, 'paid',            1),
    ('10071', 'c-2002', 'Chen Jie',         '2026-09-01T13:40:00Z',   4200,     0, 'paid',            1),
    ('10072', 'c-2003', 'Marco Bianchi',    '2026-09-02T18:22:00Z',  64900,     0, 'paid',            1),
    ('10073', 'c-2004', 'Sofia Almeida',    '2026-09-03T07:51:00Z',   3080,  3080, 'refunded',        2),
    ('10074', 'c-2005', 'Zhang Min',        '2026-09-04T11:03:00Z',  12800,     0, 'paid',            1),
    ('10075', 'c-2006', 'Liam O''Connor',   '2026-09-05T20:37:00Z',   7850,     0, 'paid',            1),
    ('10076', 'c-2007', 'Emma Dubois',      '2026-09-07T08:05:00Z',  11990,  3990, 'partly_refunded', 2),
    ('10077', 'c-2008', 'Liu Yang',         '2026-09-08T15:29:00Z',   2490,     0, 'paid',            1),
    ('10078', 'c-2009', 'Jonas Weber',      '2026-09-10T10:10:00Z',  10000,     0, 'paid',            1),
    ('10079', 'c-2010', 'Ines Moreau',      '2026-09-11T12:46:00Z',   1890,     0, 'paid',            1),
    ('10080', 'c-2001', 'Julia Hoffmann',   '2026-09-12T19:33:00Z',  27700,     0, 'paid',            1),
    ('10081', 'c-2011', 'Huang Lei',        '2026-09-14T06:58:00Z',   5980,     0, 'paid',            1),
    ('10082', 'c-2012', 'Clara Lindqvist',  '2026-09-15T14:12:00Z', 129800,     0, 'paid',            1),
    ('10083', 'c-2013', 'Pieter de Vries',  '2026-09-17T09:41:00Z',   2750,     0, 'paid',            1),
    ('10084', 'c-2014', 'Wu Fang',          '2026-09-18T17:20:00Z',  16790,     0, 'paid',            1),
    ('10085', 'c-2015', 'Nora Eriksen',     '2026-09-20T08:27:00Z',   3990,     0, 'paid',            1),
    ('10086', 'c-2016', 'Zhou Ling',        '2026-09-21T11:11:00Z',   4200,     0, 'paid',            1),
    ('10087', 'c-2017', 'David Novak',      '2026-09-22T13:55:00Z',   4200,     0, 'paid',            1),
    ('10088', 'c-2018', 'Greta Keller',     '2026-09-24T10:02:00Z',  78700,     0, 'paid',            1),
    ('10089', 'c-2019', 'Xu Hao',           '2026-09-26T16:48:00Z',   1995,     0, 'paid',            1),
    ('10090', 'c-2020', 'Elena Petrova',    '2026-09-28T07:19:00Z',  10590,     0, 'paid',            1),
    ('10091', 'c-2021', 'Sun Yue',          '2026-09-30T21:04:00Z',   9340,     0, 'paid',            1),
    ('10092', 'c-2022', 'Oscar Svensson',   '2026-10-02T12:31:00Z',  22750,     0, 'paid',            1),
    ('10093', 'c-2023', 'Marie Laurent',    '2024-11-29T10:15:00Z',   8900,     0, 'closed',          3)
ON CONFLICT (id) DO NOTHING;

INSERT INTO sandbox.orders (id, customer_id, customer_name, placed_at, paid_cents, settles_after_ms) VALUES
    ('10094', 'c-2024', 'Ana Kovač',        '2026-10-03T09:26:00Z',  15900, 1500)
ON CONFLICT (id) DO NOTHING;

INSERT INTO sandbox.refunds (key, order_id, amount_cents, reason, at)
SELECT seed.key, seed.order_id, seed.amount_cents, seed.reason, seed.at::timestamptz
  FROM (VALUES
    ('desk-10073', '10073', 3080, 'arrived broken',        '2026-09-09T09:00:00Z'),
    ('desk-10076', '10076', 3990, 'one item out of stock', '2026-09-08T09:30:00Z')
  ) AS seed (key, order_id, amount_cents, reason, at)
 WHERE NOT EXISTS (SELECT 1 FROM sandbox.refunds r WHERE r.key = seed.key);

INSERT INTO sandbox.operations (system, key, name, fingerprint, status, object, http_status, body, at)
SELECT 'refunds', r.key, 'refund_order', 'desk', 'SUCCEEDED', r.order_id, 200, '{}', r.at
  FROM sandbox.refunds r WHERE r.key IN ('desk-10073', 'desk-10076')
ON CONFLICT (system, key) DO NOTHING;

INSERT INTO sandbox.shop_orders (id, status, cancelled_at, cancel_reason, customer_id, customer_name, placed_at, total_cents,
                                 coupon_code, coupon_status, coupon_cents, version, updated_at, cancels, restores) VALUES
    ('10080', 'paid',      NULL, NULL, 'c-2001', 'Julia Hoffmann',  '2026-09-12T19:33:00Z', 27700, NULL,          NULL,    0,    1, '2026-09-12T19:33:00Z', 'properly',    'properly'),
    ('10081', 'paid',      NULL, NULL, 'c-2011', 'Huang Lei',       '2026-09-14T06:58:00Z',  5980, 'MOON-24-Q81', 'valid', 500,  1, '2026-09-14T06:58:00Z', 'properly',    'properly'),
    ('10082', 'paid',      NULL, NULL, 'c-2012', 'Clara Lindqvist', '2026-09-15T14:12:00Z', 129800, NULL,         NULL,    0,    1, '2026-09-15T14:12:00Z', 'properly',    'properly'),
    ('10083', 'shipped',   NULL, NULL, 'c-2013', 'Pieter de Vries', '2026-09-17T09:41:00Z',  2750, NULL,          NULL,    0,    2, '2026-09-18T07:10:00Z', 'properly',    'properly'),
    ('10084', 'settled',   NULL, NULL, 'c-2014', 'Wu Fang',         '2026-09-18T17:20:00Z', 16790, 'TEA-10-F84',  'valid', 1000, 3, '2026-09-27T05:00:00Z', 'properly',    'properly'),
    ('10085', 'cancelled', '2026-09-21T08:02:00Z', 'ordered twice',
                                       'c-2015', 'Nora Eriksen',    '2026-09-20T08:27:00Z',  3990, 'HELLO-5-N85', 'void',  500,  2, '2026-09-21T08:02:00Z', 'properly',    'properly'),
    ('10086', 'paid',      NULL, NULL, 'c-2016', 'Zhou Ling',       '2026-09-21T11:11:00Z',  4200, NULL,          NULL,    0,    1, '2026-09-21T11:11:00Z', 'in_word',     'properly'),
    ('10087', 'paid',      NULL, NULL, 'c-2017', 'David Novak',     '2026-09-22T13:55:00Z',  4200, NULL,          NULL,    0,    1, '2026-09-22T13:55:00Z', 'properly',    'properly'),
    ('10088', 'paid',      NULL, NULL, 'c-2018', 'Greta Keller',    '2026-09-24T10:02:00Z', 78700, 'AUTUMN-K88',  'valid', 2500, 1, '2026-09-24T10:02:00Z', 'coupon_only', 'properly'),
    ('10089', 'paid',      NULL, NULL, 'c-2019', 'Xu Hao',          '2026-09-26T16:48:00Z',  1995, 'MOON-24-X89', 'valid', 500,  1, '2026-09-26T16:48:00Z', 'coupon_only', 'in_word'),
    ('10096', 'shipped',   NULL, NULL, 'c-2026', 'Tomás Herrera',   '2026-10-02T07:20:00Z', 64900, NULL,          NULL,    0,    2, '2026-10-04T09:05:00Z', 'properly',    'properly'),
    ('10097', 'shipped',   NULL, NULL, 'c-2027', 'Lin Xiaoyu',      '2026-09-23T18:44:00Z',  7850, NULL,          NULL,    0,    2, '2026-09-25T06:30:00Z', 'properly',    'properly')
ON CONFLICT (id) DO NOTHING;

INSERT INTO sandbox.message_conversations (id, name) VALUES
    ('c-a',     'Announcements'),
    ('c-depot', 'Depot'),
    ('c-board', 'Board')
ON CONFLICT (id) DO NOTHING;

INSERT INTO sandbox.message_members (conversation_id, person_id) VALUES
    ('c-a',     'u-a'),
    ('c-a',     'u-li-na'),
    ('c-a',     'u-tom-becker'),
    ('c-depot', 'u-tom-becker'),
    ('c-depot', 'u-mia-chen'),
    ('c-board', 'u-anna-schmidt')
ON CONFLICT DO NOTHING;

INSERT INTO sandbox.message_rules (document_id, name, status, rule, body_limit_bytes, request_limit_bytes, updated_at) VALUES
    ('doc-s2', 'S2', 'current',  'A body has 1 to 6 bytes of UTF-8, a request 4096 bytes at most. An id is used once: 409 otherwise.', 6, 4096, '2026-09-01T08:00:00Z'),
    ('doc-r9', 'R9', 'proposed', 'Raise the body from 6 to 9 bytes of UTF-8. Under review; not in force.', 9, 4096, '2026-09-21T08:00:00Z')
ON CONFLICT (document_id) DO NOTHING;

INSERT INTO sandbox.parcels (id, order_id, carrier, status, signed, scans, observed_at, cost_cents, risk_mark, internal_note) VALUES
    (88121, '10096', 'Nordpost',   'in_transit', false, 3, '2026-10-05T16:40:00Z', 1240, 'B', 'heavy; left at the depot once'),
    (88122, '10083', 'Nordpost',   'delivered',  true,  6, '2026-09-20T09:00:00Z',  610, 'A', ''),
    (88123, '10084', 'Eilbote 24', 'delivered',  false, 5, '2026-09-21T11:32:00Z',  990, 'C', 'no signature: customer claims often, do not refund'),
    (88124, '10097', 'Eilbote 24', 'returned',   false, 7, '2026-09-29T13:15:00Z', 1490, 'A', 'address wrong')
ON CONFLICT (id) DO NOTHING;

INSERT INTO sandbox.customers (id, name, keeper_id) VALUES
    ('c-2016', 'Zhou Ling',       'u-mia-chen'),
    ('c-2017', 'David Novak',     'u-mia-chen'),
    ('c-2018', 'Greta Keller',    'u-tom-becker'),
    ('c-2019', 'Xu Hao',          'u-mia-chen'),
    ('c-2020', 'Elena Petrova',   'u-tom-becker')
ON CONFLICT (id) DO NOTHING;

INSERT INTO sandbox.conversations (id, customer_id, channel, at) VALUES
    ('talk-501', 'c-2016', 'phone', '2026-10-05T08:30:00Z'),
    ('talk-502', 'c-2017', 'chat',  '2026-10-05T09:12:00Z'),
    ('talk-503', 'c-2018', 'visit', '2026-10-06T13:00:00Z'),
    ('talk-504', 'c-2016', 'chat',  '2026-10-06T15:45:00Z'),
    ('talk-505', 'c-2019', 'phone', '2026-10-07T07:20:00Z')
ON CONFLICT (id) DO NOTHING;

INSERT INTO sandbox.ledger_currencies (currency, minor_units, rate) VALUES
    ('EUR', 2, 1), ('CNY', 2, 0.1285), ('JPY', 0, 0.006), ('KWD', 3, 2.98)
ON CONFLICT (currency) DO NOTHING;

INSERT INTO sandbox.reconciliations (id, account, period_from, period_to, currency) VALUES
    ('REC-2026-09', 'card-payments', '2026-09-01', '2026-10-01', 'EUR'),
    ('REC-2026-08', 'card-payments', '2026-08-01', '2026-09-01', 'EUR')
ON CONFLICT (id) DO NOTHING;

-- Our books have an entry per item of an order, in euros, at the time of sale. The
-- provider states one per order, in the card's currency, in its own time zone.
INSERT INTO sandbox.ledger_entries (voucher, account, side, reference, at, amount_minor, currency, text) VALUES
    ('GL-88001',  'card-payments', 'books',     '10070', '2026-09-01T09:14:00Z',      9900, 'EUR', 'Order 10070, grinder'),
    ('GL-88002',  'card-payments', 'books',     '10070', '2026-09-01T09:14:00Z',      5000, 'EUR', 'Order 10070, burr set'),
    ('PSP-70011', 'card-payments', 'statement', '10070', '2026-09-01T17:14:09+08:00', 14900, 'EUR', 'Card 4921'),
    ('GL-88003',  'card-payments', 'books',     '10074', '2026-09-04T11:03:00Z',     12850, 'EUR', 'Order 10074'),
    ('PSP-70012', 'card-payments', 'statement', '10074', '2026-09-04T19:03:40+08:00', 100000, 'CNY', 'Card 6217'),
    ('GL-88004',  'card-payments', 'books',     '10077', '2026-09-08T15:29:00Z',      2490, 'EUR', 'Order 10077'),
    ('PSP-70013', 'card-payments', 'statement', '10077', '2026-09-08T23:29:11+08:00',  4150, 'JPY', 'Card 3540'),
    ('GL-88005',  'card-payments', 'books',     '10091', '2026-09-30T21:04:00Z',      9340, 'EUR', 'Order 10091'),
    ('PSP-70014', 'card-payments', 'statement', '10091', '2026-10-01T05:04:30+08:00',  9340, 'EUR', 'Card 1881'),
    ('GL-88006',  'card-payments', 'books',     '10084', '2026-09-18T17:20:00Z',     16790, 'EUR', 'Order 10084'),
    ('PSP-70015', 'card-payments', 'statement', '10084', '2026-09-19T01:20:05+08:00', 16490, 'EUR', 'Card 7702, scheme fee 3.00 kept'),
    ('GL-88007',  'card-payments', 'books',     '10087', '2026-09-22T13:55:00Z',      4200, 'EUR', 'Order 10087'),
    ('PSP-70016', 'card-payments', 'statement', 'PAY-3302', '2026-09-22T21:55:41+08:00', 4200, 'EUR', 'Card 9045, no order named'),
    ('PSP-70010', 'card-payments', 'statement', '10069', '2026-09-01T07:40:00+08:00',  1890, 'EUR', 'Card 2210'),
    ('GL-87990',  'card-payments', 'books',     '10069', '2026-08-31T23:40:00Z',      1890, 'EUR', 'Order 10069')
ON CONFLICT (voucher) DO NOTHING;

INSERT INTO sandbox.ledger_rights (person_id, "right") VALUES
    ('u-ingrid-holm',  'sign_off'),
    ('u-ingrid-holm',  'report'),
    ('u-pavel-dvorak', 'post'),
    ('u-pavel-dvorak', 'report')
ON CONFLICT DO NOTHING;
