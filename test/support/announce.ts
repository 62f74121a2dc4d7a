import { servers } from './databases.js'

/** Prints before the tests which suites will be skipped, and what enables them. */
export function setup(): void {
  const variables = {
    PostgreSQL: 'TEST_DATABASE_URL',
    Redis: 'TEST_REDIS_URL',
    MariaDB: 'TEST_MARIADB_URL',
  }
  const missing = Object.entries(servers).flatMap(([name, url]) =>
    url === undefined ? [name] : [],
  )
  if (missing.length === 0) return
  const hints = missing.map((name) => variables[name as keyof typeof variables])
  console.log(
    `Skipping the suites that need ${missing.join(', ')}: set ${hints.join(', ')} to run them.`,
  )
}
