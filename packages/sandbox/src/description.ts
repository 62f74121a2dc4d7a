import type { AccountWithKey } from './wallet.js'

/** One of the two wallets. */
export interface SandboxUrls {
  /** The origin. */
  readonly url: string
  /** The grant endpoint. */
  readonly authServer: string
  readonly resourceServer: string
}

/** The sandbox as plain JSON: `--json` prints it. */
export interface SandboxDescription {
  /** The page of the sandbox. */
  readonly sandbox: string
  /** The time of both wallets. */
  readonly now: string
  readonly wallets: readonly [SandboxUrls, SandboxUrls]
  /** The accounts of both wallets by name, with their keys. */
  readonly accounts: Readonly<Record<string, AccountWithKey>>
}
