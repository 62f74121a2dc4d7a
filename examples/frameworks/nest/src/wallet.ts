// #region nest-wallet
import { Logger } from '@nestjs/common'
import { createPages, seeOther } from 'open-payments-pages'
import { createWallet, ilpPaymentMethods, type Wallet } from 'open-payments-server'
import { postgresStore } from 'open-payments-server/postgres'
import type { Pool } from 'pg'
import type { AccountsService } from './accounts.service.js'
import { keyFor } from './keys.js'
import { priceOfOwn } from './own-accounts.js'
import type { PaymentsService } from './payments.service.js'
import { perMinute } from './rate-limit.js'
import { sessions } from './sessions.js'

const logger = new Logger('Wallet')
const onError = (error: unknown) => logger.error(error)

/** Creates the wallet of a brand, over services of the host. */
export function walletAt(
  baseUrl: string,
  pool: Pool,
  accounts: AccountsService,
  payments: PaymentsService,
) {
  const wallet: Wallet = createWallet({
    baseUrl,
    consentUrl: `${baseUrl}/consent`,
    store: postgresStore(pool),
    walletAddresses: accounts, // has `find`
    paymentMethods: ilpPaymentMethods({
      addressPrefix: 'test.wallet',
      secret: keyFor('payment details'),
    }),
    pricing: { price: (request) => priceOfOwn(wallet.resources, request) },
    rateLimit: perMinute(300),
    policy: { mayPay: (payment) => accounts.hold(payment) },
    onRefusal: ({ refusal, reason }) => logger.debug(`${refusal}: ${reason}`),
    onError,
  })
  const pages = createPages({
    auth: wallet.auth,
    resources: wallet.resources,
    ownerOf: (request) => sessions.ownerOf(request),
    accountsOf: (owner) => accounts.ownedBy(owner, baseUrl),
    signIn: ({ url }) => seeOther(`/login?next=${encodeURIComponent(url)}`), // yours
    formKey: keyFor('forms'),
    connectedAppsUrl: '/apps',
    onError,
  })
  return {
    wallet,
    pages: { '/consent': pages.consent, '/apps': pages.connectedApps },
    onEvent: payments.handle(wallet),
  }
}
// #endregion nest-wallet
