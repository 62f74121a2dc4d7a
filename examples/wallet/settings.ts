import { type AdapterName, adapters } from './start.js'

/** How the wallet is started, from the environment. */
export interface Settings {
  readonly adapter: AdapterName
  readonly port: number
  /** The origin that is published, without a trailing slash. */
  readonly baseUrl: string
  readonly databaseUrl?: string
  readonly dataDir?: string
  /** Where events are sent, and the secret that they are signed with. */
  readonly webhook?: { readonly url: string; readonly secret: string }
}

/** @throws an error that says which variable is wrong. */
export function readSettings(environment: NodeJS.ProcessEnv): Settings {
  const { PORT = '3000', ADAPTER = 'express' } = environment
  const { DATABASE_URL, DATA_DIR, WEBHOOK_URL, WEBHOOK_SECRET } = environment
  if (!isAdapter(ADAPTER)) {
    throw new Error(`ADAPTER must be one of ${Object.keys(adapters).join(', ')}`)
  }
  if (!/^\d{1,5}$/.test(PORT) || Number(PORT) > 65_535) {
    throw new Error('PORT must be a port number')
  }
  if (DATABASE_URL && !URL.canParse(DATABASE_URL)) {
    throw new Error('DATABASE_URL must be a URL, such as postgres://user@localhost:5432/wallet')
  }
  if (DATABASE_URL && DATA_DIR) {
    throw new Error('set DATABASE_URL for PostgreSQL or DATA_DIR for PGlite, not both')
  }
  if (!WEBHOOK_URL !== !WEBHOOK_SECRET) {
    throw new Error('WEBHOOK_URL and WEBHOOK_SECRET go together')
  }
  const baseUrl = environment['BASE_URL'] ?? `http://localhost:${PORT}`
  return {
    adapter: ADAPTER,
    port: Number(PORT),
    baseUrl: baseUrl.replace(/\/$/, ''),
    ...(DATABASE_URL && { databaseUrl: DATABASE_URL }),
    ...(DATA_DIR && { dataDir: DATA_DIR }),
    ...(WEBHOOK_URL && WEBHOOK_SECRET && { webhook: { url: WEBHOOK_URL, secret: WEBHOOK_SECRET } }),
  }
}

function isAdapter(name: string): name is AdapterName {
  return Object.hasOwn(adapters, name)
}
