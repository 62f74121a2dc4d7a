import { type AdapterName, adapters } from './start.js'
import type { Role } from './wallet.js'

/** How the wallet is started, from the environment. */
export interface Settings {
  readonly adapter: AdapterName
  readonly port: number
  /** The origin that is published, without a trailing slash. */
  readonly baseUrl: string
  /** The side of the wallet that this process serves, where it does not serve both. */
  readonly role?: Role
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
  return {
    adapter: ADAPTER,
    port: Number(PORT),
    ...readRole(environment, `http://localhost:${PORT}`),
    ...(DATABASE_URL && { databaseUrl: DATABASE_URL }),
    ...(DATA_DIR && { dataDir: DATA_DIR }),
    ...(WEBHOOK_URL && WEBHOOK_SECRET && { webhook: { url: WEBHOOK_URL, secret: WEBHOOK_SECRET } }),
  }
}

/** @param ownUrl the origin at which this process listens. */
function readRole(
  environment: NodeJS.ProcessEnv,
  ownUrl: string,
): Pick<Settings, 'baseUrl' | 'role'> {
  const { ROLE, BASE_URL, AUTH_URL, RESOURCE_SERVER_KEY: key } = environment
  const baseUrl = originOf('BASE_URL', BASE_URL || ownUrl)
  if (!ROLE) {
    if (AUTH_URL || key) {
      throw new Error('AUTH_URL and RESOURCE_SERVER_KEY go with ROLE=auth or ROLE=resource')
    }
    return { baseUrl }
  }
  if (ROLE === 'resource') {
    if (!AUTH_URL) {
      throw new Error('ROLE=resource needs AUTH_URL: where the process with ROLE=auth listens')
    }
    return { baseUrl, role: { name: ROLE, authUrl: originOf('AUTH_URL', AUTH_URL) } }
  }
  if (ROLE !== 'auth')
    throw new Error('ROLE must be auth or resource; without it one process is both')
  if (!BASE_URL) {
    throw new Error('ROLE=auth needs BASE_URL: where the process with ROLE=resource listens')
  }
  if (!key || !/^[\w-]{43}$/.test(key)) {
    throw new Error('ROLE=auth needs RESOURCE_SERVER_KEY, as the one with ROLE=resource prints it')
  }
  const authUrl = originOf('AUTH_URL', AUTH_URL || ownUrl)
  return { baseUrl, role: { name: ROLE, authUrl, resourceServerKey: key } }
}

/** What is published begins with it, so that nothing may stand behind it. */
function originOf(name: string, text: string): string {
  const origin = text.replace(/\/$/, '')
  if (!URL.canParse(origin) || new URL(origin).origin !== origin) {
    throw new Error(`${name} must be an origin, such as https://wallet.example`)
  }
  return origin
}

function isAdapter(name: string): name is AdapterName {
  return Object.hasOwn(adapters, name)
}
