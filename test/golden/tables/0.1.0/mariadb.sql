CREATE TABLE `open_payments_migrations` (
  `version` int(11) NOT NULL,
  `name` varchar(64) NOT NULL,
  PRIMARY KEY (`version`)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_general_ci;
--
CREATE TABLE `open_payments_records` (
  `kind` varbinary(32) NOT NULL,
  `id` varbinary(128) NOT NULL,
  `version` bigint(20) NOT NULL,
  `value` longtext CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NOT NULL,
  `due_at` bigint(20) DEFAULT NULL,
  `list_1` varbinary(64) DEFAULT NULL,
  `list_1_at` bigint(20) DEFAULT NULL,
  `list_2` varbinary(64) DEFAULT NULL,
  `list_2_at` bigint(20) DEFAULT NULL,
  `list_3` varbinary(64) DEFAULT NULL,
  `list_3_at` bigint(20) DEFAULT NULL,
  `namespace` varbinary(8) GENERATED ALWAYS AS (left(`id`,8)) STORED,
  `guarded` tinyint(4) NOT NULL DEFAULT 0,
  PRIMARY KEY (`kind`,`id`),
  KEY `open_payments_records_due` (`kind`,`namespace`,`due_at`,`id`),
  KEY `open_payments_records_list_1` (`kind`,`list_1`,`list_1_at`,`id`),
  KEY `open_payments_records_list_2` (`kind`,`list_2`,`list_2_at`,`id`),
  KEY `open_payments_records_list_3` (`kind`,`list_3`,`list_3_at`,`id`)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_general_ci;
--
INSERT INTO open_payments_migrations (version, name) VALUES (1, 'records');
