import { existsSync } from 'node:fs'

export interface Settings {
  readonly port: number
  /** The address or name to listen on. */
  readonly host: string
  /** The public origin of the wallet, without a slash at the end. Clients sign it, so it must be exact. */
  readonly baseUrl: string
  readonly database: string
  /** How long a load balancer needs to see that the wallet stops, before it accepts no more connections. */
  readonly drainMs: number
  /** Authenticates the cookies of owners. */
  readonly sessionSecret: Uint8Array
  /** Makes the payment details of incoming payments. Senders cannot pay by details of another secret. */
  readonly paymentDetailsSecret: Uint8Array
  /** The password of every owner in this demonstration: see login.ts. */
  readonly demoPassword: string
  /** Owners confirm payments above this number of units of their asset, such as dollars. Absent: none. */
  readonly confirmAbove?: bigint
}

/** The settings that do not depend on how the wallet is started. */
export type WalletSettings = Omit<Settings, 'port' | 'host' | 'database' | 'drainMs'>

/** Whether the wallet is for real owners. Until then, it has accounts with money and a page for developers. */
export function isProduction(): boolean {
  return process.env['NODE_ENV'] === 'production'
}

/**
 * Reads the settings from the environment, and from .env if that file exists.
 *
 * @throws an error that names the variable that is missing or invalid.
 */
export function readSettings(): Settings {
  if (existsSync('.env')) process.loadEnvFile()
  const port = Number(process.env['PORT'] ?? 3000)
  if (!Number.isInteger(port) || port < 0 || port > 65_535) {
    throw new Error('PORT must be a port number')
  }
  const confirmAbove = process.env['CONFIRM_ABOVE'] || undefined
  if (confirmAbove !== undefined && !/^\d{1,15}$/.test(confirmAbove)) {
    throw new Error('CONFIRM_ABOVE must be a number of whole dollars or euros, such as 50')
  }
  return {
    port,
    host: process.env['HOST'] || 'localhost',
    baseUrl: originOf(process.env['BASE_URL'] ?? `http://localhost:${port}`),
    database: required('DATABASE'),
    drainMs: Number(process.env['DRAIN_MS'] ?? (isProduction() ? 5_000 : 0)),
    sessionSecret: secret('SESSION_SECRET'),
    paymentDetailsSecret: secret('PAYMENT_DETAILS_SECRET'),
    demoPassword: required('DEMO_PASSWORD'),
    ...(confirmAbove !== undefined && { confirmAbove: BigInt(confirmAbove) }),
  }
}

function originOf(text: string): string {
  if (!URL.canParse(text) || new URL(text).origin !== text) {
    throw new Error('BASE_URL must be an origin, such as https://wallet.example')
  }
  return text
}

function required(name: string): string {
  const value = process.env[name]
  if (!value) throw new Error(`${name} must be set: see .env.example`)
  return value
}

function secret(name: string): Uint8Array {
  const bytes = Buffer.from(required(name), 'base64url')
  if (bytes.length < 32) throw new Error(`${name} must be 32 random bytes, base64url`)
  return bytes
}
