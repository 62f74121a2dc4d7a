// #region worker
import { DurableObject } from 'cloudflare:workers'
import { remoteClientKeys, toFetch } from 'open-payments-server'
import { fetchKeys } from './fetch-keys.js'
import { createWallet } from './wallet.js'

/** The requests of a Durable Object may share connections, and wait for each other. */
export class Wallet extends DurableObject<Env> {
  readonly #keys = remoteClientKeys({ fetch: fetchKeys })
  readonly #wallet = createWallet(this.env.ORIGIN, this.#keys)
  readonly #serve = toFetch(this.#wallet.handle)

  override fetch(request: Request): Promise<Response> {
    return this.#serve(request)
  }

  async sweep(): Promise<void> {
    for (const server of [this.#wallet.auth, this.#wallet.resources]) {
      while ((await server.sweep()).more);
    }
  }
}

export default {
  fetch: (request: Request, env: Env) => env.WALLET.getByName('wallet').fetch(request),
  scheduled: (_event: unknown, env: Env) => env.WALLET.getByName('wallet').sweep(),
}
// #endregion worker
