import { UsageError } from 'open-payments-programs'

/** The choices of each question, and what to say about them. The first is the default. */
export const frameworks = {
  express: 'Express 5',
  fastify: 'Fastify 5',
  hono: 'Hono 4',
}

export const databases = {
  sqlite: 'SQLite, for one machine; needs Node.js 22.13 or newer',
  postgres: 'PostgreSQL',
  mariadb: 'MariaDB, through Kysely',
}

/** The commands that start the database for development: none for SQLite, which is a file. */
export const databaseStart: Readonly<Record<Database, readonly string[]>> = {
  sqlite: [],
  postgres: ['docker compose up --wait'],
  mariadb: ['docker compose up --wait'],
}

export type Framework = keyof typeof frameworks
export type Database = keyof typeof databases

/** The wallet cannot be written. The message says what to change. */
export class ProblemError extends Error {}

/** Returns a known name. Throws a `UsageError` for any other. */
export function knownName<Name extends string>(
  what: string,
  given: string,
  known: Readonly<Record<Name, string>>,
): Name {
  if (Object.hasOwn(known, given)) return given as Name
  throw new UsageError(`${what} must be one of ${Object.keys(known).join(', ')}: ${given}`)
}
